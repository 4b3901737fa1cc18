"""Windows that are due, answered from what techniques keep of the sealed slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.column import PartColumn
from muntin.aggregates.columns import empty
from muntin.compiled import compiled
from muntin.engine.families import Family
from muntin.engine.slices.moving_slices import MovingSlices
from muntin.engine.slices.own_slices import read_slots
from muntin.engine.slices.places import Chains, Spans
from muntin.engine.slices.sealed_log import Objects
from muntin.engine.slices.stretches import Trail, last_before
from muntin.engine.stage_b import MAX_FILLED_ROWS, MAX_RESULT_ROWS, Answer, check_size

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# Windows that outnumber slices by far are better looked for slice by slice.
_MOST_PER_SLICE = 4
_FEW_WINDOWS = 1 << 10


# What is read: the place of a family, an accumulator, and the predicate of each query.
_Read = tuple[int, int, tuple[int, ...]]


@dataclass(frozen=True)
class _Rows:
    """What a family answers: a row for each window and group that holds rows.

    Rows are in order of run, which is a pair of query and window, and of group. ``windows`` are
    the numbers of the runs' windows, ``offsets`` the first run of each query. ``lows`` and
    ``highs`` are the positions of a run's window in the log.
    """

    windows: Ints
    offsets: Ints
    queries: Ints
    lows: Ints
    highs: Ints
    runs: Ints
    slots: Ints

    def spans(self, members: tuple[int, ...]) -> Spans:
        """The window of each row, as it is read for a predicate of every query."""
        predicates = np.array(members, np.int64)[self.queries[self.runs]]
        return Spans(self.slots, predicates, self.lows[self.runs], self.highs[self.runs])


class MovingStage:
    """Answers families of queries over the sealed slices of one set of partials."""

    def __init__(self, slices: MovingSlices) -> None:
        self._slices = slices
        self.steps = 0
        self._held = slices.places.held()

    def rows_of(self, family: Family) -> _Rows | None:
        """The windows and groups that a family has answers for; None where there are too many."""
        log = self._slices.log
        ranges, slides, phases, least, most = family.windows.T
        if not log.size:
            none = np.empty(0, np.int64)
            offsets = np.zeros(len(family.finals) + 1, np.int64)
            return _Rows(none, offsets, none, none, none, none, none)
        earliest, latest = log.bounds
        lowest = np.maximum((earliest - phases) // slides + 1, least)
        highest = np.minimum((latest + ranges - phases) // slides, most)
        if family.gap is not None:
            lowest = np.minimum(lowest, family.gap)
        sizes = np.maximum(highest - lowest + 1, 0)
        if family.finals[0].query.emit_empty:
            check_size(family.finals[0], int(sizes.max()), MAX_FILLED_ROWS)
        elif sizes.sum(dtype=np.float64) > _FEW_WINDOWS + _MOST_PER_SLICE * log.slices * len(sizes):
            return None
        queries = np.repeat(np.arange(sizes.size), sizes)
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        windows = np.arange(queries.size) - offsets[queries] + lowest[queries]
        ends = phases[queries] + windows * slides[queries]
        since = ends - ranges[queries]
        lows, highs = log.positions(since), log.positions(ends)
        found = _Rows(
            windows,
            offsets,
            queries,
            lows,
            highs,
            *self._listed(family, lows, highs, since, queries),
        )
        return _filled(found, family.gap) if family.finals[0].query.emit_empty else found

    def _listed(
        self, family: Family, lows: Ints, highs: Ints, since: Ints, queries: Ints
    ) -> tuple[Ints, Ints]:
        """The rows that hold an entry of their query's predicate, in order."""
        log = self._slices.log
        runs, slots = log.candidates(lows, highs, since)
        members = np.array([final.member for final in family.finals], np.int64)
        spans = Spans(slots, members[queries[runs]], lows[runs], highs[runs])
        kept = _exists(log.trail, log.lasts, log.places.chains, self._held, spans)
        runs, slots = runs[kept], slots[kept]
        sizes = np.bincount(queries[runs], minlength=len(family.finals))
        most = int(np.argmax(sizes))
        check_size(family.finals[most], int(sizes[most]), MAX_RESULT_ROWS)
        if not log.places.groups:
            return runs, slots
        order = np.lexsort((self._slices.ranks(slots), runs))
        return runs[order], slots[order]

    def answer(self, families: Sequence[Family], rows: Sequence[_Rows]) -> list[Answer]:
        """The answers of families whose rows are known."""
        asked: dict[_Read, None] = {}
        for place, family in enumerate(families):
            for index, members in _reads(family):
                asked[place, index, members] = None
        columns = self._read(list(asked), families, rows)
        return [
            self._lowered(place, family, rows[place], columns)
            for place, family in enumerate(families)
        ]

    def _read(
        self,
        asked: list[_Read],
        families: Sequence[Family],
        rows: Sequence[_Rows],
    ) -> dict[_Read, PartColumn]:
        log = self._slices.log
        found: dict[_Read, PartColumn] = {}
        for key in asked:
            place, index, members = key
            column = log.columns[index]
            if isinstance(column, Objects):
                found[key] = self._own(index, members, families[place], rows[place])
                continue
            spans = rows[place].spans(members)
            found[key], steps = column.read(
                log.trail, log.lasts, log.places.chains, self._held, spans
            )
            self.steps += steps
        return found

    def _own(self, index: int, members: tuple[int, ...], family: Family, rows: _Rows) -> PartColumn:
        """What a technique over a query's own slices gives, window by window."""
        part = self._slices.node.accumulators[index].part
        column = empty(part, rows.slots.size)
        bounds = np.searchsorted(rows.runs, np.arange(rows.windows.size + 1))
        for number in np.argsort(rows.highs, kind="stable").tolist():
            low, high = int(bounds[number]), int(bounds[number + 1])
            if low == high:
                continue
            query = int(rows.queries[number])
            window = family.finals[query].window
            own = self._slices.own(index, members[query], window)
            end = window.phase + int(rows.windows[number]) * window.period
            found = own.window(end - window.range, end)
            column.merge(np.arange(low, high), read_slots(part, found, rows.slots[low:high]))
        return column

    def _lowered(
        self,
        place: int,
        family: Family,
        rows: _Rows,
        columns: dict[_Read, PartColumn],
    ) -> Answer:
        values, failed = [], None
        for number, lowering in enumerate(family.lowerings):
            members = tuple(read[1 + number] for read in family.reads)
            parts: list[Any] = [columns[place, index, members] for index in lowering.accumulators]
            lowered = lowering.aggregate.lower(parts)
            values.append(lowered.values)
            if lowered.errors is not None:
                flags = lowered.errors.to_numpy(zero_copy_only=False).astype(np.int64)
                failed = flags if failed is None else failed + flags
        keys = self._slices.keys(rows.slots)
        batch = pa.RecordBatch.from_arrays([*keys, *values], schema=family.schema)
        held = np.flatnonzero(np.diff(np.searchsorted(rows.runs, np.arange(rows.windows.size + 1))))
        begins = np.append(np.searchsorted(rows.runs, held), rows.slots.size)
        runs = np.searchsorted(held, rows.offsets)
        return Answer(rows.windows[held], runs, begins, batch, failed)


def _filled(found: _Rows, gap: int | None) -> _Rows:
    """The runs from the first of a gap, or that holds rows, to the last that does, a row each."""
    if not found.runs.size:
        return found
    first = int(found.runs[0]) if gap is None else 0
    kept = slice(first, int(found.runs[-1]) + 1)
    count = kept.stop - first
    cut = found.windows[kept], np.array([0, count]), found.queries[kept]
    rows = np.arange(count), np.zeros(count, np.int64)
    return _Rows(*cut, found.lows[kept], found.highs[kept], *rows)


def _reads(family: Family) -> list[tuple[int, tuple[int, ...]]]:
    """The accumulators that a family reads, each with the predicate of every query."""
    found: dict[tuple[int, tuple[int, ...]], None] = {}
    for number, lowering in enumerate(family.lowerings):
        members = tuple(read[1 + number] for read in family.reads)
        for index in lowering.accumulators:
            found[index, members] = None
    return list(found)


@compiled
def _exists(trail: Trail, lasts: Ints, chains: Chains, held: Bools, spans: Spans) -> Ints:
    """The windows that hold an entry in a cell of their predicate."""
    out = np.empty(spans.slots.size, np.int64)
    size = 0
    for row in range(spans.slots.size):
        place = chains.firsts[spans.slots[row]]
        while place >= 0:
            if (
                held[spans.members[row], chains.cells[place]]
                and lasts[place] >= spans.lows[row]
                and last_before(trail, lasts[place], spans.highs[row]) >= spans.lows[row]
            ):
                out[size] = row
                size += 1
                break
            place = chains.following[place]
    return out[:size]
