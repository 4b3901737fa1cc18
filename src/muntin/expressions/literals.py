"""Constants: their types, and strings read as values of other types."""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal, InvalidOperation

import pyarrow as pa

from muntin.expressions import types as t
from muntin.expressions.problems import BindingError
from muntin.expressions.tree import Literal

# Python's own context would round constants of more than 28 digits.
EXACT = Context(prec=1000, Emax=MAX_EMAX, Emin=MIN_EMIN)
MICROS_PER_SECOND = 1_000_000
MICROS_PER_DAY = 86_400 * MICROS_PER_SECOND
DAYS_PER_ERA = 146_097  # 400 Gregorian years
EPOCH_ORDINAL = dt.date(1970, 1, 1).toordinal()

DATE_TEXT = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.S | re.A)
TIME_TEXT = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,9}))?)?\s*(.*)")
OFFSET_TEXT = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")
TRUE_TEXTS = frozenset(["t", "true", "y", "yes", "1"])
FALSE_TEXTS = frozenset(["f", "false", "n", "no", "0"])


def number(text: str) -> Literal:
    """A number as SQL writes it: INT, BIGINT, DECIMAL with a point, DOUBLE with an exponent.

    >>> [t.name_of(number(text).type) for text in ("7", "3000000000", "1.50", "1e3")]
    ['INT', 'BIGINT', 'DECIMAL(3,2)', 'DOUBLE']
    """
    if "e" in text.lower():
        return Literal(float(text), t.DOUBLE, text.lower())
    if "." in text:
        return decimal_number(Decimal(text), text)
    value = int(text)
    for kind in (t.INT, t.BIGINT):
        if t.BOUNDS[kind][0] <= value <= t.BOUNDS[kind][1]:
            return Literal(value, kind, str(value))
    return decimal_number(Decimal(value), text)


def decimal_number(value: Decimal, text: str) -> Literal:
    """An exact decimal constant of the fewest digits that show it as written."""
    _, digits, exponent = value.as_tuple()
    scale = -int(exponent)
    kind = t.decimal(max(len(digits), scale), scale)
    return Literal(int(value.scaleb(scale, EXACT)), kind, text)


def quoted(text: str) -> str:
    """A string as SQL writes it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def string(text: str) -> Literal:
    """A string constant."""
    return Literal(text, t.STRING, quoted(text))


def boolean(value: bool) -> Literal:
    """TRUE or FALSE."""
    return Literal(value, t.BOOLEAN, str(value).upper())


def convert(literal: Literal, kind: pa.DataType) -> Literal | None:
    """The constant in another type, as CAST would make it; None where that takes the evaluator.

    The text stays what the user wrote.
    """
    value, source = literal.value, literal.type
    if value is None:
        return Literal(None, kind, literal.text)
    if isinstance(value, str):
        return Literal(_read(value, kind), kind, literal.text)
    if t.is_integer(source) and t.is_integer(kind):
        return Literal(value, kind, literal.text) if _fits(int(value), kind) else None
    if t.is_float(kind) and (t.is_integer(source) or t.is_decimal(source)):
        scale = source.scale if t.is_decimal(source) else 0
        return Literal(
            _as_float(Decimal(int(value)).scaleb(-scale, EXACT), kind), kind, literal.text
        )
    if t.is_decimal(kind) and t.is_integer(source):
        return Literal(int(value) * 10**kind.scale, kind, literal.text)
    if t.is_decimal(kind) and t.is_decimal(source) and kind.scale >= source.scale:
        return Literal(int(value) * 10 ** (kind.scale - source.scale), kind, literal.text)
    return None


def _fits(value: int, kind: pa.DataType) -> bool:
    low, high = t.BOUNDS[kind]
    return low <= value <= high


def _as_float(value: Decimal, kind: pa.DataType) -> float:
    return float(pa.scalar(float(value), kind).as_py())


def _read(text: str, kind: pa.DataType) -> int | float | str | bytes:
    """A string constant read as another type, or an error at bind time."""
    try:
        value = _parse(text.strip(), kind)
    except (ValueError, InvalidOperation):
        value = None
    if value is None:
        raise BindingError(
            f"{quoted(text)} is not a valid {t.name_of(kind)}",
            hint="write such a value, or CAST the other side AS STRING",
        )
    return value


def _parse(text: str, kind: pa.DataType) -> int | float | str | bytes | None:
    if t.is_number(kind):
        # Python would also take digits of other scripts, and underscores between them.
        return _parse_number(text, kind) if text.isascii() and "_" not in text else None
    if kind == t.BOOLEAN:
        known = {**dict.fromkeys(TRUE_TEXTS, True), **dict.fromkeys(FALSE_TEXTS, False)}
        return known.get(text.lower())
    if kind == t.DATE:
        return parse_date(text)
    if kind in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return parse_timestamp(text, zoned=kind == t.TIMESTAMP)
    return None


def _parse_number(text: str, kind: pa.DataType) -> int | float | None:
    if t.is_integer(kind):
        return int(text) if _fits(int(text), kind) else None
    if t.is_float(kind):
        return _as_float(Decimal(text), kind)
    scaled = Decimal(text).scaleb(kind.scale, EXACT).to_integral_value(ROUND_HALF_UP, EXACT)
    return int(scaled) if abs(scaled) < 10**kind.precision else None


def parse_date(text: str) -> int | None:
    """Days since 1970 of `yyyy`, `yyyy-m` or `yyyy-m-d`, perhaps with a time that is ignored.

    >>> parse_date("1970-1-2"), parse_date("1970-02-30")
    (1, None)
    """
    found = DATE_TEXT.fullmatch(text)
    if found is None:
        return None
    year, month, day = (int(group or 1) for group in found.groups())
    return days_of(year, month, day)


def days_of(year: int, month: int, day: int) -> int | None:
    """Days since 1970 of a date in the proleptic Gregorian calendar, None for no such date."""
    eras, year_of_era = divmod(year - 1, 400)
    try:
        inside = dt.date(year_of_era + 1, month, day)
    except ValueError:
        return None
    return inside.toordinal() - EPOCH_ORDINAL + eras * DAYS_PER_ERA


def parse_timestamp(text: str, *, zoned: bool) -> int | None:
    """Microseconds since 1970 of a date with an optional time and zone; without one, UTC.

    >>> parse_timestamp("1970-01-01 00:00:01.5", zoned=True)
    1500000
    >>> parse_timestamp("1970-01-01T01:00:00+01:00", zoned=True)
    0
    """
    head, _, tail = text.replace("T", " ", 1).partition(" ")
    days = parse_date(head)
    if days is None:
        return None
    if not tail:
        return days * MICROS_PER_DAY
    found = TIME_TEXT.fullmatch(tail)
    if found is None:
        return None
    hour, minute, second = (int(group or 0) for group in found.groups()[:3])
    if hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int((found.group(4) or "").ljust(6, "0")[:6])
    local = ((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND + fraction
    moment = days * MICROS_PER_DAY + local
    zone = found.group(5).strip()
    if not zone:
        return moment
    return _in_utc(moment, zone) if zoned else None


def _in_utc(moment: int, zone: str) -> int | None:
    if zone in ("Z", "UTC", "GMT", "UT"):
        return moment
    found = OFFSET_TEXT.fullmatch(zone)
    if found is not None:
        sign, hours, minutes = found.groups()
        seconds = int(hours) * 3600 + int(minutes or 0) * 60
        if seconds > 18 * 3600:
            return None
        return moment - seconds * MICROS_PER_SECOND * (-1 if sign == "-" else 1)
    try:
        region = zoneinfo.ZoneInfo(zone)
        wall = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=moment)
    except (KeyError, ValueError, OverflowError, OSError):
        return None
    offset = wall.replace(tzinfo=region).utcoffset() or dt.timedelta()
    return moment - offset // dt.timedelta(microseconds=1)


def typed_text(value: object, kind: pa.DataType, written: str) -> str:
    """Canonical text of a constant with an explicit type.

    >>> typed_text(0, t.TIMESTAMP, "'1970-1-1'")
    "TIMESTAMP '1970-01-01 00:00:00'"
    """
    name = t.name_of(kind)
    if isinstance(value, int) and t.is_time(kind):
        micros = value * MICROS_PER_DAY if kind == t.DATE else value
        try:
            moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)
        except OverflowError:
            return f"{name} {written}"
        return f"{name} '{moment.date() if kind == t.DATE else moment}'"
    return f"CAST({written} AS {name})"
