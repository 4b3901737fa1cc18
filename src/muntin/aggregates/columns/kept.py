"""Accumulators as answers: from columns of parts to Arrow and back, and multiples of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns import by_part
from muntin.aggregates.columns.bits import BitColumn
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.columns.counts import CountColumn
from muntin.aggregates.columns.extremes import ExtremeColumn
from muntin.aggregates.columns.picks import PickColumn
from muntin.aggregates.columns.sums import SumColumn
from muntin.aggregates.kept import LIMBS

if TYPE_CHECKING:
    from muntin.aggregates.kept import KeptAggregate

# A number of rows so large that only whether it is odd still matters to what is counted apart.
_MANY = 1 << 30
# The limbs that a product has beyond those of its first factor.
_MORE_LIMBS = 2


def encode(aggregate: KeptAggregate, columns: Sequence[Any]) -> pa.StructArray:
    """The cells of one column for each part, as structs."""
    fields = list(aggregate.type)
    arrays = [
        _encoded(column).cast(field.type) for column, field in zip(columns, fields, strict=True)
    ]
    return pa.StructArray.from_arrays(arrays, fields=fields)


def _encoded(column: Any) -> pa.Array:
    if isinstance(column, CountColumn):
        return pa.array(np.ascontiguousarray(column.counts))
    if isinstance(column, BitColumn):
        return pa.array(column.words)
    if isinstance(column, ExtremeColumn):
        return column.result()
    if isinstance(column, PickColumn):
        batch = column.to_arrow()
        return pa.StructArray.from_arrays(batch.columns, names=batch.schema.names)
    if isinstance(column, SumColumn):
        column.normalize()
        return encode_limbs(column.limbs, column.base, column.specials)
    # What stands for a column of sums while answers are written knows its limbs.
    limbs, base = column.settled()
    return encode_limbs(limbs, base)


def encode_limbs(limbs: Ints, base: int, specials: Ints | None = None) -> pa.Array:
    """Each sum as a list: the place of its first limb, then its limbs.

    Counts of NaN and infinities stand behind them; the place is then complemented.
    """
    rows, width = limbs.shape
    extra = 0 if specials is None else specials.shape[1]
    out = np.empty((rows, 1 + width + extra), np.int64)
    out[:, 0] = base if specials is None else ~base
    out[:, 1 : 1 + width] = limbs
    if specials is not None:
        out[:, 1 + width :] = specials
    offsets = np.arange(rows + 1) * out.shape[1]
    return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(out.reshape(-1)))


def decode(aggregate: KeptAggregate, values: pa.StructArray) -> list[PartColumn]:
    """The columns that `encode` made the structs of."""
    fields = values.flatten()
    return [_decoded(part, each) for part, each in zip(aggregate.parts, fields, strict=True)]


def _decoded(part: Part, values: pa.Array) -> PartColumn:
    kind = by_part.class_of(part)
    if issubclass(kind, CountColumn | BitColumn):
        return kind(part, values.to_numpy(zero_copy_only=False).astype(np.int64))
    if issubclass(kind, SumColumn):
        return decode_limbs(kind, part, values)
    if pa.types.is_struct(values.type):
        batch = pa.RecordBatch.from_arrays(values.flatten(), names=["seen", "key", "value"])
    else:
        batch = pa.RecordBatch.from_arrays([values], names=["value"])
    return kind.from_arrow(part, batch)


def decode_limbs(kind: type[SumColumn], part: Part, values: pa.Array) -> SumColumn:
    """The sums that `encode_limbs` made lists of."""
    assert values.type == LIMBS
    if not len(values):
        return kind.empty(part, 0)
    offsets = values.offsets.to_numpy()
    words = values.values.to_numpy(zero_copy_only=False)[: offsets[-1]]
    lengths = np.diff(offsets)
    begins = offsets[:-1]
    places = words[begins]
    special = places < 0
    bases = np.where(special, ~places, places)
    widths = lengths - 1 - np.where(special, kind.special_kinds, 0)
    base, width = int(bases[0]), int(widths[0])
    if (bases == base).all() and (widths == width).all() and not special.any():
        limbs = words[begins[0] :].reshape(len(values), width + 1)[:, 1:]
        return kind(part, np.ascontiguousarray(limbs), base, 1, None)
    return _spread(kind, part, words, begins, bases, widths, special)


def _spread(
    kind: type[SumColumn],
    part: Part,
    words: Ints,
    begins: Ints,
    bases: Ints,
    widths: Ints,
    special: Any,
) -> SumColumn:
    """Sums over several windows of exponents, over one that holds them all."""
    low, high = int(bases.min()), int((bases + widths).max())
    limbs = np.zeros((bases.size, max(high - low, 1)), np.int64)
    rows = np.repeat(np.arange(bases.size), widths)
    within = np.arange(rows.size) - np.repeat(np.cumsum(widths) - widths, widths)
    limbs[rows, bases[rows] - low + within] = words[begins[rows] + 1 + within]
    marks = None
    if special.any():
        kinds = kind.special_kinds
        marks = np.zeros((bases.size, kinds), np.int64)
        held = np.flatnonzero(special)
        at = (begins + 1 + widths)[held][:, None] + np.arange(kinds)
        marks[held] = words[at]
    return kind(part, limbs, low, 1, marks)


def add_multiples(
    into: PartColumn, cells: Ints, column: PartColumn, entries: Ints, times: Ints
) -> None:
    """Combine cell ``entries[i]`` of a column into cell ``cells[i]``, ``times[i]`` times.

    Times are at least 1; sums are multiplied exactly. Counts must be known to fit 64 bits.
    """
    if isinstance(into, CountColumn):
        assert isinstance(column, CountColumn)
        add_counts(into.counts, cells, column.counts, entries, times)
    elif isinstance(into, SumColumn):
        assert isinstance(column, SumColumn)
        _add_sums(into, cells, column, entries, times)
    elif isinstance(into, BitColumn) and into.part.kind == "bit_xor":
        assert isinstance(column, BitColumn)
        into.merge(np.where(times & 1, cells, -1), column.take(entries))
    else:
        # To take one of several, or all bits of them, once is as good as often.
        into.merge(cells, column.take(entries))


def _add_sums(into: SumColumn, cells: Ints, column: SumColumn, entries: Ints, times: Ints) -> None:
    width = column.limbs.shape[1]
    if width and cells.size:
        column.normalize()
        width = column.limbs.shape[1]
        into.reserve(column.base, width + _MORE_LIMBS, cells.size)
        at = column.base - into.base
        add_products(into.limbs, at, cells, column.limbs, entries, times)
    if column.specials is not None:
        few = np.where(times > _MANY, _MANY + (times & 1), times)
        marks = column.specials[entries] * few[:, None]
        into.add_specials(cells, marks)


@compiled
def add_counts(out: Ints, cells: Ints, counts: Ints, entries: Ints, times: Ints) -> None:
    """Add products of counts."""
    for i in range(cells.size):
        out[cells[i]] += counts[entries[i]] * times[i]


_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


@compiled
def add_products(out: Ints, at: int, cells: Ints, limbs: Ints, entries: Ints, times: Ints) -> None:
    """Add settled sums, each multiplied by a count below 2**63; the first limb goes to `at`.

    Two's complement throughout: the number is as wide as the product, its sign extended, and what
    is carried beyond that is dropped. A product adds less than 2**32 to every limb.
    """
    width = limbs.shape[1]
    wide = width + 2
    digits = np.empty(wide, np.uint64)
    for i in range(cells.size):
        cell, entry = cells[i], entries[i]
        low = np.uint64(times[i]) & _LOW
        high = np.uint64(times[i]) >> _32
        top = limbs[entry, width - 1]
        sign = np.uint64(top >> 63) & _LOW
        for k in range(width):
            digits[k] = np.uint64(limbs[entry, k]) & _LOW
        digits[width] = sign
        digits[width + 1] = sign
        carry, before = np.uint64(0), np.uint64(0)
        for k in range(wide):
            # Halves of the count, low times this digit and high times the one before.
            first = digits[k] * low + carry
            digit = first & _LOW
            carry = first >> _32
            if high:
                second = before * high + digit
                digit = second & _LOW
                carry += second >> _32
            before = digits[k]
            if k < wide - 1:
                out[cell, at + k] += np.int64(digit)
            else:
                value = np.int64(digit)
                out[cell, at + k] += value - ((value >> 31) << 32)
