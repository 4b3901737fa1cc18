"""Windows that are due, answered from what techniques keep of the sealed slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.aggregates.columns.by_part import empty
from muntin.aggregates.columns.column import PartColumn
from muntin.engine.answers.families import Family
from muntin.engine.answers.stage_b import MAX_FILLED_ROWS, MAX_RESULT_ROWS, Answer, check_size
from muntin.engine.slices.finals.own_slices import OwnKey
from muntin.engine.slices.finals.pieces import Objects, Pieces
from muntin.engine.slices.moving_slices import MovingSlices
from muntin.engine.slices.places import Chains, Spans
from muntin.engine.slices.stretches import Trail, last_before
from muntin.engine.slices.values.last_seen import LastSeen
from muntin.plan.nodes import Technique

# Windows that outnumber slices by far are better looked for slice by slice.
_MOST_PER_SLICE = 4
_FEW_WINDOWS = 1 << 10
# Aggregates that add different values up.
_SUMMED = ("sum_distinct", "avg_distinct")


@dataclass(frozen=True)
class _Read:
    """What is read: the place of a family, an accumulator, and the predicate of each query.

    Different values are added up where it ``is_summed``, or else counted.
    """

    place: int
    index: int
    members: tuple[int, ...]
    technique: Technique
    is_summed: bool = False


class _OwnRead(NamedTuple):
    """A window of a structure over own slices: whose accumulators go into a column from ``low``."""

    end: int
    range: int
    slots: Ints
    into: PartColumn
    low: int


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
        # Aggregations along time, and along cells.
        self.steps = self.cell_steps = 0
        self._held = slices.places.held()

    def rows_of(self, family: Family) -> _Rows:
        """The windows and groups that a family has answers for."""
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
        found: list[Ints] | None = None
        most_listed = _FEW_WINDOWS + _MOST_PER_SLICE * log.slices * len(sizes)
        if family.finals[0].query.emit_empty:
            check_size(family.finals[0], int(sizes.max()), MAX_FILLED_ROWS)
        elif sizes.sum(dtype=np.float64) > most_listed:
            starts = log.starts()
            found = [self._holding(starts, family, query) for query in range(len(sizes))]
            sizes = np.array([each.size for each in found])
        queries = np.repeat(np.arange(sizes.size), sizes)
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        if found is None:
            windows = np.arange(queries.size) - offsets[queries] + lowest[queries]
        else:
            windows = np.concatenate(found)
        ends = phases[queries] + windows * slides[queries]
        since = ends - ranges[queries]
        lows, highs = log.positions(since), log.positions(ends)
        listed = self._listed(family, lows, highs, since, queries)
        rows = _Rows(windows, offsets, queries, lows, highs, *listed)
        return _filled(rows, family.gap) if family.finals[0].query.emit_empty else rows

    def _holding(self, starts: Ints, family: Family, query: int) -> Ints:
        """The numbers of the windows of one query that hold a slice, found slice by slice."""
        span, slide, phase, least, most = family.windows[query].tolist()
        firsts = np.maximum((starts - phase) // slide + 1, least)
        lasts = np.minimum((starts + span - phase) // slide, most)
        # Slices rise, and so do the windows that each is the first to be in.
        firsts[1:] = np.maximum(firsts[1:], np.maximum.accumulate(lasts)[:-1] + 1)
        sizes = np.maximum(lasts - firsts + 1, 0)
        check_size(family.finals[query], float(sizes.sum(dtype=np.float64)), MAX_RESULT_ROWS)
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        slices = np.repeat(np.arange(sizes.size), sizes)
        found: Ints = np.arange(slices.size) - offsets[slices] + firsts[slices]
        return found

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
        if self._slices.places.groups is None:
            return runs, slots
        order = np.lexsort((self._slices.ranks(slots), runs))
        return runs[order], slots[order]

    def answer(self, families: Sequence[Family], rows: Sequence[_Rows]) -> list[Answer]:
        """The answers of families whose rows are known."""
        asked = {
            read: None for place, family in enumerate(families) for read in _reads(place, family)
        }
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
    ) -> dict[_Read, Any]:
        log = self._slices.log
        found: dict[_Read, Any] = {}
        seen: list[_Read] = []
        owned: dict[OwnKey, list[_OwnRead]] = {}
        for key in asked:
            asking, column = rows[key.place], log.columns[key.index]
            if key.technique.is_own:
                part = self._slices.node.accumulators[key.index].part
                found[key] = empty(part, asking.slots.size)
                self._list_own(key, families[key.place], asking, found[key], owned)
                continue
            if key.technique.name == LastSeen.technique:
                seen.append(key)
                continue
            spans = asking.spans(key.members)
            assert not isinstance(column, Objects | Pieces)
            found[key], steps, cells = column.read(
                log.trail, log.lasts, log.places.chains, self._held, spans
            )
            self.steps += steps
            self.cell_steps += cells
        for own, reads in owned.items():
            self._answer_own(own, reads)
        self._count_seen(seen, rows, found)
        return found

    def _count_seen(
        self, asked: list[_Read], rows: Sequence[_Rows], found: dict[_Read, Any]
    ) -> None:
        """Count different values by marks, for all queries together: marks move on once."""
        log = self._slices.log
        by_part: dict[int, list[_Read]] = {}
        for key in asked:
            by_part.setdefault(key.index, []).append(key)
        for index, keys in by_part.items():
            column = log.columns[index]
            assert isinstance(column, LastSeen)
            spans = [(rows[key.place].spans(key.members), key.is_summed) for key in keys]
            counted = column.count(log.trail, log.places.chains, self._held, spans)
            found |= dict(zip(keys, counted, strict=True))
            self.steps += sum(len(each) for each in counted)

    def _list_own(
        self,
        key: _Read,
        family: Family,
        rows: _Rows,
        into: PartColumn,
        owned: dict[OwnKey, list[_OwnRead]],
    ) -> None:
        """Note the windows that structures over queries' own slices are to answer."""
        bounds = np.searchsorted(rows.runs, np.arange(rows.windows.size + 1)).tolist()
        keys = [
            OwnKey.of(key.technique.name, key.index, member, final.window)
            for member, final in zip(key.members, family.finals, strict=True)
        ]
        windows = zip(rows.queries.tolist(), rows.windows.tolist(), strict=True)
        for number, (query, window) in enumerate(windows):
            low, high = bounds[number], bounds[number + 1]
            if low < high:
                spec = family.finals[query].window
                end = spec.phase + window * spec.period
                read = _OwnRead(end, spec.range, rows.slots[low:high], into, low)
                owned.setdefault(keys[query], []).append(read)

    def _answer_own(self, key: OwnKey, reads: list[_OwnRead]) -> None:
        """Answer the windows of one structure, in order of their ends."""
        longest = max(read.range for read in reads)
        reads.sort(key=attrgetter("end"))
        own = self._slices.own(key, longest, reads[0].end)
        for read in reads:
            found = own.window(read.end - read.range, read.end, read.slots)
            read.into.merge(np.arange(read.low, read.low + read.slots.size), found)

    def _lowered(
        self,
        place: int,
        family: Family,
        rows: _Rows,
        columns: dict[_Read, Any],
    ) -> Answer:
        values, failed = [], None
        for number, lowering in enumerate(family.lowerings):
            parts: list[Any] = [columns[each] for each in _reads_of(place, family, number)]
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


def _reads(place: int, family: Family) -> list[_Read]:
    """The accumulators that a family reads, each with the predicate of every query."""
    return [
        read for number in range(len(family.lowerings)) for read in _reads_of(place, family, number)
    ]


def _reads_of(place: int, family: Family, number: int) -> list[_Read]:
    """What one lowering of a family reads."""
    lowering = family.lowerings[number]
    members = tuple(read[1 + number] for read in family.reads)
    # Reasons differ from query to query, and tell nothing here.
    techniques = (replace(each, why="") for each in family.finals[0].techniques[number])
    pairs = zip(lowering.accumulators, techniques, strict=True)
    summed = lowering.aggregate.name in _SUMMED
    return [_Read(place, index, members, technique, summed) for index, technique in pairs]


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
