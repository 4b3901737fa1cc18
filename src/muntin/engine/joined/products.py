"""Sums of products of two sides: per key, the exact product of both sides' exact sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.aggregates.columns.by_part import empty
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.columns.counts import CountColumn
from muntin.aggregates.columns.kept import add_counts, decode
from muntin.aggregates.columns.sums import SumColumn
from muntin.aggregates.exact.limbs import ONE_LIMB, Digits, multiply
from muntin.aggregates.kept import kept
from muntin.engine.joined.finish import Cells
from muntin.plan.joined import JoinCall, JoinFactor


class Met(NamedTuple):
    """Combinations of entries, one of each side: their window, and how many rows each counts."""

    entries: Ints
    numbers: Ints
    counts: Ints


class _Factor(NamedTuple):
    """One side's sums, counts of values that are not NULL, and entries of the combinations."""

    sums: SumColumn
    counts: Ints
    entries: Ints


def product_sums(
    call: JoinCall, tables: Sequence[pa.Table], met: Met, times: Ints, cells: Cells
) -> tuple[list[PartColumn], Bools]:
    """The accumulators of a sum of products for every cell, and the cells where one overflows.

    Args:
        call: The sum, or the average.
        tables: The answers of all sides.
        met: The combinations.
        times: How many rows of the join each combination stands for.
        cells: The cell of each.
    """
    left, right = (_factor(each, tables, met) for each in call.factors)
    first, second = (met.counts[each.side] for each in call.factors)
    others = times // first // second
    sums, counts = (empty(part, cells.numbers.size) for part in call.aggregate.parts)
    assert isinstance(sums, SumColumn)
    assert isinstance(counts, CountColumn)
    every, both = np.arange(times.size), left.counts * right.counts
    add_counts(counts.counts, cells.cells, both, every, others)
    _add(sums, cells.cells, left, right, others)
    failed = np.zeros(cells.numbers.size, np.bool_)
    if call.factors[0].least:
        failed[cells.cells[_overflows(call, tables, met)]] = True
    return [sums, counts], failed


def _factor(factor: JoinFactor, tables: Sequence[pa.Table], met: Met) -> _Factor:
    values = array_of(tables[factor.side], factor.sums)
    sums, counts = decode(kept(factor.aggregate), values)
    assert isinstance(sums, SumColumn)
    assert isinstance(counts, CountColumn)
    entries = met.entries[factor.side]
    # The last one is that of a padded row.
    sums.resize(len(sums) + 1)
    counts.resize(len(counts) + 1)
    return _Factor(sums, np.ascontiguousarray(counts.counts)[entries], entries)


def _add(into: SumColumn, cells: Ints, left: _Factor, right: _Factor, others: Ints) -> None:
    one, other = left.sums, right.sums
    if cells.size and one.limbs.shape[1] and other.limbs.shape[1]:
        one.normalize()
        other.normalize()
        base = one.base + other.base - ONE_LIMB
        # A count of rows takes two limbs.
        width = one.limbs.shape[1] + other.limbs.shape[1] + 2
        into.reserve(base, width, cells.size)
        at = base - into.base
        add_sum_products(
            into.limbs, at, cells, one.limbs, left.entries, other.limbs, right.entries, others
        )
    for each in (left, right):
        if each.sums.specials is not None:
            # NaN and infinities times zeros and signs that are not known: NaN. Times NULL, nothing.
            marks = each.sums.specials[each.entries].any(axis=1)
            marks &= (left.counts > 0) & (right.counts > 0)
            found = np.zeros((cells.size, SumColumn.special_kinds), np.int64)
            found[marks, 0] = 1
            into.add_specials(cells, found)


def _overflows(call: JoinCall, tables: Sequence[pa.Table], met: Met) -> Bools:
    """The combinations of which some product does not fit the type of products."""
    kind = call.aggregate.types[0]
    bound = float(2 ** (kind.bit_width - 1))
    ends = [
        [_extremes(tables[each.side], name, met.entries[each.side]) for name in
         (each.least, each.most)]
        for each in call.factors
    ]  # fmt: skip
    found = np.zeros(met.numbers.size, np.bool_)
    for one in ends[0]:
        for other in ends[1]:
            rough = np.abs(one.astype(np.float64) * other.astype(np.float64))
            found |= rough >= 2 * bound
            # Near the bound doubles cannot tell.
            for place in np.flatnonzero((rough > bound / 2) & (rough < 2 * bound)).tolist():
                exact = int(one[place]) * int(other[place])
                found[place] |= not -int(bound) <= exact < int(bound)
    return found


def _extremes(table: pa.Table, name: str, entries: Ints) -> Ints:
    """Least or greatest values of entries; 0 where there is none, and of padded rows."""
    values = array_of(table, name).field(0).cast(pa.int64()).fill_null(0).to_numpy()
    return np.append(values, 0)[entries]


def array_of(table: pa.Table, name: str) -> pa.Array:
    """A column in one piece, its dictionary resolved."""
    column = table.column(name)
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


@compiled
def add_sum_products(
    out: Ints,
    at: int,
    cells: Ints,
    left: Ints,
    left_entries: Ints,
    right: Ints,
    right_entries: Ints,
    times: Ints,
) -> None:
    """Add products of settled sums, each multiplied by a count; the first limb goes to `at`."""
    first, second = left.shape[1], right.shape[1]
    wide = first + second
    a, b = np.empty(first, np.uint64), np.empty(second, np.uint64)
    product, whole = np.empty(wide, np.uint64), np.empty(wide + 2, np.uint64)
    count = np.empty(2, np.uint64)
    for i in range(cells.size):
        is_negative = digits_of(left[left_entries[i]], a) != digits_of(right[right_entries[i]], b)
        multiply(a, first, b, second, product)
        count[0], count[1] = np.uint64(times[i]) & _LOW, np.uint64(times[i]) >> _32
        multiply(product, wide, count, 2, whole)
        cell = cells[i]
        for k in range(wide + 2):
            digit = np.int64(whole[k])
            out[cell, at + k] += -digit if is_negative else digit


@compiled
def digits_of(limbs: Ints, digits: Digits) -> bool:
    """The size of a settled sum as digits, and whether it is negative."""
    width = limbs.shape[0]
    is_negative = bool(limbs[width - 1] < 0)
    carry = np.uint64(1)
    for k in range(width):
        digit = np.uint64(limbs[k]) & _LOW
        if is_negative:
            digit = (~digit & _LOW) + carry
            carry = digit >> _32
            digit &= _LOW
        digits[k] = digit
    return is_negative
