"""How many images a batch may have, on the CPU and on GPUs of several sizes."""

import pytest

from bcnn import batches, engine, nets
from bcnn.errors import CaffeError, UserError
from bcnn.mc import evaluation, sampling
from evalhelp import small_target

pytestmark = pytest.mark.caffe
OUT_OF_MEMORY = 'Check failed: error == cudaSuccess (2 vs. 0)  out of memory'
GB = 1e9


@pytest.mark.parametrize('size, copies, batch', [(100e3, 1, 1000), (2.9e6, 1, 100), (2.9e6, 100, 1), (1e9, 1, 1), (10, 1, 1000)])
def test_the_batch_fits_the_budget(size, copies, batch):
    assert batches.fitting(batches.Need(size, size / 40), copies) == batch


def test_what_an_image_takes():
    """LeNet on MNIST: the input, two convolutions with their pools, two layers of units, the softmax, by hand."""
    need = batches.need_of(engine.load_net(nets.deploy('lenet_none', 'mnist', batch=3)))
    values = [784, 20 * 24 * 24, 20 * 12 * 12, 50 * 8 * 8, 50 * 4 * 4, 500, 500, 10, 10]
    assert need == (4 * sum(values), 20 * 24 * 24)


@pytest.mark.parametrize('memory, copies, batch', [(2 * GB, 1, 200), (24 * GB, 1, 1000), (24 * GB, 100, 20), (80 * GB, 100, 100)])
def test_a_larger_gpu_gets_larger_batches(monkeypatch, memory, copies, batch):
    """4 MB an image, as NIN: T copies of each image, as many images as fit."""
    monkeypatch.setattr(engine, 'gpus', lambda: {'gpus': [None, {'memory': memory}]})
    assert batches.fitting(batches.Need(3.2e6, 196608), copies, batches.budget_of(1)) == batch


def test_no_blob_is_larger_than_caffe_can_count():
    """196,608 values an image, 100 copies of it: 109 images would make 2^31."""
    need = batches.Need(1, 196608)
    assert batches.fitting(need, 100, budget=1e30) == 100 and batches.fitting(need, 120, budget=1e30) == 50


@pytest.mark.parametrize('free, advice', [(3 * GB, '3000 MB are free: --batch 500 would fit'), (0.001 * GB, 'not even --batch 1')])
def test_too_little_memory_names_the_batch_that_fits(monkeypatch, free, advice):
    monkeypatch.setattr(batches, 'free_on', lambda gpu: free)
    error = batches.explained(CaffeError(OUT_OF_MEMORY), 0, 1000, batches.Need(4e6, 1e5))
    assert str(error).startswith('GPU 0 has not enough memory for batches of 1000 images, which take about 4000 MB')
    assert advice in str(error)


def test_other_errors_stay_as_they_are():
    error = CaffeError('something else')
    assert batches.explained(error, 0, 10, batches.Need(1, 1)) is error
    out = CaffeError(OUT_OF_MEMORY)
    assert batches.explained(out, None, 10, batches.Need(1, 1)) is out


def test_an_evaluation_that_a_gpu_has_no_memory_for_ends_with_a_line(monkeypatch, tmp_path):
    """The worker dies as it would on a GPU; the batch was chosen for its whole memory, most of which others use."""
    def dies(*_):
        raise CaffeError(OUT_OF_MEMORY)

    monkeypatch.setattr(engine, 'gpus', lambda: {'gpus': [{'memory': 8 * GB}]})
    monkeypatch.setattr(batches, 'free_on', lambda gpu: 1000)
    monkeypatch.setattr(sampling, 'Worker', dies)
    target = small_target(tmp_path, 30)
    settings = evaluation.prepare(target, evaluation.Settings(T=2, repeats=1, seed=1, mode='stream', gpu=0))
    assert settings.batch == 1000
    with pytest.raises(UserError, match='GPU 0 has not enough memory for batches of 1000 .* --batch [25] would fit'):
        evaluation.run(target, settings, str(tmp_path / 'mc'))
