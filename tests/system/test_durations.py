"""Durations as people read them."""

import pytest

from bcnn.system import durations


@pytest.mark.parametrize('seconds, text', [
    (0, '0:00'), (0.6, '0:01'), (61, '1:01'), (3599.6, '1:00:00'), (3661, '1:01:01'), (90061, '1 d 1:01:01'),
    (86400 * 12 + 59, '12 d 0:00:59')])
def test_a_clock(seconds, text):
    assert durations.clock(seconds) == text


@pytest.mark.parametrize('seconds, text', [
    (None, 'unknown'), (5, '5 s'), (119.4, '119 s'), (120, '2 min'), (444, '7.4 min'), (7000, '117 min'), (7200, '2 hours'),
    (3600 * 9.96, '10 hours'), (3600 * 47, '47 hours'), (86400 * 5, '5 days'), (86400 * 600, '600 days'),
    (86400 * 365 * 2.14, '2.1 years')])
def test_a_rough_figure(seconds, text):
    assert durations.rough(seconds) == text


@pytest.mark.parametrize('seconds, text', [
    (None, 'unknown'), (1800, '0.5 core hours'), (3600 * 47, '47 core hours'), (86400 * 2.7, '2.7 core days'),
    (86400 * 1234, '1,234 core days')])
def test_what_would_be_computed(seconds, text):
    assert durations.core_time(seconds) == text
