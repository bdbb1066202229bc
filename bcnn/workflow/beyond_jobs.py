"""What is different in a plan of runs beyond the paper: their table, each seed's own draw, studies of their weights."""

import os
from typing import Any, Dict, Iterator, Tuple

from .. import beyond, paper
from ..errors import UserError
from ..system import places
from .jobs import Study, Train


def table(profile: str, content: Dict[str, Any]) -> Tuple[paper.Run, ...]:
    """The runs that a profile chooses from: the paper's, or those beyond it where it says so."""
    tables = {'paper': paper.RUNS, beyond.NAME: beyond.RUNS}
    name = content.get('table', 'paper')
    if name not in tables:
        raise UserError('profile %s: no table of runs %s; there are: %s' % (profile, name, ', '.join(tables)))
    return tables[name]


def with_draw(run: paper.Run, seed: int) -> paper.Run:
    """The run with the training images of a seed: beyond the paper each has its own draw of a fraction."""
    fraction = paper.fraction_of(run.dataset)
    if set(run.experiment) & set(beyond.QUESTIONS) and fraction != '1':
        return run._replace(dataset=beyond.drawn(int(fraction.partition('/')[2]), seed))
    return run


def studies(train: Train) -> Iterator[Study]:
    """The Studies of a training's weights."""
    for name, study in beyond.STUDIES.items():
        if study.question in train.experiments and train.seed <= study.seeds:
            iteration = min(study.iteration, sum(train.iterations))  # a profile may be shorter
            folder = os.path.join(train.folder, places.STUDIES, '%s-%d' % (name, iteration))
            yield Study(name='study-%s-%s' % (name, os.path.basename(train.folder)), experiments=(study.question,),
                        dataset=train.dataset, net=train.net, seed=train.seed, study=name, run=train.folder,
                        iteration=iteration, T=study.T, passed=study.passed, processes=1, cores=1, folder=folder,
                        after=train.name, needs=study.sets)


def about_study(job: Study) -> str:
    """A Study in a few words."""
    return '%s of iteration %s, T=%d, %s images' % (
        job.study, '{:,}'.format(job.iteration), job.T, '{:,}'.format(job.passed))
