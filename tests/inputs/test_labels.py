"""Which class a picture has: by labels.csv, by folders named by numbers or by names, and what is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bcnn.errors import UserError
from bcnn.inputs import labels


def make(folder, *names):
    for name in names:
        (folder / name).mkdir()
        (folder / name / 'x.png').write_bytes(b'x')
    return str(folder)


def test_folders_named_by_numbers_are_these_classes(tmp_path):
    found = labels.of_folder(make(tmp_path, '4', '7', '10', '09'))
    assert found.items == [('4/x.png', 4), ('7/x.png', 7), ('09/x.png', 9), ('10/x.png', 10)]
    assert found.classes is None and 'numbers' in found.rule


@settings(max_examples=30)
@given(st.sets(st.integers(0, 5000), min_size=1, max_size=8))
def test_any_numbers(tmp_path_factory, numbers):
    found = labels.of_folder(make(tmp_path_factory.mktemp('x'), *[str(number) for number in numbers]))
    assert [label for _, label in found.items] == sorted(numbers)
    assert all(name == '%d/x.png' % label for name, label in found.items)


def test_other_names_are_numbered_in_order_and_the_table_is_told(tmp_path):
    found = labels.of_folder(make(tmp_path, 'cat', 'ant', '.hidden'))
    assert found.items == [('ant/x.png', 0), ('cat/x.png', 1)]
    assert found.rule == 'folders numbered in order of name, 0 ant, 1 cat' and found.classes == ['ant', 'cat']


def test_a_list_of_classes_decides(tmp_path):
    (tmp_path / 'classes.txt').write_text('dog\ncat, the animal\nant\n')
    pictures = tmp_path / 'pictures'
    pictures.mkdir()
    with pytest.raises(UserError, match='folder cat: no such class in .*classes.txt'):
        labels.of_folder(make(pictures, 'ant', 'cat'), str(tmp_path / 'classes.txt'))
    (tmp_path / 'classes.txt').write_text('dog\ncat the animal\nant\n\n')  # its first word is enough: synset_words.txt
    found = labels.of_folder(str(pictures), str(tmp_path / 'classes.txt'))
    assert found.items == [('cat/x.png', 1), ('ant/x.png', 2)] and found.classes[0] == 'dog'


@pytest.mark.parametrize('text, numbers', [
    ('zero\none\ntwo\n', [0, 2]), ('2\n0\n', [1, 0]), ('2 the second\n0 none\n', [1, 0])], ids=['names', 'numbers', 'first words'])
def test_folders_named_by_numbers_with_a_list_of_names(tmp_path, text, numbers):
    """The number is the class, and the list only names it, unless the list has these very names."""
    (tmp_path / 'classes.txt').write_text(text)
    pictures = tmp_path / 'pictures'
    pictures.mkdir()
    found = labels.of_folder(make(pictures, '0', '2'), str(tmp_path / 'classes.txt'))
    assert dict(found.items) == dict(zip(['0/x.png', '2/x.png'], numbers)) and found.classes == text.splitlines()


def test_names_in_labels_csv_by_the_list_of_classes(tmp_path):
    (tmp_path / 'classes.txt').write_text('dog\ncat\n')
    for name in ('a.png', 'b.png'):
        (tmp_path / name).write_bytes(b'x')
    (tmp_path / 'labels.csv').write_text('a.png,cat\nb.png,0\n')
    assert labels.of_folder(str(tmp_path), str(tmp_path / 'classes.txt')).items == [('a.png', 1), ('b.png', 0)]
    with pytest.raises(UserError, match='labels.csv, line 1: .*--classes'):
        labels.of_folder(str(tmp_path))


@pytest.mark.parametrize('names, words', [
    (['1', '2', 'other'], 'by numbers \\(1\\) and by words \\(other\\)'), (['7', '07'], 'the same class as another'),
    (['class1', 'class2', 'class10'], 'order by letters is not that by numbers'), (['4000000000'], 'too large')])
def test_what_cannot_be_told_is_refused(tmp_path, names, words):
    with pytest.raises(UserError, match=words):
        labels.of_folder(make(tmp_path, *names))


@pytest.mark.parametrize('text, words', [(b'a\n\nb\n', 'line 2: empty'), (b'a\nb\na\n', 'line 3: the same name'),
                                         (b'\xff\xfe', 'not a list of class names')])
def test_a_bad_list_of_classes_is_named(tmp_path, text, words):
    (tmp_path / 'classes.txt').write_bytes(text)
    with pytest.raises(UserError, match=words):
        labels.read_classes(str(tmp_path / 'classes.txt'))


def test_a_long_table_is_cut_in_what_people_read():
    assert labels.table(['c%d' % i for i in range(200)]).endswith('48 c48, ..., 199 c199')
