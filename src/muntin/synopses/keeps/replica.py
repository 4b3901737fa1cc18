"""The replica of a keep: immutable versions of what is kept, one after every batch.

``apply`` builds what changed and swaps one reference. Readers hold a version, and take no lock but
for what is made when first asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.display import count
from muntin.engine.answers.group_keys import sort_order
from muntin.engine.slices.key_table import KeyTable
from muntin.engine.slices.partials import PartialBatch
from muntin.synopses.answer import AsOf
from muntin.synopses.keeps.block import Block, Entries, merged
from muntin.synopses.keeps.directory import Directory
from muntin.synopses.keeps.kept import Kept
from muntin.synopses.keeps.shared_extremes import Latest, SharedExtremes

# So many blocks of one size become one of the next.
_FANOUT = 8
# No block spans more than this share of the keep, so that blocks are dropped whole soon enough.
_SHARES = 2
# Group numbers are given anew when so few of them are in use.
_LIVE_SHARE = 4
_FEW_GROUPS = 4096
# From so many entries per row on, the rows themselves would take no more room.
_RAW = 0.9


@dataclass(frozen=True)
class Moment:
    """Where a stream stands after a batch: the batch's number, the largest event time, and W."""

    batch: int = 0
    latest: int | None = None
    watermark: int | None = None


class InOrder(NamedTuple):
    """Groups in order of their keys: the rank of each by its number, and the keys by rank."""

    ranks: Ints
    keys: tuple[pa.Array, ...]


class Groups:
    """The groups of a replica, numbered as they first appear, and their keys as columns."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self.types = tuple(types)
        self.table = KeyTable(types)
        self._lock = threading.Lock()
        self._columns = tuple(pa.array([], kind) for kind in types)
        self._read = 0
        # The groups in order of some of their columns, and how many there were.
        self._orders: dict[tuple[int, ...], tuple[int, InOrder]] = {}
        # The groups of each value, for columns that were asked by one, and how many were read.
        self._values: dict[int, tuple[dict[Any, list[int]], int]] = {}

    @property
    def count(self) -> int:
        """How many groups there are."""
        return self.table.count if self.types else 1

    def numbers(self, keys: Sequence[pa.Array], size: int) -> Ints:
        """The numbers of groups by their keys; those that are new get the next ones."""
        return self.table.slots(keys) if self.types else np.zeros(size, np.int64)

    def of_value(self, place: int, value: Any, count: int) -> Ints:
        """Those of the first groups that have a value in one of their columns."""
        known, read = self._values.get(place, ({}, 0))
        if read < count:
            column = self.columns(count)[place]
            with self._lock:
                known, read = self._values.get(place, ({}, 0))
                for number, each in enumerate(column[read:].to_pylist(), read):
                    known.setdefault(each, []).append(number)
                self._values[place] = known, max(count, read)
        found = np.array(known.get(value, ()), np.int64)
        return found if read <= count else found[found < count]

    def number_of(self, place: int, value: Any, count: int) -> int | None:
        """As `of_value`, where a single group has the value; None where none or several do."""
        known, read = self._values.get(place, ({}, 0))
        if read < count:
            found = self.of_value(place, value, count).tolist()
        else:
            found = known.get(value, ())
        return found[0] if len(found) == 1 and found[0] < count else None

    def in_order(self, places: tuple[int, ...], count: int) -> InOrder:
        """The first groups in order of some of their columns, which tell them apart."""
        known = self._orders.get(places)
        if known is not None and known[0] == count:
            return known[1]
        columns = self.columns(count)
        keys = [columns[place] for place in places]
        order = sort_order(keys)
        ranks = np.empty(count, np.int64)
        ranks[order.to_numpy()] = np.arange(count)
        found = InOrder(ranks, tuple(key.take(order) for key in keys))
        self._orders[places] = count, found
        return found

    def columns(self, count: int) -> tuple[pa.Array, ...]:
        """The keys of the first groups, a column each."""
        if self._read < count:
            with self._lock:
                if self._read < count:
                    found = self.table.keys(np.arange(self._read, count))
                    pairs = zip(self._columns, found, strict=True)
                    self._columns = tuple(pa.concat_arrays(list(pair)) for pair in pairs)
                    self._read = count
        return tuple(column.slice(0, count) for column in self._columns)


@dataclass(frozen=True)
class Origin:
    """Which version an answer is of, without the blocks: answers may outlive them."""

    kept: Kept
    moment: Moment
    blocks: int
    entries: int

    @cached_property
    def source(self) -> str:
        """What answers say they come from."""
        held = f"{count(self.blocks, 'block')}, {count(self.entries, 'entry')}"
        return f"{self.kept.label} ({held})"

    @cached_property
    def as_of(self) -> AsOf:
        """How far the stream was."""
        shown = self.kept.shown
        return AsOf(shown(self.moment.latest), shown(self.moment.watermark))


@dataclass(frozen=True)
class Version:
    """What is kept after one batch; it never changes.

    Attributes:
        kept: The keep and its plan.
        moment: Where the stream stood.
        since: Entries are complete for rows above this tick; None if the keep was there before
            the first row.
        first: The first slice that ever had a row; None before there was one.
        blocks: The entries.
        groups: Their groups.
        count: How many groups there are.
        serial: How many batches had entries.
        shared: Answers that questions left, where the keep has OrderedSharing.
    """

    kept: Kept
    moment: Moment
    since: int | None
    first: int | None
    blocks: tuple[Block, ...]
    groups: Groups
    count: int
    serial: int = 0
    shared: SharedExtremes | None = None

    @cached_property
    def latest(self) -> Latest:
        """What extremes that end now are read from."""
        return Latest(self.blocks, self.serial, max((each.last for each in self.blocks), default=0))

    @property
    def low(self) -> int | None:
        """The first tick of the span; None while no row has left it."""
        if self.moment.watermark is None or self.first is None:
            return None
        oldest = self.moment.watermark - self.kept.keep.span
        return None if self.first >= self.kept.slice_of(oldest) else self.kept.floor(oldest)

    @property
    def complete(self) -> int | None:
        """The first tick from which all rows are in the entries of whole slices, if not all are."""
        if self.since is None:
            return None
        return self.kept.ceil(self.since + 1)

    @cached_property
    def reach(self) -> int | None:
        """The first tick from which whole slices are there and complete; None if all are."""
        bounds = [each for each in (self.complete, self.low) if each is not None]
        return max(bounds, default=None)

    @cached_property
    def entries(self) -> int:
        """How many entries there are."""
        return sum(map(len, self.blocks))

    @cached_property
    def origin(self) -> Origin:
        """What answers tell of it."""
        return Origin(self.kept, self.moment, len(self.blocks), self.entries)

    @cached_property
    def directory(self) -> Directory | None:
        """What reads all blocks at once; None where there are none, or the keep says how."""
        if not self.blocks or self.kept.keep.synopsis is not None:
            return None
        lines = [block.line for block in self.blocks]
        return Directory(lines, self.blocks[0].columns, self.entries)

    @property
    def nbytes(self) -> int:
        """Bytes of all entries and groups."""
        return sum(block.nbytes for block in self.blocks) + self.groups.table.nbytes


@dataclass
class Replica:
    """What is kept for one keep, as a version after every batch.

    New entries are sorted into a block of their own. Blocks of about one size are put together, so
    that there are few and each entry is written a few times only; those behind the span are
    dropped whole.
    """

    kept: Kept
    since: int | None = None
    moment: Moment = field(default_factory=Moment)
    rows: int = 0
    taken: int = 0
    first: int | None = None

    def __post_init__(self) -> None:
        groups = Groups([bound.type for bound in self.kept.node.grouping])
        self._parts = [each.part for each in self.kept.node.accumulators]
        self._next = 0
        self._serial = 0
        self._shared = self._fresh_extremes()
        self.version = self._version((), groups)

    def apply(self, batches: Sequence[PartialBatch], moment: Moment, rows: int = 0) -> None:
        """Take in what stage A made of a batch of rows; the next version is that after it."""
        groups = self.version.groups
        pieces = [self._entries(batch, groups) for batch in batches if batch.starts.size]
        self.rows += rows
        self.taken += sum(piece.slices.size for piece in pieces)
        blocks = list(self.version.blocks)
        if pieces:
            blocks.append(self._block(pieces))
            self._serial += 1
            if self._shared is not None:
                self._shared.add(self._serial, blocks[-1])
            earliest = blocks[-1].first
            self.first = earliest if self.first is None else min(earliest, self.first)
        self.commit(blocks, moment)

    def commit(self, blocks: Sequence[Block], moment: Moment) -> None:
        """Make a version of these blocks, without those behind the span."""
        groups = self.version.groups
        self.moment = moment
        low = self._version((), groups).low
        oldest = None if low is None else self.kept.slice_of(low)
        held = [block for block in blocks if oldest is None or block.last >= oldest]
        tidy = self._tidied(held, oldest)
        if len(tidy) < len(held):
            groups, tidy = self._renumbered(groups, tidy)
            if groups is not self.version.groups:
                self._shared = self._fresh_extremes()
        self.version = self._version(tuple(tidy), groups)
        # Whoever asks first need not make them: here all they take is at hand.
        _ = self.version.directory, self.version.reach, self.version.origin

    def explain(self) -> str:
        """What is kept, and what that takes."""
        version = self.version
        rate = self.taken / self.rows if self.rows else 0.0
        near = "; raw rows would cost as much" if rate > _RAW else ""
        held = f"{count(version.entries, 'entry')}, {version.nbytes:,} bytes"
        if version.shared is not None:
            asked = version.shared.shared + version.shared.scans
            near += (
                f"; {count(len(version.shared), 'answer')} shared, which took "
                f"{version.shared.shared:,} of {asked:,} looks"
            )
        return f"{self.kept.keep}\n  {held}, {rate:.2f} entries per row{near}"

    def facts(self) -> dict[str, Any]:
        """The same by name, as machines read it."""
        return {
            "name": self.kept.name,
            "sql": str(self.kept.keep),
            "entries": self.version.entries,
            "bytes": self.version.nbytes,
            "entries_per_row": round(self.taken / self.rows, 4) if self.rows else None,
        }

    def _version(self, blocks: tuple[Block, ...], groups: Groups) -> Version:
        count = groups.count
        return Version(
            self.kept,
            self.moment,
            self.since,
            self.first,
            blocks,
            groups,
            count,
            self._serial,
            self._shared,
        )

    def _fresh_extremes(self) -> SharedExtremes | None:
        return SharedExtremes() if self.kept.keep.synopsis == "ordered_sharing" else None

    def adopt(self, blocks: Sequence[Block]) -> None:
        """Go on with blocks that were kept elsewhere, as they are."""
        firsts = [*(block.first for block in blocks), *([] if self.first is None else [self.first])]
        self.first = min(firsts, default=None)
        self.version = self._version(tuple(blocks), self.version.groups)

    def dump(self, block: Block) -> PartialBatch:
        """The entries of a block with their keys, for `load`."""
        entries = block.entries(block.first)
        version = self.version
        keys: tuple[pa.Array, ...] = ()
        if version.groups.types:
            columns = version.groups.columns(version.count)
            keys = tuple(column.take(pa.array(entries.groups)) for column in columns)
        starts = self.kept.keep.phase + entries.slices * self.kept.keep.slide
        codes = entries.codes if self.kept.node.selection.coded else None
        return PartialBatch(starts, keys, codes, entries.columns)

    def load(self, batch: PartialBatch, level: int) -> Block:
        """A block of entries that were put together before."""
        return self._block([self._entries(batch, self.version.groups)], level)

    def _entries(self, batch: PartialBatch, groups: Groups) -> Entries:
        size = batch.starts.size
        codes = np.zeros(size, np.int64) if batch.codes is None else batch.codes
        slices = (batch.starts - self.kept.keep.phase) // self.kept.keep.slide
        return Entries(groups.numbers(batch.keys, size), codes, slices, batch.columns)

    def _block(self, pieces: Sequence[Entries], level: int = 0) -> Block:
        self._next += 1
        entries = merged(self._parts, pieces)
        return Block(self._next, level, entries, self.kept.keep.synopsis)

    def _tidied(self, blocks: list[Block], oldest: int | None) -> list[Block]:
        """The newest blocks put together while there are enough of one level."""
        most = max(self.kept.keep.span // self.kept.keep.slide // _SHARES, 1)
        while True:
            tail = blocks[-_FANOUT:]
            if len(tail) < _FANOUT or len({block.level for block in tail}) > 1:
                return blocks
            first, last = min(b.first for b in tail), max(b.last for b in tail)
            if last - first >= most:
                return blocks
            with ExitStack() as stack:
                pieces = [block.entries(first if oldest is None else oldest) for block in tail]
                for block in tail:
                    stack.enter_context(block.lock)
                joined = self._block(pieces, tail[0].level + 1)
            blocks = [*blocks[:-_FANOUT], joined]

    def _renumbered(self, groups: Groups, blocks: list[Block]) -> tuple[Groups, list[Block]]:
        """Groups that are gone leave their numbers once most have gone."""
        if not groups.types or groups.count < _FEW_GROUPS:
            return groups, blocks
        live = np.unique(np.concatenate([block.groups for block in blocks] or [np.empty(0, int)]))
        if live.size * _LIVE_SHARE > groups.count:
            return groups, blocks
        fresh = Groups(groups.types)
        numbers = np.full(groups.count, -1, np.int64)
        numbers[live] = fresh.numbers(groups.table.keys(live), live.size)
        moved = []
        for block in blocks:
            entries = block.entries(block.first)
            with block.lock:
                renamed = entries._replace(groups=numbers[entries.groups])
                moved.append(self._block([renamed], block.level))
        return fresh, moved
