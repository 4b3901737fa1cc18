"""What each aggregate means, as a plain Python function of a window's rows.

A row is ``(tick, argument, ...)``. Exact arithmetic (``math.fsum``, ``Fraction``) stands where
the engine uses its own accumulators.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from functools import reduce
from operator import and_, or_, xor
from typing import Any

import pyarrow as pa

from muntin.aggregates import Aggregate, ResolvedAggregate

Rows = list[tuple[Any, ...]]
FUNCTIONS: dict[str, Callable[..., Any]] = {}


def compute(aggregate: ResolvedAggregate, rows: Rows) -> Any:
    """The answer of an aggregate over rows, each ``(tick, argument, ...)``."""
    if aggregate.name not in FUNCTIONS:
        return _fold(aggregate.algebra, rows)
    if aggregate.parts[0].kind in ("first_valid", "last_valid", "list"):
        rows = [row for row in rows if row[1] is not None]
    return FUNCTIONS[aggregate.name](rows, aggregate.type, *aggregate.constants)


def _fold(algebra: Aggregate, rows: Rows) -> Any:
    """A user's own aggregate, straight from its definition, in the order of the rows."""
    values = [row[1] if len(row) == 2 else row[1:] for row in rows]
    if algebra.timed:
        return algebra.of((value, row[0]) for value, row in zip(values, rows, strict=True))
    return algebra.of(values)


def _aggregate(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS[name] = function
        return function

    return register


def _given(rows: Rows, argument: int = 1) -> list[Any]:
    return [row[argument] for row in rows if row[argument] is not None]


def _order(value: Any) -> Any:
    """A sort key: NULL first, NaN after every number, -0.0 before 0.0."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (1, math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value))
    return (1, value)


def _fsum(values: Iterable[float]) -> float:
    values = list(values)
    specials = {value for value in values if math.isinf(value)}
    if any(math.isnan(value) for value in values) or len(specials) == 2:
        return math.nan
    if specials:
        return specials.pop()
    return _float(sum(map(Fraction, values)))


def _float(exact: Fraction | int) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


@_aggregate("count")
def _count(rows: Rows, _type: pa.DataType) -> int:
    return sum(all(value is not None for value in row[1:]) for row in rows)


@_aggregate("count_if")
def _count_if(rows: Rows, _type: pa.DataType) -> int:
    return sum(row[1] is True for row in rows)


@_aggregate("sum")
def _sum(rows: Rows, type_: pa.DataType) -> Any:
    values = _given(rows)
    if not values:
        return None
    if pa.types.is_floating(type_):
        return _fsum(values)
    if pa.types.is_decimal(type_):
        with localcontext(prec=80):
            total = sum(values, Decimal(0))
        return total if abs(total) < Decimal(10) ** (type_.precision - type_.scale) else None
    total = sum(values)
    return total if -(2**63) <= total < 2**63 else None


@_aggregate("avg")
def _avg(rows: Rows, type_: pa.DataType) -> Any:
    values = _given(rows)
    if not values:
        return None
    if pa.types.is_decimal(type_):
        with localcontext(prec=80):
            mean = sum(values, Decimal(0)) / len(values)
            return mean.quantize(Decimal(1).scaleb(-type_.scale), ROUND_HALF_UP)
    if isinstance(values[0], int):
        return _float(sum(values)) / len(values)
    return _fsum(values) / len(values)


@_aggregate("min")
def _min(rows: Rows, _type: pa.DataType) -> Any:
    return min(_given(rows), key=_order, default=None)


@_aggregate("max")
def _max(rows: Rows, _type: pa.DataType) -> Any:
    return max(_given(rows), key=_order, default=None)


@_aggregate("value_range")
def _value_range(rows: Rows, type_: pa.DataType) -> Any:
    if not _given(rows):
        return None
    spread = _max(rows, type_) - _min(rows, type_)
    if pa.types.is_integer(type_) and not -(2**63) <= spread < 2**63:
        return None
    return spread


@_aggregate("bool_and")
def _bool_and(rows: Rows, _type: pa.DataType) -> Any:
    return all(_given(rows)) if _given(rows) else None


@_aggregate("bool_or")
def _bool_or(rows: Rows, _type: pa.DataType) -> Any:
    return any(_given(rows)) if _given(rows) else None


@_aggregate("any_value")
def _any_value(rows: Rows, type_: pa.DataType) -> Any:
    return _min(rows, type_)


@_aggregate("bit_and")
def _bit_and(rows: Rows, _type: pa.DataType) -> Any:
    return reduce(and_, _given(rows)) if _given(rows) else None


@_aggregate("bit_or")
def _bit_or(rows: Rows, _type: pa.DataType) -> Any:
    return reduce(or_, _given(rows)) if _given(rows) else None


@_aggregate("bit_xor")
def _bit_xor(rows: Rows, _type: pa.DataType) -> Any:
    return reduce(xor, _given(rows)) if _given(rows) else None


@_aggregate("first")
def _first(rows: Rows, _type: pa.DataType) -> Any:
    return min(rows, key=lambda row: (row[0], _order(row[1])))[1] if rows else None


@_aggregate("last")
def _last(rows: Rows, _type: pa.DataType) -> Any:
    return max(rows, key=lambda row: (row[0], _order(row[1])))[1] if rows else None


@_aggregate("min_by")
def _min_by(rows: Rows, _type: pa.DataType) -> Any:
    ordered = [row for row in rows if row[2] is not None]
    return min(ordered, key=lambda row: (_order(row[2]), _order(row[1])))[1] if ordered else None


@_aggregate("max_by")
def _max_by(rows: Rows, _type: pa.DataType) -> Any:
    ordered = [row for row in rows if row[2] is not None]
    return max(ordered, key=lambda row: (_order(row[2]), _order(row[1])))[1] if ordered else None


def _spread(rows: Rows, correction: int) -> float | None:
    """The exact (n Σx² − (Σx)²) / (n (n − correction)), rounded once."""
    values = _given(rows)
    n = len(values)
    if n <= correction:
        return None
    if not all(math.isfinite(value) for value in values):
        return math.nan
    exact = [Fraction(value) for value in values]
    numerator = n * sum(x * x for x in exact) - sum(exact) ** 2
    return _float(Fraction(numerator) / (n * (n - correction)))


@_aggregate("var_pop")
def _var_pop(rows: Rows, _type: pa.DataType) -> float | None:
    return _spread(rows, 0)


@_aggregate("var_samp")
def _var_samp(rows: Rows, _type: pa.DataType) -> float | None:
    return _spread(rows, 1)


@_aggregate("stddev_pop")
def _stddev_pop(rows: Rows, _type: pa.DataType) -> float | None:
    variance = _spread(rows, 0)
    return None if variance is None else math.sqrt(variance)


@_aggregate("stddev_samp")
def _stddev_samp(rows: Rows, _type: pa.DataType) -> float | None:
    variance = _spread(rows, 1)
    return None if variance is None else math.sqrt(variance)


def _shape(rows: Rows, power: int) -> float | None:
    """The mean power of the distances from the mean over that of the deviation."""
    values = _given(rows)
    if not all(math.isfinite(value) for value in values):
        return math.nan
    exact = [Fraction(value) for value in values]
    mean = Fraction(sum(exact)) / max(len(exact), 1)
    variance = Fraction(sum((x - mean) ** 2 for x in exact)) / max(len(exact), 1)
    if not variance:
        return None
    moment = Fraction(sum((x - mean) ** power for x in exact)) / len(exact)
    if power == 4:
        return _float(moment / variance**2 - 3)
    return _signed_root(moment, moment**2 / variance**3)


def _signed_root(sign: Fraction | int, square: Fraction) -> float:
    """The root of a square, in 60 digits, with the sign of another number."""
    with localcontext(prec=60):
        root = (Decimal(square.numerator) / Decimal(square.denominator)).sqrt()
    return -float(root) if sign < 0 else float(root)


@_aggregate("skewness")
def _skewness(rows: Rows, _type: pa.DataType) -> float | None:
    return _shape(rows, 3)


@_aggregate("kurtosis")
def _kurtosis(rows: Rows, _type: pa.DataType) -> float | None:
    return _shape(rows, 4)


def _pairs(rows: Rows) -> list[tuple[Any, Any]]:
    return [(row[1], row[2]) for row in rows if row[1] is not None and row[2] is not None]


def _sums_of_pairs(
    rows: Rows, least: int, *, by_x: bool = False
) -> tuple[int, Fraction, Fraction, Fraction, Fraction, Fraction] | float | None:
    """The count, the means of y and x, and n times the covariance and the variances of x and y.

    NaN for special values; NULL where x, which has a single one, decides ``by_x``.
    """
    pairs = _pairs(rows)
    n = len(pairs)
    if n < least:
        return None
    if not all(math.isfinite(value) for pair in pairs for value in pair):
        constant = len({x for _, x in pairs}) == 1 and math.isfinite(pairs[0][1])
        return None if by_x and constant else math.nan
    exact = [(Fraction(y), Fraction(x)) for y, x in pairs]
    mean_y, mean_x = (Fraction(sum(each)) / n for each in zip(*exact, strict=True))
    together = Fraction(sum((y - mean_y) * (x - mean_x) for y, x in exact))
    spread_x = Fraction(sum((x - mean_x) ** 2 for _, x in exact))
    spread_y = Fraction(sum((y - mean_y) ** 2 for y, _ in exact))
    return n, mean_y, mean_x, together, spread_x, spread_y


@_aggregate("covar_pop")
def _covar_pop(rows: Rows, _type: pa.DataType) -> float | None:
    sums = _sums_of_pairs(rows, 1)
    return _float(sums[3] / sums[0]) if isinstance(sums, tuple) else sums


@_aggregate("covar_samp")
def _covar_samp(rows: Rows, _type: pa.DataType) -> float | None:
    sums = _sums_of_pairs(rows, 2)
    return _float(sums[3] / (sums[0] - 1)) if isinstance(sums, tuple) else sums


@_aggregate("corr")
def _corr(rows: Rows, _type: pa.DataType) -> float | None:
    sums = _sums_of_pairs(rows, 2)
    if not isinstance(sums, tuple):
        return sums
    together, spread = sums[3], sums[4] * sums[5]
    return _signed_root(together, together**2 / spread) if spread else None


@_aggregate("regr_slope")
def _regr_slope(rows: Rows, _type: pa.DataType) -> float | None:
    sums = _sums_of_pairs(rows, 2, by_x=True)
    if not isinstance(sums, tuple):
        return sums
    return _float(sums[3] / sums[4]) if sums[4] else None


@_aggregate("regr_intercept")
def _regr_intercept(rows: Rows, _type: pa.DataType) -> float | None:
    sums = _sums_of_pairs(rows, 2, by_x=True)
    if not isinstance(sums, tuple):
        return sums
    return _float(sums[1] - sums[3] / sums[4] * sums[2]) if sums[4] else None


@_aggregate("regr_r2")
def _regr_r2(rows: Rows, _type: pa.DataType) -> float | None:
    sums = _sums_of_pairs(rows, 2, by_x=True)
    if not isinstance(sums, tuple):
        return sums
    _, _, _, together, spread_x, spread_y = sums
    if not spread_x:
        return None
    return _float(together**2 / (spread_x * spread_y)) if spread_y else 1.0


@_aggregate("product")
def _product(rows: Rows, _type: pa.DataType) -> float | None:
    values = _given(rows)
    if not values:
        return None
    if not all(math.isfinite(value) for value in values):
        # Of finite factors only the sign matters, and zero: their product must not underflow.
        return math.prod(
            value if value == 0 or not math.isfinite(value) else math.copysign(1, value)
            for value in values
        )
    return _float(math.prod(map(Fraction, values)))


@_aggregate("geo_mean")
def _geo_mean(rows: Rows, _type: pa.DataType) -> float | None:
    values = _given(rows)
    if not values:
        return None
    if any(math.isnan(value) or value < 0 for value in values):
        return math.nan
    if 0 in values:
        return math.nan if math.inf in values else 0.0
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def _plain(value: Any) -> Any:
    """What SQL calls equal, as one value: 0.0 for -0.0, and one NaN."""
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value + 0.0
    return value


def _sorted(rows: Rows) -> list[Any]:
    return sorted(map(_plain, _given(rows)), key=_order)


def _different(rows: Rows) -> list[Any]:
    found = _sorted(rows)
    fresh = [i for i, value in enumerate(found) if not i or _order(value) != _order(found[i - 1])]
    return [found[i] for i in fresh]


@_aggregate("count_distinct")
def _count_distinct(rows: Rows, _type: pa.DataType) -> int:
    return len(_different(rows))


@_aggregate("sum_distinct")
def _sum_distinct(rows: Rows, type_: pa.DataType) -> Any:
    return _sum([(0, value) for value in _different(rows)], type_)


@_aggregate("avg_distinct")
def _avg_distinct(rows: Rows, type_: pa.DataType) -> Any:
    return _avg([(0, value) for value in _different(rows)], type_)


@_aggregate("collect_set")
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
    keys = [_order(value) for value in values]
    items = [{"value": value, "count": keys.count(_order(value))} for value in _different(rows)]
    return sorted(items, key=lambda item: -item["count"])


@_aggregate("mode")
def _mode(rows: Rows, _type: pa.DataType) -> Any:
    return _counted(rows)[0]["value"] if _given(rows) else None


@_aggregate("top_k")
def _top_k(rows: Rows, _type: pa.DataType, k: int) -> Any:
    return _counted(rows)[:k]


@_aggregate("frequent")
def _frequent(rows: Rows, _type: pa.DataType, fraction: float) -> Any:
    floor = Fraction(str(fraction)) * len(_given(rows))
    return [item for item in _counted(rows) if item["count"] >= floor]


@_aggregate("min_k")
def _min_k(rows: Rows, _type: pa.DataType, k: int) -> Any:
    return _sorted(rows)[:k]


@_aggregate("max_k")
def _max_k(rows: Rows, _type: pa.DataType, k: int) -> Any:
    return _sorted(rows)[::-1][:k]


def _by_key(rows: Rows) -> list[Any]:
    ordered = [row for row in rows if row[2] is not None]
    return [row[1] for row in sorted(ordered, key=lambda row: (_order(row[2]), _order(row[1])))]


@_aggregate("min_by_k")
def _min_by_k(rows: Rows, _type: pa.DataType, k: int) -> Any:
    return _by_key(rows)[:k]


@_aggregate("max_by_k")
def _max_by_k(rows: Rows, _type: pa.DataType, k: int) -> Any:
    return _by_key(rows)[::-1][:k]


@_aggregate("collect_list")
def _collect_list(rows: Rows, _type: pa.DataType) -> list[Any]:
    return [row[1] for row in sorted(rows, key=lambda row: (row[0], _order(row[1])))]


@_aggregate("string_agg")
def _string_agg(rows: Rows, type_: pa.DataType, separator: str) -> str | None:
    return separator.join(_collect_list(rows, type_)) if rows else None


@_aggregate("approx_count_distinct")
def _approx_count_distinct(rows: Rows, _type: pa.DataType, _rsd: float) -> int:
    """Exact up to 256 values; no test asks the oracle for more."""
    found = len(_different(rows))
    assert found <= 256
    return found


@_aggregate("approx_percentile")
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
