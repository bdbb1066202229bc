"""Durations as people read them: a clock for what runs now, a rough figure for what would take long.

Plain Python of the standard library alone: analysis/ takes it too.
"""

from typing import Optional

UNITS = ((365 * 86400.0, 'years'), (86400.0, 'days'), (3600.0, 'hours'), (60.0, 'min'), (1.0, 's'))
CORE_UNITS = ((86400.0, 'core days'), (3600.0, 'core hours'))


def clock(seconds: float) -> str:
    """'1:30', '1:02:03', '4 d 1:02:03'"""
    minutes, seconds = divmod(int(round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days or hours:
        return '%s%d:%02d:%02d' % ('%d d ' % days if days else '', hours, minutes, seconds)
    return '%d:%02d' % (minutes, seconds)


def rough(seconds: Optional[float]) -> str:
    """'40 s', '7 min', '2.5 hours', '4 days', '2.1 years'; 'unknown' of None."""
    return 'unknown' if seconds is None else _in_units(seconds, UNITS)


def core_time(seconds: Optional[float]) -> str:
    """'0.5 core hours', '4 core days', for what would be computed; 'unknown' of None."""
    return 'unknown' if seconds is None else _in_units(seconds, CORE_UNITS)


def _in_units(seconds, units):
    """Two digits at least, in the largest unit of which there are two; the last unit takes what is less."""
    size, unit = next((unit for unit in units if seconds >= 2 * unit[0]), units[-1])
    amount = seconds / size
    return '%s %s' % ('{:,.0f}'.format(amount) if amount >= 9.95 or size == 1 else '%.2g' % amount, unit)
