"""Constants: their types, and strings read as values of other types."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal
from functools import lru_cache

import numpy as np
import pyarrow as pa

from muntin.errors import DataError
from muntin.expressions import types as t
from muntin.expressions.tree import BindingError, Call, Literal
from muntin.expressions.zone_names import zone as zone_named
from muntin.expressions.zones import UTC, Zone

# Python's own context would round constants of more than 28 digits.
EXACT = Context(prec=1000, Emax=MAX_EMAX, Emin=MIN_EMIN)
MICROS_PER_SECOND = 1_000_000
MICROS_PER_DAY = 86_400 * MICROS_PER_SECOND
DAYS_PER_ERA = 146_097  # 400 Gregorian years
EPOCH_ORDINAL = dt.date(1970, 1, 1).toordinal()

DATE_TEXT = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.S | re.A)
TIME_TEXT = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,9}))?)?\s*(.*)")
TRUE_TEXTS = frozenset(["t", "true", "y", "yes", "1"])
FALSE_TEXTS = frozenset(["f", "false", "n", "no", "0"])
DECIMAL_TEXT = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?", re.A)
# Spark trims white space and control characters, byte by byte.
BLANK = "".join(map(chr, range(33))) + "\x7f"

Value = int | float | str | bytes | None


def number(text: str) -> Literal:
    """A number as SQL writes it: INT, BIGINT, DECIMAL with a point, DOUBLE with an exponent.

    >>> [t.name_of(number(text).type) for text in ("7", "3000000000", "1.50", "1e3")]
    ['INT', 'BIGINT', 'DECIMAL(3,2)', 'DOUBLE']
    """
    if "e" in text.lower():
        value = float(text)
        if math.isinf(value):
            raise BindingError(f"{text} does not fit into a DOUBLE", hint="write a smaller number")
        return Literal(value, t.DOUBLE, text.lower())
    if "." in text:
        return decimal_number(Decimal(text), text)
    whole = int(text)
    for kind in (t.INT, t.BIGINT):
        if _fits(whole, kind):
            return Literal(whole, kind, str(whole))
    return decimal_number(Decimal(whole), text)


def suffixed(text: str, suffix: str, kind: pa.DataType) -> Literal:
    """A number with the letters of its type behind it.

    >>> literal = suffixed("5", "L", t.BIGINT)
    >>> literal.value, literal.text, t.name_of(literal.type)
    (5, '5L', 'BIGINT')
    """
    if suffix == "BD":
        return decimal_number(Decimal(text), f"{text.lower()}BD")
    if not text.lstrip("-").isdigit() or not _fits(int(text), kind):
        raise BindingError(
            f"{text}{suffix} is not a {t.name_of(kind)}",
            hint=f"leave the letter out, or write CAST({text} AS ...)",
        )
    return Literal(int(text), kind, f"{int(text)}{suffix}")


def is_written(literal: Literal) -> bool:
    """Whether a number stands as it is, and not in a CAST: Spark then types it by its digits."""
    return not literal.text.startswith("CAST(")


def decimal_number(value: Decimal, text: str) -> Literal:
    """An exact decimal constant of the fewest digits that show it as written."""
    _, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    kind = t.decimal(max(len(digits) + max(int(exponent), 0), scale), scale)
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


def convert(literal: Literal, kind: pa.DataType, zone: Zone = UTC) -> Literal | None:
    """The constant in another type, as CAST would make it; None where that takes the evaluator.

    The text stays what the user wrote. A value that does not fit is left to the evaluator, where
    it fails as a column's value would. A TIMESTAMP that names no zone is in `zone`.
    """
    value, source = literal.value, literal.type
    if value is None:
        return Literal(None, kind, literal.text)
    if isinstance(value, str):
        return Literal(read(value, kind, zone), kind, literal.text)
    if t.is_integer(source) and t.is_integer(kind):
        return Literal(value, kind, literal.text) if _fits(int(value), kind) else None
    if not (t.is_integer(source) or t.is_decimal(source)):
        return None
    scale = source.scale if t.is_decimal(source) else 0
    if kind == t.DOUBLE:
        number = float(Decimal(int(value)).scaleb(-scale, EXACT))
        return Literal(number, kind, literal.text)
    if t.is_decimal(kind) and kind.scale >= scale:
        unscaled = int(value) * 10 ** (kind.scale - scale)
        return Literal(unscaled, kind, literal.text) if _fits(unscaled, kind) else None
    return None


def _fits(value: int, kind: pa.DataType) -> bool:
    if t.is_decimal(kind):
        return bool(abs(value) < 10**kind.precision)
    low, high = t.BOUNDS[kind]
    return low <= value <= high


@lru_cache(maxsize=1 << 12)
def read(text: str, kind: pa.DataType, zone: Zone = UTC) -> Value:
    """A string constant read as another type, or an error at bind time."""
    value = _parse(text, kind, zone)
    if value is None:
        raise BindingError(
            f"{quoted(text)} is not a valid {t.name_of(kind)}",
            hint="write such a value, or CAST the other side AS STRING",
        )
    return value


def _parse(text: str, kind: pa.DataType, zone: Zone) -> Value:
    """The value of a string; None if it has none."""
    if kind in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return parse_timestamp(text.strip(BLANK), zone if kind == t.TIMESTAMP else None)
    if t.is_decimal(kind):
        return _parse_decimal(text.strip(BLANK), kind)
    # What columns convert to, constants do in the same way.
    from muntin.expressions.evaluation.compiler import folded  # noqa: PLC0415  (loads polars)

    value: Value = folded(Call("cast", (string(text),), kind)).value  # type: ignore[assignment]
    return value


def _parse_decimal(text: str, kind: pa.DataType) -> int | None:
    if DECIMAL_TEXT.fullmatch(text) is None:
        return None
    # Far beyond what any type holds, exponents would only take time.
    number = Decimal(text)
    if number.adjusted() > 2 * t.MAX_DIGITS:
        return None
    if number.adjusted() < -2 * t.MAX_DIGITS:
        return 0
    unscaled = int(number.scaleb(kind.scale, EXACT).to_integral_value(ROUND_HALF_UP, EXACT))
    return unscaled if _fits(unscaled, kind) else None


def unfit(literal: Literal, kind: pa.DataType) -> Literal:
    """A string constant that holds too large a number for a DECIMAL, as that number.

    Converting it then fails in every row, as that of a number does. Others stay as they are.

    >>> unfit(string("123456"), t.decimal(3, 0)).value, unfit(string("12"), t.decimal(3, 0)).value
    (123456, '12')
    """
    text = str(literal.value).strip(BLANK)
    if not DECIMAL_TEXT.fullmatch(text) or _parse_decimal(text, kind) is not None:
        return literal
    number = Decimal(text)
    _, digits, exponent = number.as_tuple()
    if len(digits) + abs(int(exponent)) > t.MAX_DIGITS:
        return literal
    return decimal_number(number, literal.text)


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


def parse_timestamp(text: str, zone: Zone | None = UTC) -> int | None:
    """Microseconds since 1970 of a date with an optional time and zone; `zone` if it has none.

    With None, it is a local time anywhere, and may name no zone.

    >>> parse_timestamp("1970-01-01 00:00:01.5")
    1500000
    >>> parse_timestamp("1970-01-01T01:00:00+01:00"), parse_timestamp("1970-01-01", Zone("", 3600))
    (0, -3600000000)
    """
    head, *rest = re.split("[ T]", text, maxsplit=1)
    tail = "".join(rest)
    days = parse_date(head)
    if days is None:
        return None
    local, fraction, named = days * 86_400, 0, ""
    if tail:
        found = TIME_TEXT.fullmatch(tail)
        if found is None:
            return None
        hour, minute, second = (int(group or 0) for group in found.groups()[:3])
        if hour > 23 or minute > 59 or second > 59:
            return None
        local += (hour * 60 + minute) * 60 + second
        fraction = int((found.group(4) or "").ljust(6, "0")[:6])
        named = found.group(5).strip()
    if named:
        if zone is None:
            return None
        try:
            zone = zone_named(named)
        except DataError:
            return None
    if zone is not None and not zone.is_utc:
        local = int(zone.instants_of(np.array([local]))[0])
    moment = local * MICROS_PER_SECOND + fraction
    return moment if _fits(moment, t.BIGINT) else None


def typed_text(value: object, kind: pa.DataType, written: str, zone: Zone = UTC) -> str:
    """Canonical text of a constant with an explicit type.

    A TIMESTAMP is shown on the clock of `zone`, with its offset: of an hour that comes twice,
    the text says which one is meant.

    >>> typed_text(0, t.TIMESTAMP, "'1970-1-1'")
    "TIMESTAMP '1970-01-01 00:00:00'"
    >>> typed_text(0, t.TIMESTAMP, "'1970-1-1'", Zone("+01:00", 3600))
    "TIMESTAMP '1970-01-01 01:00:00+01:00'"
    """
    name = t.name_of(kind)
    if isinstance(value, int) and t.is_time(kind):
        micros = value * MICROS_PER_DAY if kind == t.DATE else value
        try:
            moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)
            if kind == t.TIMESTAMP and not zone.is_utc:
                offset = zone.offsets_at(np.array([value // MICROS_PER_SECOND]))[0]
                there = dt.timezone(dt.timedelta(seconds=int(offset)))
                moment = moment.replace(tzinfo=dt.UTC).astimezone(there)
        except OverflowError:
            return f"{name} {written}"
        return f"{name} '{moment.date() if kind == t.DATE else moment}'"
    return f"CAST({written} AS {name})"
