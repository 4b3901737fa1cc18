"""Answers that are read off all values of a window: distinct values, percentiles, lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin._typing import Ints
from muntin.aggregates.algebra import Lowered, Part
from muntin.aggregates.columns.arrow_views import double_bits
from muntin.aggregates.columns.counts import CountColumn
from muntin.aggregates.columns.holistic.clustered_windows import windows_of
from muntin.aggregates.columns.holistic.windows import Windows
from muntin.aggregates.columns.sums import SumColumn
from muntin.aggregates.holistic.frequencies import Frequent
from muntin.aggregates.holistic.percentiles import Percentile, PercentileDisc
from muntin.aggregates.holistic.top_values import MinK
from muntin.aggregates.types import is_number
from muntin.errors import DataError

if TYPE_CHECKING:
    from muntin.aggregates.registry import ResolvedAggregate

Answers = Callable[["ResolvedAggregate", Windows], pa.Array]
Lowering = Callable[["ResolvedAggregate", Sequence[Any]], Lowered]


def lower_values(answers: Answers) -> Lowering:
    """The lowering of an aggregate that one function answers for all windows."""
    return _capped(lambda aggregate, windows: Lowered(answers(aggregate, windows)))


def lower_distinct(lower: Lowering) -> Lowering:
    """The lowering of sums and averages, of the different values only."""
    return _capped(lambda aggregate, windows: lower(aggregate, _columns(aggregate, windows)))


def _capped(lower: Callable[[ResolvedAggregate, Windows], Lowered]) -> Lowering:
    """What windows answer that do not have too many values; the others fail."""

    def lowered(aggregate: ResolvedAggregate, columns: Sequence[Any]) -> Lowered:
        windows = windows_of(columns[0])
        cap = aggregate.cap
        over = windows.over(cap.values, cap.bytes)
        if aggregate.facet == "exact":
            exact = np.ones(len(windows), np.bool_)
            exact[over] = False
            return Lowered(pa.array(exact))
        if not over.size:
            return lower(aggregate, windows)
        if cap.on == "fail":
            raise _too_many(aggregate, windows.only(over[:1]))
        kept = np.delete(np.arange(len(windows)), over)
        found = lower(aggregate, windows.only(kept))
        failed = np.ones(len(windows), np.bool_)
        failed[kept] = False
        if found.errors is not None:
            failed[kept] = found.errors.to_numpy(zero_copy_only=False)
        answers = _placed(False, 1, len(windows), kept, found.values)
        if aggregate.fallback is None:
            return Lowered(answers, pa.array(failed))
        failed[over] = False
        others = aggregate.fallback.lower(columns[1:]).values.cast(aggregate.type)
        places = np.arange(len(windows))
        places[over] += len(windows)
        answers = pa.concat_arrays([answers, others]).take(pa.array(places))
        return Lowered(answers, pa.array(failed) if failed.any() else None)

    return lowered


def _too_many(aggregate: ResolvedAggregate, windows: Windows) -> DataError:
    """The error of a window that has too many values."""
    counts, sizes = windows.measured()
    cap = aggregate.cap
    return DataError(
        f"a window has {counts[0]:,} values of {sizes[0]:,} bytes for {aggregate.name}, and may "
        f"have {cap.values:,} of {cap.bytes:,} bytes",
        hint="raise cap_values or cap_bytes, or use on_cap = 'null' or 'approximate'",
    )


def _columns(aggregate: ResolvedAggregate, windows: Windows) -> tuple[SumColumn, CountColumn]:
    """The sum and the count of each window's different values, as columns."""
    counts = CountColumn(Part("count", aggregate.types), windows.counts())
    return windows.sums(aggregate.types), counts


def count_distinct(aggregate: ResolvedAggregate, windows: Windows) -> pa.Array:
    """How many different values."""
    return pa.array(windows.counts())


def collect_set(aggregate: ResolvedAggregate, windows: Windows) -> pa.Array:
    """The different values."""
    offsets, ranks = windows.different()
    return listed(aggregate.type, offsets, windows.values(ranks))


def percentile(aggregate: ResolvedAggregate, windows: Windows) -> pa.Array:
    """Values at fractions, between two where a fraction lies between them."""
    algebra = aggregate.algebra
    assert isinstance(algebra, Percentile)
    held = np.flatnonzero(windows.totals)
    fractions = np.array([float(p) for p in algebra.fractions])
    totals = np.repeat(windows.totals[held], fractions.size)
    positions = (totals - 1) * np.tile(fractions, held.size)
    lows, highs = np.floor(positions), np.ceil(positions)
    asked = np.repeat(held, fractions.size)
    places = np.concatenate((lows, highs)).astype(np.int64)
    if algebra.is_descending:
        places = np.tile(totals, 2) - 1 - places
    ranks = windows.select(np.tile(asked, 2), places)
    below, above = np.split(_doubles(windows.values(ranks)), 2)
    with np.errstate(invalid="ignore", over="ignore"):
        weights, apart = positions - lows, above - below
        mean = below * (1 - weights) + above * weights
        between = np.where(np.isfinite(apart), below + weights * apart, mean)
    found = np.where((lows == highs) | (below == above), below, between)
    return _placed(algebra.is_listed, fractions.size, len(windows), held, pa.array(found))


def percentile_disc(aggregate: ResolvedAggregate, windows: Windows) -> pa.Array:
    """Values of the window itself, at fractions."""
    algebra = aggregate.algebra
    assert isinstance(algebra, PercentileDisc)
    held = np.flatnonzero(windows.totals)
    fractions = np.array([float(p) for p in algebra.fractions])
    totals = np.repeat(windows.totals[held], fractions.size)
    places = np.ceil(totals * np.tile(fractions, held.size)).astype(np.int64) - 1
    places = np.maximum(places, 0)
    if algebra.is_descending:
        places = totals - 1 - places
    values = windows.values(windows.select(np.repeat(held, fractions.size), places))
    if is_number(aggregate.types[0]):
        values = pa.array(_doubles(values))
    return _placed(algebra.is_listed, fractions.size, len(windows), held, values)


def mode(aggregate: ResolvedAggregate, windows: Windows) -> pa.Array:
    """The most frequent value."""
    offsets, ranks, _ = windows.heaviest(*asked_of(aggregate, windows.totals))
    return _placed(False, 1, len(windows), np.flatnonzero(np.diff(offsets)), windows.values(ranks))


def counted(aggregate: ResolvedAggregate, windows: Windows) -> pa.Array:
    """The most frequent values, or those that make up a fraction of all, with their counts."""
    offsets, ranks, counts = windows.heaviest(*asked_of(aggregate, windows.totals))
    values = windows.values(ranks)
    items = pa.StructArray.from_arrays(
        [values, pa.array(counts)], fields=list(aggregate.type.value_type)
    )
    return listed(aggregate.type, offsets, items)


def asked_of(aggregate: ResolvedAggregate, totals: Ints) -> tuple[int, Ints]:
    """How many of the most frequent values are asked for, and how often each must occur.

    ``totals`` are the numbers of values of the windows.
    """
    algebra = aggregate.algebra
    if not isinstance(algebra, Frequent):
        return (aggregate.constants[0] if aggregate.constants else 1), np.ones_like(totals)
    fraction = algebra.fraction
    over, under = fraction.numerator, fraction.denominator
    # In Python's integers: fractions may have many digits, windows are fewer than rows.
    floors = [-(-over * total // under) for total in totals.tolist()]
    return under // over, np.array(floors, np.int64)


def best(aggregate: ResolvedAggregate, windows: Windows) -> pa.Array:
    """The least or greatest values, or values of rows by another argument."""
    algebra = aggregate.algebra
    assert isinstance(algebra, MinK)
    sizes = np.minimum(windows.totals, aggregate.constants[0])
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    asked = np.repeat(np.arange(len(windows)), sizes)
    places = np.arange(offsets[-1]) - offsets[asked]
    if algebra.takes_greatest:
        places = windows.totals[asked] - 1 - places
    return listed(aggregate.type, offsets, windows.values(windows.select(asked, places)))


def collect_list(aggregate: ResolvedAggregate, windows: Windows) -> pa.Array:
    """All values in order of time."""
    return listed(aggregate.type, *windows.every())


def string_agg(aggregate: ResolvedAggregate, windows: Windows) -> pa.Array:
    """All texts in order of time, joined."""
    offsets, values = windows.every()
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), values.cast(pa.large_string()))
    joined = pc.binary_join(lists, pa.scalar(aggregate.constants[0], pa.large_string()))
    empty = pa.array(np.diff(offsets) == 0)
    return pc.if_else(empty, pa.scalar(None, pa.large_string()), joined).cast(aggregate.type)


def _doubles(values: pa.Array) -> np.ndarray[Any, np.dtype[np.float64]]:
    return double_bits(values).view(np.float64)


def listed(kind: pa.DataType, offsets: Ints, values: pa.Array) -> pa.Array:
    """Values as lists; more than 2**31 of them in one batch do not fit lists."""
    return pa.ListArray.from_arrays(pa.array(offsets).cast(pa.int32()), values, type=kind)


def _placed(listed: bool, width: int, size: int, held: Ints, values: pa.Array) -> pa.Array:
    """Answers of the windows that hold values, `width` of each; NULL for the others."""
    places = np.full(size, -1, np.int64)
    places[held] = np.arange(held.size)
    if listed:
        offsets = pa.array(width * np.arange(held.size + 1)).cast(pa.int32())
        values = pa.ListArray.from_arrays(offsets, values)
    return values.take(pa.array(places, mask=places < 0))
