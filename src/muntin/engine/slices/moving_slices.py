"""The slices of one set of partials of a stream that moves on in small steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregates.columns.by_part import from_arrow
from muntin.engine.answers.group_keys import sort_order
from muntin.engine.slices.array_pack import Arrays, as_bytes, inside, under
from muntin.engine.slices.finals.own_slices import OwnKey, OwnSlices
from muntin.engine.slices.finals.pieces import is_plain
from muntin.engine.slices.key_table import KeyTable
from muntin.engine.slices.open_log import OpenLog, Run
from muntin.engine.slices.partials import PartialBatch, SliceTable, merge, nothing
from muntin.engine.slices.places import Places
from muntin.engine.slices.sealed_log import SealedLog
from muntin.engine.wire import from_ipc, to_ipc
from muntin.plan.nodes import Partials

# Places are numbered anew when so many have come since the last time, and a share of all entries.
_FEW_PLACES = 1 << 12
_SHARE = 8


class MovingSlices:
    """Open slices as a log of runs, sealed ones as a log by time with its finals.

    ``frontier`` is the tick below which slices are sealed: nothing is added to those any more.
    """

    def __init__(self, node: Partials) -> None:
        self.node = node
        self.places = Places(node)
        self._parts = [accumulator.part for accumulator in node.accumulators]
        self._open = OpenLog(self._parts)
        self.log = SealedLog(self.places, self._parts)
        self.frontier = -(2**62)
        # Aggregations along time, and along cells.
        self.steps = self.cell_steps = 0
        self._told = 0, 0
        self._began = 0
        self._own: dict[OwnKey, OwnSlices] = {}
        self._ranks = np.empty(0, np.int64)

    @staticmethod
    def takes(node: Partials) -> bool:
        """Whether groups of these partials can be told apart by the bytes of their keys."""
        return all(KeyTable.takes(bound.type) for bound in node.grouping)

    @staticmethod
    def keeps_log(node: Partials) -> bool:
        """Whether sealed entries of these partials can be written once and read by others.

        Python objects cannot, nor can extremes of strings, whose codes move as others come.
        """
        parts = [accumulator.part for accumulator in node.accumulators]
        return MovingSlices.takes(node) and all(is_plain(part) for part in parts)

    def base_arrays(self) -> Arrays:
        """What is open and what is known of each place, as arrays: all but the sealed entries."""
        found = under("log/", self.log.base_arrays()) | under("places/", self.places.arrays())
        found["moments"] = np.array([self.frontier, self._began])
        run = self._open.whole()
        if run is not None:
            found |= {"open/starts": run.starts, "open/places": run.places}
            for number, column in enumerate(run.columns):
                data = to_ipc(column.to_arrow())
                found[f"open/{number}"] = np.frombuffer(data, np.uint8)
        return found

    @classmethod
    def of_arrays(cls, node: Partials, arrays: Arrays, stretches: Sequence[Arrays]) -> MovingSlices:
        """The slices that `base_arrays` made, with the sealed entries of stretches."""
        slices = cls(node)
        slices.places = Places.of_arrays(node, inside(arrays, "places/"))
        slices.log = SealedLog(slices.places, slices._parts)
        slices.log.leaps = True
        slices.log.rebase(inside(arrays, "log/"), stretches)
        slices.frontier, slices._began = arrays["moments"].tolist()
        if "open/starts" in arrays:
            columns = tuple(
                from_arrow(part, from_ipc(as_bytes(arrays[f"open/{number}"])))
                for number, part in enumerate(slices._parts)
            )
            starts, places = np.array(arrays["open/starts"]), np.array(arrays["open/places"])
            slices._open.begin(Run(starts, places, columns))
        return slices

    @property
    def size(self) -> int:
        """How many entries are kept."""
        return self._open.size + self.log.size

    @property
    def nbytes(self) -> int:
        """Bytes of all that is kept."""
        waiting = sum(c.nbytes for run in self._open.runs() for c in run.columns)
        numbers = 16 * self._open.size
        return waiting + numbers + self.log.nbytes + self.places.nbytes

    def add(self, batch: PartialBatch) -> None:
        """Take in the partials of a batch.

        After a query leaves, cuts are coarser: a row that is not late may be cut to a slice that
        starts before the frontier. Every window that will be asked has its bounds on the coarser
        cut, so the rest of that slice, from the frontier on, is as good.
        """
        starts = np.maximum(batch.starts, self.frontier)
        self._open.append(starts, self.places.number(batch), batch.columns)

    def begin(self, batch: PartialBatch) -> None:
        """Take in what was kept before."""
        self.add(batch)
        self._began = self.places.count

    def seal(self, frontier: int) -> None:
        """Seal the slices below a tick."""
        self.frontier = max(self.frontier, frontier)
        run = self._open.seal(self.frontier)
        if run is None:
            # Slots that windows ask about may have places that are open only.
            self.log.reserve(0)
            return
        self.steps += self.log.append(run)
        self._feed(run)

    def _feed(self, run: Run) -> None:
        for own in self._own.values():
            own.feed(run, self.places.chains, self.places.held())

    def own(self, key: OwnKey, span: int, end: int) -> OwnSlices:
        """The structure over a query's own slices, for windows of a range from an end on.

        One that is new is fed with all that is kept; so is one that has gone past the end, or has
        let go of what a longer range covers.
        """
        found = self._own.get(key)
        if found is None or found.longest < span or found.reached > end:
            if found is not None:
                self._count(found)
                span = max(span, found.longest)
            found = self._own[key] = OwnSlices(key, self._parts[key.index], span)
            if self.log.size:
                found.feed(self.log.run(), self.places.chains, self.places.held())
        return found

    def adopt(self, node: Partials, asked: Mapping[OwnKey, int]) -> None:
        """Go on for partials that differ in nothing that is kept.

        ``asked`` has the longest range of each structure over own slices; others are forgotten.
        """
        self.node = node
        for key in [key for key in self._own if key not in asked]:
            self._count(self._own.pop(key))
        for key, own in self._own.items():
            own.longest = min(own.longest, asked[key])

    def _count(self, own: OwnSlices) -> None:
        """Take over the counts of a structure that is given up."""
        self.steps += own.steps
        self.cell_steps += own.gathered

    def taken_steps(self) -> tuple[int, int]:
        """Aggregations along time and along cells since the last call."""
        steps = self.steps + sum(own.steps for own in self._own.values())
        cells = self.cell_steps + sum(own.gathered for own in self._own.values())
        taken = steps - self._told[0], cells - self._told[1]
        self._told = steps, cells
        return taken

    def evict(self, before: int) -> None:
        """Forget the slices that start before a tick."""
        self.log.evict(before)

    def settle(self) -> None:
        """Bring the open entries together in one run."""
        self._open.whole()

    @property
    def is_worn(self) -> bool:
        """Whether so many places have come that numbering those in use anew pays."""
        return self.places.count > _FEW_PLACES + 2 * self._began + self.size // _SHARE

    def entries(self, since: int | None = None) -> list[PartialBatch]:
        """All that is kept, or what starts at a tick or later, with keys and codes."""
        runs = []
        for run in self._open.runs():
            begin = 0 if since is None else int(np.searchsorted(run.starts, since))
            runs.append(run.cut(max(run.begin, begin), len(run.starts)))
        if self.log.size:
            runs.append(self.log.run(since))
        return [self.places.batch(run.starts, run.places, run.columns) for run in runs]

    def table(self, since: int | None = None) -> SliceTable:
        """All that is kept, or what starts at a tick or later, each slice and group once."""
        return merge(self.node, self.entries(since) or [nothing(self.node)])

    def keys(self, slots: Ints) -> tuple[pa.Array, ...]:
        """The keys of some groups."""
        groups = self.places.groups
        return () if groups is None else groups.keys(slots)

    def ranks(self, slots: Ints) -> Ints:
        """Numbers that order groups by their keys; renewed where groups have appeared."""
        groups = self.places.groups
        assert groups is not None
        if self._ranks.size == groups.count:
            return self._ranks[slots]
        distinct, places = np.unique(slots, return_inverse=True)
        if 2 * distinct.size > groups.count:
            self._ranks = _ranked(groups.keys(np.arange(groups.count)))
            return self._ranks[slots]
        return _ranked(groups.keys(distinct))[places]


def _ranked(keys: tuple[pa.Array, ...]) -> Ints:
    ranks = np.empty(len(keys[0]), np.int64)
    ranks[sort_order(keys).to_numpy()] = np.arange(len(keys[0]))
    return ranks
