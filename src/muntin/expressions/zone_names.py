"""Names of time zones as Spark reads them, and the zones that this machine's database has.

The database's files are described in RFC 9636, and their rules in POSIX.
"""

from __future__ import annotations

import importlib.resources
import re
import struct
import zoneinfo
from functools import cache
from pathlib import Path

from muntin.errors import DataError, did_you_mean
from muntin.expressions.zones import UTC, YearlyChange, Zone

MOST = 18 * 3600  # the largest offset that java.time knows

OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?([+-])(?:(\d\d?)|(\d\d?):(\d\d?)|(\d\d)(\d\d)|(\d\d?):(\d\d):(\d\d)|"
    r"(\d\d)(\d\d)(\d\d))",
    re.ASCII,
)
REGION = re.compile(r"[A-Za-z][A-Za-z0-9~/._+-]+")
HEADER = struct.Struct(">4sc15x6l")
RULE = re.compile(
    r"(?:<[^>]+>|[A-Za-z]+)(?P<standard>[+-]?[\d:]+)"
    r"(?:(?:<[^>]+>|[A-Za-z]+)(?P<saving>[+-]?[\d:]+)?"
    r",M(?P<begin>[\d.]+)(?:/(?P<begin_time>[+-]?[\d:]+))?"
    r",M(?P<end>[\d.]+)(?:/(?P<end_time>[+-]?[\d:]+))?)?"
)
# What Spark's users could write before there were names of regions: java.time.ZoneId.SHORT_IDS.
SHORT = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
    "EST": "-05:00",
    "MST": "-07:00",
    "HST": "-10:00",
}


@cache
def zone(name: str) -> Zone:
    """The zone of a name: a region, or an offset from UTC.

    Raises:
        DataError: If there is no such zone.

    >>> zone("UTC+05:30").fixed, zone("Z").fixed, zone("America/New_York").first
    (19800, 0, -17762)
    >>> zone("America/New_Yorc")
    Traceback (most recent call last):
    muntin.errors.DataError: there is no time zone 'America/New_Yorc'
    Hint: did you mean America/New_York?
    """
    found = fixed_zone(name)
    if found is None and REGION.fullmatch(name) is not None and ".." not in name:
        found = _read(name, SHORT.get(name, name))
    if found is None:
        raise unknown_zone(name)
    return found


def fixed_zone(name: str) -> Zone | None:
    """The zone of a name that says its offset; None for other names.

    >>> fixed_zone("-1:30").fixed, fixed_zone("EST").fixed, fixed_zone("Europe/Paris")
    (-5400, -18000, None)
    """
    if not isinstance(name, str):
        raise DataError(
            f"the time zone is {name!r}, not a name",
            hint="write it as in timezone='America/New_York' or timezone='+01:00'",
        )
    if name in ("UTC", "Z", "GMT", "UT"):
        return UTC if name == "UTC" else Zone(name)
    offset = OFFSET.fullmatch(SHORT.get(name, name))
    if offset is None:
        return None
    sign, *digits = (group for group in offset.groups() if group is not None)
    hours, minutes, seconds = [*map(int, digits), 0, 0][:3]
    size = (hours * 60 + minutes) * 60 + seconds
    if minutes > 59 or seconds > 59 or size > MOST:
        raise DataError(
            f"{name!r} is not an offset from UTC", hint="offsets lie between -18:00 and +18:00"
        )
    return Zone(name, -size if sign == "-" else size)


def unknown_zone(name: str) -> DataError:
    """The error for a name that no zone has."""
    known = zoneinfo.available_timezones()
    hint = "name a region, as in 'Europe/Paris', or an offset, as in '+01:00'"
    if not known:
        hint = "there is no time zone database here: install the package tzdata"
    close = did_you_mean(name, known | {"UTC"})
    return DataError(f"there is no time zone {name!r}", hint=close or hint)


def _read(name: str, region: str) -> Zone | None:
    """A region of the database; None where it has none of this name."""
    data = _content(region)
    if data is None or not data.startswith(b"TZif"):
        return None
    first, changes, rule = _parse(data)
    offsets = [first, *(offset for _, offset in changes)]
    real = [one for before, one in zip(offsets, changes, strict=False) if one[1] != before]
    return Zone(name, first, tuple(real), _yearly(rule))


def _content(region: str) -> bytes | None:
    """The file of a region, from where Python's own ``zoneinfo`` takes it."""
    for folder in zoneinfo.TZPATH:
        path = Path(folder, region)
        if path.is_file():
            return path.read_bytes()
    try:
        packaged = importlib.resources.files("tzdata").joinpath("zoneinfo", region)
        return packaged.read_bytes() if packaged.is_file() else None
    except ModuleNotFoundError:
        return None


def _parse(data: bytes) -> tuple[int, list[tuple[int, int]], str]:
    """The first offset, the changes that are listed, and the rule for the time after them."""
    _, version, *counts = HEADER.unpack_from(data)
    start, width, form = HEADER.size, 4, "l"
    if version >= b"2":
        # The first block is for readers that know 32 bits only.
        start += _size(counts, width)
        _, _, *counts = HEADER.unpack_from(data, start)
        start, width, form = start + HEADER.size, 8, "q"
    _, _, _, times, kinds, _ = counts
    instants = struct.unpack_from(f">{times}{form}", data, start)
    places = data[start + times * width : start + times * (width + 1)]
    offsets = [
        struct.unpack_from(">l", data, start + times * (width + 1) + 6 * kind)[0]
        for kind in range(kinds)
    ]
    changes = [(instant, offsets[place]) for instant, place in zip(instants, places, strict=True)]
    rule = data[start + _size(counts, width) :].strip(b"\n").decode() if width == 8 else ""
    return offsets[0], changes, rule


def _size(counts: list[int], width: int) -> int:
    ut, std, leaps, times, kinds, letters = counts
    return times * (width + 1) + kinds * 6 + letters + leaps * (width + 4) + std + ut


def _yearly(rule: str) -> tuple[YearlyChange, ...]:
    """The changes that a rule stands for.

    >>> _yearly("EST5EDT,M3.2.0,M11.1.0")[0]
    YearlyChange(month=3, day=8, weekday=6, seconds=25200, offset=-14400)
    """
    found = RULE.fullmatch(rule)
    if found is None or found["begin"] is None:
        return ()
    standard = -_seconds(found["standard"])
    saving = standard + 3600 if found["saving"] is None else -_seconds(found["saving"])
    return (
        _change(found["begin"], _seconds(found["begin_time"] or "2") - standard, saving),
        _change(found["end"], _seconds(found["end_time"] or "2") - saving, standard),
    )


def _change(day: str, seconds: int, offset: int) -> YearlyChange:
    """A change on a day that is given as month, week (the last is 5) and weekday from Sunday."""
    month, week, weekday = map(int, day.split("."))
    return YearlyChange(
        month, -1 if week == 5 else week * 7 - 6, (weekday - 1) % 7, seconds, offset
    )


def _seconds(text: str) -> int:
    """Hours, perhaps with minutes and seconds.

    >>> _seconds("-3:30"), _seconds("26")
    (-12600, 93600)
    """
    hours, minutes, seconds = [*map(int, text.lstrip("+-").split(":")), 0, 0][:3]
    size = (hours * 60 + minutes) * 60 + seconds
    return -size if text.startswith("-") else size
