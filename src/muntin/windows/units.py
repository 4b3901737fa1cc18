"""The units a duration may be written in, and their lengths in microseconds."""

from __future__ import annotations

from fractions import Fraction

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
