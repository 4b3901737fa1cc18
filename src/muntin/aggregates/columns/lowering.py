"""Answers from columns of parts, one function per family of aggregates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.aggregates.algebra import Lowered
from muntin.aggregates.columns.codes import decimal_array
from muntin.aggregates.columns.holistic import values
from muntin.aggregates.columns.holistic.frequent import lower_lists
from muntin.aggregates.columns.holistic.histograms import lower_percentiles
from muntin.aggregates.columns.holistic.register_windows import lower_counts
from muntin.aggregates.columns.sums import SumColumn
from muntin.aggregates.exact import forms
from muntin.aggregates.exact.limbs import LOW32, ORIGIN, Digits, multiply
from muntin.aggregates.exact.logarithms import INFINITIES, NANS, NEGATIVES, ZEROS
from muntin.aggregates.exact.number import quotient
from muntin.aggregates.exact.rounding import round_digits, to_digits
from muntin.aggregates.moments import ten
from muntin.aggregates.sums import decimal_avg

if TYPE_CHECKING:
    from muntin.aggregates.registry import ResolvedAggregate

Lowering = Callable[["ResolvedAggregate", Sequence[Any]], Lowered]


def lower(aggregate: ResolvedAggregate, columns: Sequence[Any]) -> Lowered:
    """The answers of an aggregate, from one column for each of its parts."""
    return _LOWERINGS.get(aggregate.name, _lower_user)(aggregate, columns)


def _lower_count(aggregate: ResolvedAggregate, columns: Sequence[Any]) -> Lowered:
    return Lowered(pa.array(columns[0].counts))


def _lower_value(aggregate: ResolvedAggregate, columns: Sequence[Any]) -> Lowered:
    """min, max and the picks hold their answers."""
    return Lowered(columns[0].result())


def _lower_sum(aggregate: ResolvedAggregate, columns: Sequence[Any]) -> Lowered:
    sums, counts = columns[0], columns[1].counts
    if pa.types.is_floating(aggregate.type):
        return Lowered(pa.array(sums.doubles(), mask=_missing(counts)))
    words, failed = sums.words()
    return _checked(words, failed, counts > 0, aggregate.type)


def _missing(counts: Ints) -> Bools | None:
    """Where there is nothing to answer; None if that is nowhere."""
    # One number that stands for all needs one look.
    repeated = counts[:1] if counts.strides == (0,) else counts
    return counts == 0 if np.any(repeated == 0) else None


def _checked(words: Ints, failed: Bools, valid: Bools, kind: pa.DataType) -> Lowered:
    """128-bit integers as an integer or decimal type, failed where that cannot hold them."""
    high, low = words[:, 1], words[:, 0]
    if pa.types.is_decimal(kind):
        limit = 10**kind.precision
        failed = failed | ~_below(high, low, limit) | _below(high, low, 1 - limit)
        return _failing(decimal_array(words, valid & ~failed, kind), failed & valid)
    failed = failed | (high != low >> 63)
    return _failing(pa.array(low, mask=~valid | failed), failed & valid)


def _below(high: Ints, low: Ints, bound: int) -> Bools:
    """Which 128-bit integers are less than `bound`."""
    top, rest = bound >> 64, np.uint64(bound & (2**64 - 1))
    below: Bools = (high < top) | ((high == top) & (low.view(np.uint64) < rest))
    return below


def _failing(values: pa.Array, failed: Bools) -> Lowered:
    return Lowered(values, pa.array(failed) if failed.any() else None)


def _lower_avg(aggregate: ResolvedAggregate, columns: Sequence[Any]) -> Lowered:
    sums, counts = columns[0], columns[1].counts
    if not pa.types.is_decimal(aggregate.type):
        return Lowered(pa.array(sums.doubles() / np.maximum(counts, 1), mask=_missing(counts)))
    scale = aggregate.types[0].scale
    values: list[Any] = [None] * len(sums)
    failed = np.zeros(len(sums), np.bool_)
    for cell in np.flatnonzero(counts).tolist():
        units = sums.units(cell) >> ORIGIN
        try:
            values[cell] = decimal_avg(units, int(counts[cell]), scale, aggregate.type)
        except OverflowError:
            failed[cell] = True
    return _failing(pa.array(values, aggregate.type), failed)


def _lower_variance(ddof: int, root: bool) -> Lowering:
    def lowered(aggregate: ResolvedAggregate, columns: Sequence[Any]) -> Lowered:
        counts = columns[2].counts
        out = _variances(columns[0], columns[1], counts, ddof)
        return Lowered(pa.array(np.sqrt(out) if root else out, mask=counts <= ddof))

    return lowered


def _variances(
    sums: SumColumn, squares: SumColumn, counts: Ints, ddof: int
) -> npt.NDArray[np.float64]:
    kind = sums.part.types[0]
    scale = 2 * kind.scale if pa.types.is_decimal(kind) else 0
    divisors = [10 ** min(9, scale - done) for done in range(0, scale, 9)]
    out = variances(
        sums.limbs, sums.base, squares.limbs, squares.base, counts, ddof,
        np.array(divisors, np.uint64),
    ).view(np.float64)  # fmt: skip
    # Counts too large for the kernel's division; a handful of cells in a lifetime.
    for cell in np.flatnonzero(counts > LOW32).tolist():
        n, total = int(counts[cell]), sums.units(cell)
        numerator = n * (squares.units(cell) << ORIGIN) - total * total
        out[cell] = quotient(numerator, n * (n - ddof) * 10**scale << 2 * ORIGIN)
    if sums.specials is not None:
        out[(sums.specials != 0).any(axis=1)] = np.nan
    return out


def _lower_shape(aggregate: ResolvedAggregate, columns: Sequence[Any]) -> Lowered:
    """Skewness and kurtosis."""
    return _lower_form(aggregate, columns, [], 1, 1)


def _lower_pair(aggregate: ResolvedAggregate, columns: Sequence[Any]) -> Lowered:
    """What two arguments have in common."""
    size = len(columns[0].counts)
    tens = [forms.constant(ten(kind), size) for kind in aggregate.types]
    pair: Any = aggregate.algebra
    return _lower_form(aggregate, columns, tens, pair.least, 2 if pair.divides_by_x else 1)


def _lower_form(
    aggregate: ResolvedAggregate,
    columns: Sequence[Any],
    constants: list[forms.Sums],
    least: int,
    deciding: int,
) -> Lowered:
    """Quotients of polynomials; special values in columns from `deciding` on hide the divisor."""
    counts = np.ascontiguousarray(columns[0].counts)
    sums = [forms.Sums(each.limbs, each.base) for each in columns[1:]]
    form = getattr(forms, aggregate.name.upper())
    out, missing = forms.answers(form, [forms.whole(counts), *constants, *sums])
    unknown = _special(columns[deciding : deciding + 1], len(counts))
    special = unknown | _special(columns[1:3], len(counts))
    if deciding == 1:
        unknown = special
    out[special] = np.nan
    return Lowered(pa.array(out, mask=(missing & ~unknown) | (counts < least)))


def _special(columns: Sequence[Any], size: int) -> Bools:
    """Where NaN or an infinity is among the values of a sum."""
    found = np.zeros(size, np.bool_)
    for each in columns:
        if each.specials is not None:
            found |= (each.specials != 0).any(axis=1)
    return found


def _lower_range(aggregate: ResolvedAggregate, columns: Sequence[Any]) -> Lowered:
    low, high = columns[0].result(), columns[1].result()
    if pa.types.is_floating(aggregate.type):
        low, high = low.cast(pa.float64()), high.cast(pa.float64())
        return Lowered(pc.subtract(high, low))
    span = SumColumn.empty(columns[0].part, len(low))
    cells = np.arange(len(low))
    span.update(cells, (low,))
    span.negate()
    span.update(cells, (high,))
    words, failed = span.words()
    return _checked(words, failed, columns[0].seen(), aggregate.type)


def _lower_bits(aggregate: ResolvedAggregate, columns: Sequence[Any]) -> Lowered:
    return Lowered(columns[0].values(columns[1].counts > 0, aggregate.type))


def _lower_product(mean: bool) -> Lowering:
    def lowered(aggregate: ResolvedAggregate, columns: Sequence[Any]) -> Lowered:
        logs, counts = columns[0], columns[1].counts
        out = logs.powers(counts, mean)
        if logs.specials is not None:
            seen = logs.specials.T > 0
            out[seen[INFINITIES]] = np.inf
            if not mean:
                out[logs.specials[:, NEGATIVES] % 2 == 1] *= -1
            out[seen[ZEROS]] = 0.0
            wrong = seen[NANS] | (seen[ZEROS] & seen[INFINITIES])
            out[wrong | seen[NEGATIVES] if mean else wrong] = np.nan
        return Lowered(pa.array(out, mask=counts == 0))

    return lowered


def _lower_user(aggregate: ResolvedAggregate, columns: Sequence[Any]) -> Lowered:
    values, failed = columns[0].answers()
    return _failing(pa.array(values, aggregate.type), failed)


_LOWERINGS: dict[str, Lowering] = {
    "count": _lower_count,
    "count_if": _lower_count,
    "sum": _lower_sum,
    "avg": _lower_avg,
    "var_pop": _lower_variance(0, root=False),
    "var_samp": _lower_variance(1, root=False),
    "stddev_pop": _lower_variance(0, root=True),
    "stddev_samp": _lower_variance(1, root=True),
    "product": _lower_product(mean=False),
    "geo_mean": _lower_product(mean=True),
    "value_range": _lower_range,
    "min": _lower_value,
    "max": _lower_value,
    "skewness": _lower_shape,
    "kurtosis": _lower_shape,
    "covar_pop": _lower_pair,
    "covar_samp": _lower_pair,
    "corr": _lower_pair,
    "regr_slope": _lower_pair,
    "regr_intercept": _lower_pair,
    "regr_r2": _lower_pair,
    "approx_percentile": lower_percentiles,
    "approx_count_distinct": lower_counts,
    "approx_top_k": lower_lists,
    "approx_frequent": lower_lists,
    "any_value": _lower_value,
    "bit_and": _lower_bits,
    "bit_or": _lower_bits,
    "bit_xor": _lower_bits,
    "bool_and": _lower_value,
    "bool_or": _lower_value,
    "first": _lower_value,
    "last": _lower_value,
    "min_by": _lower_value,
    "max_by": _lower_value,
    "count_distinct": values.lower_values(values.count_distinct),
    "sum_distinct": values.lower_distinct(_lower_sum),
    "avg_distinct": values.lower_distinct(_lower_avg),
    "collect_set": values.lower_values(values.collect_set),
    "median": values.lower_values(values.percentile),
    "percentile": values.lower_values(values.percentile),
    "percentile_disc": values.lower_values(values.percentile_disc),
    "mode": values.lower_values(values.mode),
    "top_k": values.lower_values(values.counted),
    "frequent": values.lower_values(values.counted),
    "min_k": values.lower_values(values.best),
    "max_k": values.lower_values(values.best),
    "min_by_k": values.lower_values(values.best),
    "max_by_k": values.lower_values(values.best),
    "collect_list": values.lower_values(values.collect_list),
    "string_agg": values.lower_values(values.string_agg),
}


_ZERO = np.uint64(0)
_32U = np.uint64(32)
_LOW32U = np.uint64(LOW32)


@compiled
def variances(
    sums: Ints,
    sum_base: int,
    squares: Ints,
    square_base: int,
    counts: Ints,
    ddof: int,
    divisors: Digits,
) -> npt.NDArray[np.uint64]:
    """(n * squares - sums**2) / (n * (n - ddof) * divisors), rounded once, as bits.

    Cells with too few rows, or with 2**32 and more, are left zero. Each divisor is below 2**32.
    """
    out = np.zeros(counts.shape[0], np.uint64)
    a = np.zeros(sums.shape[1] + 2, np.uint64)
    b = np.zeros(squares.shape[1] + 2, np.uint64)
    product = np.zeros(2 * a.shape[0], np.uint64)
    # The square of a sum lies on the same grid, at twice its distance from 2**0.
    product_base = 2 * sum_base - ORIGIN // 32
    low = min(square_base, product_base)
    high = max(square_base + b.shape[0], product_base + product.shape[0]) + 2
    total = np.zeros(high - low, np.uint64)
    quotient = np.zeros(divisors.shape[0] + 6, np.uint64)
    for cell in range(counts.shape[0]):
        n = counts[cell]
        if n <= ddof or n > LOW32:
            continue
        a_size, _ = to_digits(sums[cell], a)
        b_size, _ = to_digits(squares[cell], b)
        multiply(a, a_size, a, a_size, product)
        total[:] = _ZERO
        _add_scaled(total, square_base - low, b, b_size, np.uint64(n))
        size = _subtract(total, product_base - low, product, 2 * a_size)
        exponent = 32 * low - ORIGIN
        out[cell] = _divide(
            total, size, exponent, quotient, np.uint64(n), np.uint64(n - ddof), divisors
        )
    return out


@compiled
def _add_scaled(total: Digits, at: int, digits: Digits, size: int, factor: np.uint64) -> None:
    """Put digits * factor into a total of zeros, its first digit at `at`."""
    carry = _ZERO
    for k in range(size):
        value = digits[k] * factor + carry
        total[at + k] = value & _LOW32U
        carry = value >> _32U
    total[at + size] = carry


@compiled
def _subtract(total: Digits, at: int, digits: Digits, size: int) -> int:
    """Subtract digits from a total that is no smaller; returns how many digits are left."""
    borrow = _ZERO
    for k in range(at, total.shape[0]):
        taken = borrow + (digits[k - at] if k - at < size else _ZERO)
        borrow = np.uint64(1) if total[k] < taken else _ZERO
        total[k] = (total[k] - taken) & _LOW32U
    left = len(total)
    while left > 0 and total[left - 1] == _ZERO:
        left -= 1
    return left


@compiled
def _divide(
    total: Digits,
    size: int,
    exponent: int,
    quotient: Digits,
    n: np.uint64,
    m: np.uint64,
    divisors: Digits,
) -> np.uint64:
    """Round total * 2**exponent / (n * m * divisors) once, as bits.

    Dividing by one factor after the other leaves the same whole quotient as dividing by their
    product; any remainder on the way only says that something was left below it.
    """
    # Each division takes at most one digit off the top, and rounding needs three.
    kept = quotient.shape[0]
    for k in range(kept):
        source = size - kept + k
        quotient[k] = total[source] if source >= 0 else _ZERO
    sticky = False
    for k in range(size - kept):
        sticky = sticky or total[k] != _ZERO
    sticky = _divide_by(quotient, n) or sticky
    sticky = _divide_by(quotient, m) or sticky
    for k in range(divisors.shape[0]):
        sticky = _divide_by(quotient, divisors[k]) or sticky
    left = kept
    while left > 0 and quotient[left - 1] == _ZERO:
        left -= 1
    return round_digits(quotient, left, exponent + 32 * (size - kept), sticky)


@compiled
def _divide_by(digits: Digits, divisor: np.uint64) -> bool:
    """Divide in place; true if something is left over."""
    rest = _ZERO
    for k in range(digits.shape[0] - 1, -1, -1):
        value = (rest << _32U) | digits[k]
        digits[k] = value // divisor
        rest = value % divisor
    return bool(rest != _ZERO)
