"""The slices of registered queries, read for questions that no keep answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.engine.slices.key_table import KeyTable
from muntin.engine.slices.store import BEGINNING, SliceStore
from muntin.plan import SharedPlan
from muntin.plan.nodes import Final, Partials, Slicing
from muntin.plan.selection import Cells
from muntin.queries import AnyQuery, Keep, RowQuery
from muntin.streams.live import LiveEngine
from muntin.synopses import Asking, Kept, Moment, Version, Versions
from muntin.synopses.keeps.block import Block, Entries, merged
from muntin.synopses.keeps.kept import MOST_CELLS, Stretch
from muntin.synopses.keeps.replica import Groups


@dataclass(frozen=True)
class QueryKept(Kept):
    """A query whose slices are read as those of a keep; edges of many queries may cut them.

    A slice's number is how many edges lie at or before its start, those of each class counted on
    their own: numbers rise from slice to slice, and need not follow each other.
    """

    classes: tuple[tuple[int, int], ...] = ()

    @property
    def label(self) -> str:
        """What answers say they come from."""
        return f"slices of query {self.name}"

    @cached_property
    def _edges(self) -> tuple[Ints, Ints]:
        """The periods and phases of all edges."""
        periods, phases = np.array(self.classes, np.int64).T
        return periods, phases

    def slice_of(self, tick: int) -> int:
        """The number of the slice that holds a tick."""
        return int(self.numbers(np.array([tick]))[0])

    def between(self, start: int, end: int) -> Stretch:
        """The slices that hold the ticks from one to before another."""
        numbers = self.slice_of(start), self.slice_of(end - 1) + 1
        return numbers, (self.floor(start), self.ceil(end))

    def numbers(self, ticks: Ints) -> Ints:
        """The numbers of the slices that hold some ticks."""
        found = np.zeros(ticks.size, np.int64)
        for period, phase in self.classes:
            found += (ticks - phase) // period
        return found

    def floor(self, tick: int) -> int:
        """The last edge at a tick or before."""
        periods, phases = self._edges
        return tick - int(((tick - phases) % periods).min())

    def ceil(self, tick: int) -> int:
        """The first edge at a tick or later."""
        periods, phases = self._edges
        return tick + int(((phases - tick) % periods).min())


@dataclass(frozen=True)
class QueryVersion(Version):
    """The slices of a query after a batch, complete from a tick on."""

    begins: int | None = None

    @property
    def low(self) -> int | None:
        """The first tick that is held; None if all are."""
        return self.begins


class _Cut(NamedTuple):
    """What must stay the same for earlier slices to be those of a plan."""

    slicing: Slicing
    node: Partials


class QuerySlices:
    """The slices of a stream's queries, copied for questions when first asked after a batch.

    Whoever changes the engine holds ``lock``, and says `moved` before letting go of it.
    """

    def __init__(self, engine: LiveEngine, lock: threading.RLock | None = None) -> None:
        self.lock = lock or threading.RLock()
        self._engine = engine
        self._plan: SharedPlan | None = None
        self._cuts: dict[int, _Cut] = {}
        # The largest event time when slices began to be cut as they are, by the set of partials.
        self._since: dict[int, int | None] = {}
        self._kept: list[tuple[int, QueryKept]] = []
        self._versions: Versions | None = None
        self.moved(Moment(0, engine.seen, engine.watermark))

    def moved(self, moment: Moment) -> None:
        """Take note of what a batch, the time or queries that came and went have changed."""
        self._versions, self._moment = None, moment
        plan = self._engine.plan
        if plan is self._plan:
            return
        cuts = {
            node.number: _Cut(plan.slicings[node.slicing], replace(node, slicing=0))
            for node in plan.partials
        }
        self._since = {
            number: self._since[number] if self._cuts.get(number) == cut else self._engine.seen
            for number, cut in cuts.items()
        }
        self._plan, self._cuts = plan, cuts
        self._kept = list(_readable(plan))

    def versions(self) -> Versions:
        """The slices after the last batch."""
        found = self._versions
        if found is not None:
            return found
        with self.lock:
            if self._versions is None:
                stores = self._engine.stores
                read: dict[int, QueryVersion] = {}
                by_name = {}
                for place, kept in self._kept:
                    if place not in read:
                        read[place] = self._read(stores[place], kept)
                    by_name[kept.name.lower()] = replace(read[place], kept=kept)
                self._versions = Versions(by_name)
            return self._versions

    def _read(self, store: SliceStore, kept: QueryKept) -> QueryVersion:
        table = store.table()
        groups = Groups([bound.type for bound in kept.node.grouping])
        slots = groups.numbers(table.keys, 1)
        codes = np.zeros(table.starts.size, np.int64) if table.codes is None else table.codes
        numbers = kept.numbers(table.starts)
        entries = Entries(slots[table.groups], codes, numbers, table.columns)
        parts = [each.part for each in kept.node.accumulators]
        # A copy: the store goes on with its own columns.
        blocks = (Block(1, 0, merged(parts, [entries])),) if numbers.size else ()
        since = self._since[kept.node.number]
        begins = [] if store.evicted <= BEGINNING else [store.evicted]
        begins += [] if since is None else [kept.ceil(since + 1)]
        return QueryVersion(
            kept,
            self._moment,
            None,
            None,
            blocks,
            groups,
            groups.count,
            begins=max(begins, default=None),
        )


class GroupSlices:
    """The slices of several streams' queries, as one version of all of them.

    ``lock`` and `moved` are as those of one stream.
    """

    def __init__(self, engines: Mapping[str, LiveEngine]) -> None:
        self.lock = threading.RLock()
        self._members = {name: QuerySlices(each, self.lock) for name, each in engines.items()}
        self._queries: frozenset[str] = frozenset()
        self._versions: Versions | None = None

    def moved(self, moments: Mapping[str, Moment], queries: Iterable[AnyQuery]) -> None:
        """Take note of where the streams are, and of the queries that there are.

        Streams have queries of their own beside these: the sides of aggregates over joins.
        """
        self._versions = None
        self._queries = frozenset(
            each.name.lower() for each in queries if not isinstance(each, RowQuery)
        )
        for name, moment in moments.items():
            self._members[name].moved(moment)

    def versions(self) -> Versions:
        """The slices of all streams after the last batch of any."""
        found = self._versions
        if found is not None:
            return found
        with self.lock:
            if self._versions is None:
                self._versions = Versions(
                    {
                        name: version
                        for member in self._members.values()
                        for name, version in member.versions().by_name.items()
                        if name in self._queries
                    }
                )
            return self._versions


def asking_of(
    versions: Callable[[], Versions],
    slices: Callable[[], Versions],
    tables: Callable[[], Mapping[str, pa.Schema]],
    *,
    several: bool,
    restore: Callable[[], Callable[[pa.Table], Any]],
) -> Asking:
    """What answers from keeps, and from the slices of queries where no keep does."""
    others = Asking(slices, tables, several=several, restore=restore)
    return Asking(versions, tables, several=several, restore=restore, others=others)


def _readable(plan: SharedPlan) -> Iterator[tuple[int, QueryKept]]:
    """The queries whose slices hold all their rows, and where their partials are."""
    for final in plan.finals:
        node = plan.partials[final.partials]
        slicing = plan.slicings[node.slicing]
        if _is_whole(plan, final, node, slicing):
            own = replace(plan, partials=(node,), finals=(final,))
            yield final.partials, QueryKept(Keep(final.query), own, slicing.classes)


def _is_whole(plan: SharedPlan, final: Final, node: Partials, slicing: Slicing) -> bool:
    window, selection = final.window, node.selection
    return (
        slicing.measure == "time"
        and window.measure == "time"
        and slicing.timeline == plan.timeline
        and not slicing.marks
        and node.is_fed
        and isinstance(selection, Cells)
        and selection.shape.size <= MOST_CELLS
        and all(KeyTable.takes(bound.type) for bound in node.grouping)
        # Between windows that do not touch, no rows are kept.
        and window.range >= window.period
    )
