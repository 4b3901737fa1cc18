"""Durations in every spelling people use, as whole microseconds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import groupby
from typing import TypeAlias, TypeGuard

import numpy as np

from muntin.errors import WindowError, did_you_mean

DurationLike: TypeAlias = int | str | timedelta | np.timedelta64

INT64_LIMIT = 2**63


def duration(value: DurationLike) -> int:
    """A length of time as an integer: microseconds, or the number itself if it is a plain integer.

    Texts ("12 minutes", "90s", "1h30m", INTERVAL '5' MINUTE, PT5M), timedelta, numpy's timedelta64
    and pandas' Timedelta count as microseconds. Plain integers pass through unchanged, because a
    stream whose time column is a sequence number measures ranges in its own units. Months, years,
    floats, and whatever is not a whole number of microseconds are refused.

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
        f"{value!r} of type {type(value).__name__} is not a duration",
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
    >>> duration_text(3_600_000_001)
    '1 hour 1 microsecond'
    """
    if microseconds == 0:
        return "0 seconds"
    if microseconds > 1 and microseconds % 1_000_000 == 1:
        # One tick more than something that people write: it closes a half-open interval.
        return f"{duration_text(microseconds - 1)} 1 microsecond"
    name, length = next(unit for unit in SHOWN_UNITS if microseconds % unit[1] == 0)
    count = microseconds // length
    return f"{count} {name}" if abs(count) == 1 else f"{count} {name}s"


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def distance_text(microseconds: int) -> str:
    """How far two times are apart, to the second; in hours and minutes where it is that far.

    >>> distance_text(90_000_017), distance_text(4_565_000_000), distance_text(1_500)
    ('90 seconds', '1 hour 16 minutes', '1500 microseconds')
    """
    second, minute, hour = 1_000_000, 60_000_000, 3_600_000_000
    if abs(microseconds) < second:
        return duration_text(microseconds)
    if microseconds < hour:
        return duration_text(round(microseconds / second) * second)
    hours, minutes = divmod(round(microseconds / minute), 60)
    if not minutes:
        return duration_text(hours * hour)
    return f"{duration_text(hours * hour)} {duration_text(minutes * minute)}"


def moment_text(tick: int) -> str:
    """A tick of a time column that holds times, as a time of day; far years as a number.

    >>> moment_text(1_381_152_600_000_000)
    '2013-10-07 13:30:00'
    """
    try:
        moment = _EPOCH + timedelta(microseconds=tick)
    except OverflowError:
        return f"{tick:,}"
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def _from_timedelta(value: timedelta) -> Fraction:
    # pandas' Timedelta is a timedelta that keeps nanoseconds aside.
    extra = Fraction(getattr(value, "nanoseconds", 0), 1000)
    return Fraction(value // timedelta(microseconds=1)) + extra


def _from_numpy(value: np.timedelta64) -> Fraction:
    unit, count = np.datetime_data(value.dtype)
    if np.isnat(value) or unit == "generic":
        raise WindowError(f"{value!r} is not a duration", hint="give it a value and a unit")
    if unit not in NUMPY_UNITS:
        raise WindowError(f"{value!r} has no fixed length", hint=CALENDAR_HINT)
    return int(value.astype(np.int64)) * count * NUMPY_UNITS[unit]


def _checked(microseconds: Fraction, value: object) -> int:
    if microseconds.denominator != 1:
        raise WindowError(
            f"duration {value!r} is not a whole number of microseconds",
            hint="time is kept in microseconds: round it to one",
        )
    if not -INT64_LIMIT <= microseconds < INT64_LIMIT:
        raise WindowError(
            f"duration {value!r} does not fit into 64 bits",
            hint="the longest duration is about 292,000 years",
        )
    return int(microseconds)


SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY

# Both letters that look like mu: the micro sign and the Greek letter.
_MICRO = "\N{MICRO SIGN}s \N{GREEK SMALL LETTER MU}s"

_SPELLINGS: tuple[tuple[Fraction | int, str], ...] = (
    (Fraction(1, 1000), "nanosecond nanoseconds nanos ns"),
    (1, f"microsecond microseconds micros micro usec usecs us {_MICRO}"),
    (1000, "millisecond milliseconds millis milli msec msecs ms"),
    (SECOND, "second seconds sec secs s"),
    (MINUTE, "minute minutes min mins m"),
    (HOUR, "hour hours hr hrs h"),
    (DAY, "day days d"),
    (WEEK, "week weeks wk wks w"),
)

UNITS: dict[str, Fraction] = {
    name: Fraction(length) for length, names in _SPELLINGS for name in names.split()
}

# Units without a fixed length: a window of one would not repeat evenly.
CALENDAR_UNITS = frozenset(
    "month months mon mons mo quarter quarters year years yr yrs y".split()  # noqa: SIM905
)

# What numpy calls its units of timedelta64; "Y" and "M" are calendar units.
NUMPY_UNITS: dict[str, Fraction] = {
    **{code: UNITS[code] for code in ("ns", "us", "ms", "s", "m", "h")},
    "D": UNITS["d"],
    "W": UNITS["w"],
    "ps": Fraction(1, 10**6),
    "fs": Fraction(1, 10**9),
    "as": Fraction(1, 10**12),
}

# ISO 8601 writes P1DT2H30M: before the T the letter M would mean months.
ISO_DATE_UNITS = frozenset("wd")
ISO_TIME_UNITS = frozenset("hms")

# The fields of a SQL day-time interval, largest first, each with how many fit into the one before.
INTERVAL_FIELDS: tuple[tuple[str, int], ...] = (
    ("day", 0),
    ("hour", 24),
    ("minute", 60),
    ("second", 60),
)

# Largest first; a duration is shown in the largest of these that measures it exactly.
SHOWN_UNITS: tuple[tuple[str, int], ...] = (
    ("day", DAY),
    ("hour", HOUR),
    ("minute", MINUTE),
    ("second", SECOND),
    ("millisecond", 1000),
    ("microsecond", 1),
)


EXAMPLES = "write a number and a unit, such as '12 minutes', '90s', '1h30m' or INTERVAL '5' MINUTE"
CALENDAR_HINT = "months and years differ in length: use days or weeks"
# Longer than any sensible duration; keeps hostile text from costing anything.
MAX_LENGTH = 100

_FIELD_NAMES = [name for name, _ in INTERVAL_FIELDS]


def parse_duration(text: str) -> Fraction:
    """The microseconds that a text spells, as an exact fraction.

    Understands "12 minutes", "1h30m", "1.5 hours", the SQL forms INTERVAL '5' MINUTE,
    INTERVAL '5 minutes', INTERVAL 5 MINUTES and INTERVAL '1:30' HOUR TO MINUTE, and ISO 8601's
    PT1H30M. Letter case does not matter. A minus sign stands before a single quantity only, since
    "-1h30m" is read as 90 or as 30 minutes depending on the system.

    >>> parse_duration("1h30m") == parse_duration("INTERVAL '90' MINUTE")
    True
    """
    if len(text) > MAX_LENGTH:
        raise WindowError(f"duration of {len(text)} characters is too long", hint=EXAMPLES)
    tokens = list(_tokens(text))
    if tokens[:1] == ["interval"]:
        return _interval(text, tokens[1:])
    if tokens[:1] in (["p"], ["pt"]):
        return _iso(text, tokens)
    return _quantities(text, tokens)


def _tokens(text: str) -> Iterator[str]:
    """Runs of digits, runs of letters, and every other character alone; spaces only separate."""
    for kind, run in groupby(text.strip().lower(), _kind):
        if kind == "other":
            yield from run
        elif kind != "space":
            yield "".join(run)


def _kind(character: str) -> str:
    # str.isdigit() would let in digits of other scripts, which int() reads and people misread.
    if character in "0123456789.":
        return "number"
    if character.isalpha():
        return "word"
    return "space" if character.isspace() else "other"


def _quantities(text: str, tokens: list[str]) -> Fraction:
    """The sum of number-unit pairs, largest unit first, each unit once."""
    negative = tokens[:1] == ["-"]
    if tokens[:1] in (["-"], ["+"]):
        tokens = tokens[1:]
    if not tokens:
        raise WindowError(f"duration {text!r} is empty", hint=EXAMPLES)
    if negative and len(tokens) > 2:
        raise WindowError(
            f"duration {text!r} has a sign before several quantities",
            hint="write one quantity, such as '-90 minutes'",
        )
    total, smallest = Fraction(0), None
    for number, unit in _pairs(text, tokens):
        amount, length = _number(text, number), _unit(text, unit)
        if smallest is not None and length >= smallest:
            raise WindowError(
                f"duration {text!r} has its units out of order",
                hint="name each unit once, the largest first, such as '1 hour 30 minutes'",
            )
        smallest = length
        total += amount * length
    return -total if negative else total


def _pairs(text: str, tokens: list[str]) -> list[tuple[str, str]]:
    if len(tokens) == 1 and tokens[0][0] in "0123456789.":
        raise WindowError(
            f"duration {text!r} has no unit",
            hint=f"write '{tokens[0]} seconds', or pass an integer for a plain number",
        )
    if len(tokens) % 2:
        raise WindowError(f"cannot read duration {text!r}", hint=EXAMPLES)
    return list(zip(tokens[::2], tokens[1::2], strict=True))


def _number(text: str, token: str) -> Fraction:
    # Fraction alone would also read "1/3", "1_000" and "1e9".
    if token.strip("0123456789.") or token.count(".") > 1 or token in ("", "."):
        raise WindowError(
            f"cannot read duration {text!r}: {token!r} is not a number", hint=EXAMPLES
        )
    return Fraction(token)


def _unit(text: str, token: str) -> Fraction:
    if token in CALENDAR_UNITS:
        raise WindowError(f"duration {text!r} has no fixed length in {token!r}", hint=CALENDAR_HINT)
    if token not in UNITS:
        names = [name for name in UNITS if len(name) > 2]
        raise WindowError(
            f"duration {text!r} has an unknown unit {token!r}",
            hint=did_you_mean(token, names) or EXAMPLES,
        )
    return UNITS[token]


def _interval(text: str, tokens: list[str]) -> Fraction:
    """What follows the word INTERVAL; quotes may stand around the number or around all of it."""
    if tokens.count("'") not in (0, 2):
        raise WindowError(f"duration {text!r} has an unclosed quote", hint=EXAMPLES)
    if "to" in tokens:
        return _interval_fields(text)
    return _quantities(text, [token for token in tokens if token != "'"])


def _interval_fields(text: str) -> Fraction:
    """INTERVAL 'd hh:mm:ss' DAY TO SECOND, or any run of these fields."""
    head, quoted, tail = (*text.lower().split("'"), "", "")[:3]
    match head.split(), tail.split():
        case ["interval"], [first, "to", last] if {first, last} <= set(_FIELD_NAMES):
            fields = INTERVAL_FIELDS[_FIELD_NAMES.index(first) : _FIELD_NAMES.index(last) + 1]
        case _:
            fields = ()
    # A space sets days apart from hours, colons all else.
    values = quoted.strip().replace(" ", ":", int(fields[:1] == INTERVAL_FIELDS[:1])).split(":")
    if len(fields) < 2 or len(fields) != len(values):
        raise WindowError(
            f"cannot read duration {text!r}", hint="write it as INTERVAL '1:30' HOUR TO MINUTE"
        )
    total = Fraction(0)
    for position, ((name, limit), value) in enumerate(zip(fields, values, strict=True)):
        number = _number(text, value)
        if position and number >= limit:
            raise WindowError(
                f"duration {text!r} has {value} in its {name} field",
                hint=f"a {name} field after a larger one lies below {limit}",
            )
        total += number * UNITS[name]
    return total


def _iso(text: str, tokens: list[str]) -> Fraction:
    """ISO 8601: P, then weeks and days, then T and hours, minutes and seconds."""
    letters = "".join(tokens)
    date, _, time = letters[1:].partition("t")
    for part, known in ((date, ISO_DATE_UNITS), (time, ISO_TIME_UNITS)):
        for _, unit in _pairs(text, list(_tokens(part))):
            if unit not in known:
                raise WindowError(
                    f"duration {text!r} has {unit.upper()!r} where it has no fixed length",
                    hint="write ISO 8601 as P1DT2H30M: weeks and days, T, then hours to seconds",
                )
    return _quantities(text, list(_tokens(date)) + list(_tokens(time)))
