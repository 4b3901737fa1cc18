"""Aggregates of all values of a window: distinct ones, percentiles, modes, lists."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import pyarrow as pa

from muntin.testing.aggregates.algebraic import average_of, sum_of
from muntin.testing.aggregates.meaning import FUNCTIONS, Rows, aggregate, given, order


def _plain(value: Any) -> Any:
    """What SQL calls equal, as one value: 0.0 for -0.0, and one NaN."""
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value + 0.0
    return value


def _sorted(rows: Rows) -> list[Any]:
    return sorted(map(_plain, given(rows)), key=order)


def _different(rows: Rows) -> list[Any]:
    found = _sorted(rows)
    fresh = [i for i, value in enumerate(found) if not i or order(value) != order(found[i - 1])]
    return [found[i] for i in fresh]


@aggregate("count_distinct")
def _count_distinct(rows: Rows, _type: pa.DataType) -> int:
    return len(_different(rows))


@aggregate("sum_distinct")
def _sum_distinct(rows: Rows, type_: pa.DataType) -> Any:
    return sum_of([(0, value) for value in _different(rows)], type_)


@aggregate("avg_distinct")
def _avg_distinct(rows: Rows, type_: pa.DataType) -> Any:
    return average_of([(0, value) for value in _different(rows)], type_)


@aggregate("collect_set")
def _collect_set(rows: Rows, _type: pa.DataType) -> list[Any]:
    return _different(rows)


def _placed(at: Callable[[list[Any], float], Any]) -> Callable[..., Any]:
    """One value, or a list of them, at fractions of sorted values."""

    def placed(rows: Rows, _type: pa.DataType, given: Any = 0.5, descending: bool = False) -> Any:
        values = _sorted(rows)[:: -1 if descending else 1]
        if not values:
            return None
        return [at(values, p) for p in given] if isinstance(given, tuple) else at(values, given)

    return placed


def _between(values: list[Any], p: float) -> float:
    position = (len(values) - 1) * float(p)
    low, high = float(values[math.floor(position)]), float(values[math.ceil(position)])
    if position.is_integer() or low == high:
        return low
    return low + (position - math.floor(position)) * (high - low)


def _reaching(values: list[Any], p: float) -> Any:
    found = values[max(math.ceil(len(values) * float(p)), 1) - 1]
    return float(found) if isinstance(found, float | int | Decimal) else found


FUNCTIONS["median"] = FUNCTIONS["percentile"] = _placed(_between)
FUNCTIONS["percentile_disc"] = _placed(_reaching)


def _counted(rows: Rows) -> list[dict[str, Any]]:
    """Each value with its count, the most frequent first; of equal counts the least."""
    values = _sorted(rows)
    keys = [order(value) for value in values]
    items = [{"value": value, "count": keys.count(order(value))} for value in _different(rows)]
    return sorted(items, key=lambda item: -item["count"])


@aggregate("mode")
def _mode(rows: Rows, _type: pa.DataType) -> Any:
    return _counted(rows)[0]["value"] if given(rows) else None


@aggregate("top_k")
def _top_k(rows: Rows, _type: pa.DataType, k: int) -> Any:
    return _counted(rows)[:k]


@aggregate("frequent")
def _frequent(rows: Rows, _type: pa.DataType, fraction: float) -> Any:
    floor = Fraction(str(fraction)) * len(given(rows))
    return [item for item in _counted(rows) if item["count"] >= floor]


def _listed(items: list[dict[str, Any]], tracked: int) -> list[dict[str, Any]]:
    """Items of exact counts, as they are while lists have room for all values."""
    assert len(items) <= tracked, "the oracle knows no panes, so lists must not be cut"
    return [
        {"value": item["value"], "low": item["count"], "high": item["count"], "certain": True}
        for item in items
    ]


@aggregate("approx_top_k")
def _approx_top_k(rows: Rows, _type: pa.DataType, k: int, tracked: int) -> Any:
    return _listed(_counted(rows), tracked)[:k]


@aggregate("approx_frequent")
def _approx_frequent(rows: Rows, _type: pa.DataType, fraction: float, tracked: int) -> Any:
    floor = Fraction(str(fraction)) * len(given(rows))
    return [item for item in _listed(_counted(rows), tracked) if item["low"] >= floor]


@aggregate("min_k")
def _min_k(rows: Rows, _type: pa.DataType, k: int) -> Any:
    return _sorted(rows)[:k]


@aggregate("max_k")
def _max_k(rows: Rows, _type: pa.DataType, k: int) -> Any:
    return _sorted(rows)[::-1][:k]


def _by_key(rows: Rows) -> list[Any]:
    ordered = [row for row in rows if row[2] is not None]
    return [row[1] for row in sorted(ordered, key=lambda row: (order(row[2]), order(row[1])))]


@aggregate("min_by_k")
def _min_by_k(rows: Rows, _type: pa.DataType, k: int) -> Any:
    return _by_key(rows)[:k]


@aggregate("max_by_k")
def _max_by_k(rows: Rows, _type: pa.DataType, k: int) -> Any:
    return _by_key(rows)[::-1][:k]


@aggregate("collect_list")
def _collect_list(rows: Rows, _type: pa.DataType) -> list[Any]:
    return [row[1] for row in sorted(rows, key=lambda row: (row[0], order(row[1])))]


@aggregate("string_agg")
def _string_agg(rows: Rows, type_: pa.DataType, separator: str) -> str | None:
    return separator.join(_collect_list(rows, type_)) if rows else None


@aggregate("approx_count_distinct")
def _approx_count_distinct(rows: Rows, _type: pa.DataType, _rsd: float) -> int:
    """Exact up to 256 values; no test asks the oracle for more."""
    found = len(_different(rows))
    assert found <= 256
    return found


@aggregate("approx_percentile")
def _approx_percentile(rows: Rows, type_: pa.DataType, given: Any, error: float) -> Any:
    """The middle of the part of a power of two that the exact value lies in."""
    values = _sorted(rows)
    if not values:
        return None
    kind = type_.value_type if isinstance(given, tuple) else type_
    error = error if error < 1 else max(1 / error, 0.001)
    cuts = 2 ** max(math.ceil(math.log2(1 / (2 * error))), 0)
    places = [
        max(math.ceil(len(values) * float(p)) - 1, 0)
        for p in (given if isinstance(given, tuple) else (given,))
    ]
    found = [
        values[place] if place in (0, len(values) - 1) else _middle(values, place, kind, cuts)
        for place in places
    ]
    return found if isinstance(given, tuple) else found[0]


def _middle(values: list[Any], place: int, kind: pa.DataType, cuts: int) -> Any:
    value = values[place]
    if not value or not math.isfinite(value):
        return value
    fraction, exponent = math.frexp(abs(float(value)))
    part = math.floor((2 * fraction - 1) * cuts)
    middle: Any = math.ldexp(0.5 + (part + 0.5) / (2 * cuts), exponent)
    middle = -middle if value < 0 else middle
    if pa.types.is_decimal(kind):
        with localcontext(prec=400):
            middle = Decimal(middle).quantize(Decimal(1).scaleb(-kind.scale))
    elif pa.types.is_integer(kind):
        middle = round(middle)
    elif pa.types.is_float32(kind):
        middle = struct.unpack("f", struct.pack("f", middle))[0]
    middle, greatest = max(middle, values[0]), values[-1]
    return middle if math.isnan(greatest) else min(middle, greatest)
