"""Durations in every spelling people use, as whole microseconds."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from typing import TypeAlias, TypeGuard

import numpy as np

from muntin.errors import WindowError
from muntin.windows.parse import CALENDAR_HINT, parse_duration
from muntin.windows.units import NUMPY_UNITS, SHOWN_UNITS

DurationLike: TypeAlias = int | str | timedelta | np.timedelta64

INT64_LIMIT = 2**63


def duration(value: DurationLike) -> int:
    """A length of time as an integer: microseconds, or the number itself if it is a plain integer.

    Texts ("12 minutes", "90s", "1h30m", INTERVAL '5' MINUTE, PT5M), timedelta, numpy's timedelta64
    and pandas' Timedelta count as microseconds. Plain integers pass through unchanged, because a
    stream whose time column is a sequence number measures ranges in its own units. Months, years,
    floats, and whatever is no whole number of microseconds are refused.

    >>> duration("12 minutes"), duration("1.5s"), duration(18)
    (720000000, 1500000, 18)
    """
    if type(value) is int and -INT64_LIMIT <= value < INT64_LIMIT:
        return value
    if is_plain(value):
        return _checked(Fraction(int(value)), value)
    if isinstance(value, str):
        return _checked(parse_duration(value), value)
    if isinstance(value, np.timedelta64):
        return _checked(_from_numpy(value), value)
    if isinstance(value, timedelta):
        return _checked(_from_timedelta(value), value)
    raise WindowError(
        f"{value!r} of type {type(value).__name__} is no duration",
        hint="pass a text such as '1.5 hours', a timedelta, or an integer",
    )


def is_plain(value: object) -> TypeGuard[int]:
    """Whether a value is a plain integer, so that it has no unit of its own.

    >>> is_plain(18), is_plain("18 seconds"), is_plain(True)
    (True, False, False)
    """
    # numpy's timedelta64 is one of numpy's integers, Python's bool one of Python's.
    if type(value) is int:
        return True
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def duration_text(microseconds: int) -> str:
    """A duration as people write it, in the largest unit that measures it exactly.

    The inverse of `duration`, for plans and messages.

    >>> duration_text(720_000_000), duration_text(-1_500_000)
    ('12 minutes', '-1500 milliseconds')
    """
    if microseconds == 0:
        return "0 seconds"
    name, length = next(unit for unit in SHOWN_UNITS if microseconds % unit[1] == 0)
    count = microseconds // length
    return f"{count} {name}" if abs(count) == 1 else f"{count} {name}s"


def _from_timedelta(value: timedelta) -> Fraction:
    # pandas' Timedelta is a timedelta that keeps nanoseconds aside.
    extra = Fraction(getattr(value, "nanoseconds", 0), 1000)
    return Fraction(value // timedelta(microseconds=1)) + extra


def _from_numpy(value: np.timedelta64) -> Fraction:
    unit, count = np.datetime_data(value.dtype)
    if np.isnat(value) or unit == "generic":
        raise WindowError(f"{value!r} is no duration", hint="give it a value and a unit")
    if unit not in NUMPY_UNITS:
        raise WindowError(f"{value!r} has no fixed length", hint=CALENDAR_HINT)
    return int(value.astype(np.int64)) * count * NUMPY_UNITS[unit]


def _checked(microseconds: Fraction, value: object) -> int:
    if microseconds.denominator != 1:
        raise WindowError(
            f"duration {value!r} is no whole number of microseconds",
            hint="time is kept in microseconds: round it to one",
        )
    if not -INT64_LIMIT <= microseconds < INT64_LIMIT:
        raise WindowError(
            f"duration {value!r} does not fit into 64 bits",
            hint="the longest duration is about 292,000 years",
        )
    return int(microseconds)
