"""The partials that are kept between batches: one store per set of partials of the plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from muntin.engine.slices.moving_slices import MovingSlices
from muntin.engine.slices.partials import PartialBatch, SliceTable, merge, nothing
from muntin.plan.nodes import Partials
from muntin.plan.selection import Cells

# Before every tick, and after all of them.
BEGINNING = -(2**62)
END = 2**63 - 1
# So many snapshots are remembered: what changed since one of them can be told.
REMEMBERED = 16
# So few entries are merged in no time.
_FEW = 16
# So many batches wait before they are merged: a merge costs as much as what it has merged before.
_PENDING = 32


def pays_to_move(news: int, kept: int) -> bool:
    """Whether moving on by what is new costs less than answering from all that is kept."""
    return max(news, _FEW) < kept


class SliceStore:
    """Keeps the partials of one node, and forgets slices that no window will cover again.

    ``complete`` says for each accumulator from which tick on it holds every row: one that joined
    a running stream lacks the rows before. ``covered`` says the same for each predicate, and
    ``told`` for each dimension of cells, followed by its cuts, since when entries are told apart
    by it. Slices before ``evicted`` are forgotten. Where it ``keeps_log``, sealed entries never
    change, and finals always move on. ``marks`` has, by snapshot, the store's place there and the
    lowest tick at which anything was added since: what starts before is as it was.
    """

    def __init__(self, node: Partials, since: int = BEGINNING) -> None:
        self.node = node
        self.evicted = since
        self.complete = [since] * len(node.accumulators)
        self.covered = [since] * node.selection.members
        self.told: list[list[int]] = []
        if isinstance(node.selection, Cells):
            self.told = [[since] * (1 + len(e.cuts)) for e in node.selection.shape.dimensions]
        self._pending: list[PartialBatch] = []
        self._merged = merge(node, [nothing(node)])
        # How many entries came since the last time that slices were sealed.
        self._news = 0
        self.moving: MovingSlices | None = None
        self.keeps_log = False
        self.marks: dict[bytes, tuple[int, int]] = {}

    def add(self, batch: PartialBatch) -> None:
        """Take in the partials of a batch."""
        self._news += batch.starts.size
        if self.marks and batch.starts.size:
            lowest = max(int(batch.starts.min()), self.frontier)
            for token, (place, low) in self.marks.items():
                self.marks[token] = place, min(low, lowest)
        if self.moving is not None:
            self.moving.add(batch)
            return
        self._pending.append(batch)
        if len(self._pending) > _PENDING:
            parts = self.parts()
            if parts is None:
                self.table()
            else:
                self._pending = [
                    replace(merge(self.node, batches).as_batch(), part=batches[0].part)
                    for batches in parts
                ]

    def parts(self) -> list[list[PartialBatch]] | None:
        """What is kept by ranges of keys, in their order; None where it is not told apart."""
        found: dict[int, list[PartialBatch]] = {}
        for batch in self._pending:
            if batch.part is not None:
                found.setdefault(batch.part, []).append(batch)
        whole = any(batch.part is None for batch in self._pending)
        if whole or self.moving is not None or self._merged.starts.size or not found:
            return None
        return [found[part] for part in sorted(found)]

    def keep_log(self) -> None:
        """Keep slices in logs from now on, whatever comes, if their entries can be written once."""
        self.keeps_log = MovingSlices.keeps_log(self.node)
        if self.keeps_log and self.moving is None:
            self._move()

    def renew(self) -> None:
        """Number groups anew, those that are gone left out."""
        assert self.moving is not None
        frontier, self._merged = self.moving.frontier, self.moving.table()
        self._move().seal(frontier)

    def seal(self, frontier: int, *, may_move: bool = True) -> None:
        """Seal the slices below a tick.

        What came since the last time decides how slices are kept. Where it is more than what was
        there before, all of it is merged, and windows are answered from the whole, which costs no
        more than the news. Where it is less, finals move on by what is sealed, if they may; and
        always where a query has structures of its own.
        """
        news, self._news = self._news, 0
        driven = self.node.is_driven or self.keeps_log
        if self.moving is not None:
            pays = driven or pays_to_move(news, self.moving.size - news)
            if (self.moving.is_worn and not self.keeps_log) or not pays:
                self._merged, self.moving, may_move = self.moving.table(), None, False
        elif may_move and not driven:
            waiting = sum(batch.starts.size for batch in self._pending)
            may_move = pays_to_move(max(news, waiting), self._merged.starts.size)
        if self.moving is None and (driven or may_move) and MovingSlices.takes(self.node):
            self._move()
        if self.moving is not None:
            self.moving.seal(frontier)

    def _move(self) -> MovingSlices:
        """Keep slices in logs from now on."""
        moving = MovingSlices(self.node)
        moving.log.leaps = self.keeps_log
        moving.begin(self._merged.as_batch())
        for batch in self._pending:
            moving.add(batch)
        self._pending, self._merged = [], merge(self.node, [nothing(self.node)])
        self.moving = moving
        return moving

    def mark(self, token: bytes, place: int) -> None:
        """Remember a snapshot in which the store has a place, from now on."""
        self.marks.pop(token, None)
        self.marks[token] = place, END
        while len(self.marks) > REMEMBERED:
            del self.marks[next(iter(self.marks))]

    def changed(self, since: int) -> PartialBatch:
        """The partials of slices that start at a tick or later."""
        if self.moving is not None:
            return self.moving.table(since).as_batch()
        return self.table().since(since).as_batch()

    def table(self) -> SliceTable:
        """All partials, each slice and group once."""
        if self.moving is not None:
            return self.moving.table()
        batches = self.batches()
        if self._pending and batches is not None:
            self._merged = merge(self.node, batches)
            self._pending = []
        return self._merged

    def batches(self) -> list[PartialBatch] | None:
        """All partials as they came, those merged before at the front; None where finals move."""
        if self.moving is not None:
            return None
        before = [self._merged.as_batch()] if self._merged.starts.size else []
        return [*before, *self._pending]

    def evict(self, before: int) -> None:
        """Forget slices that start before a time, and groups that have no other."""
        self.evicted = max(self.evicted, before)
        if self.moving is not None:
            self.moving.evict(before)
            if not (self.moving.size or self.keeps_log):
                self.moving = None
            return
        kept = self.table().since(before)
        if kept is not self._merged:
            self._merged = merge(self.node, [kept.as_batch()])

    def replaced(
        self,
        node: Partials,
        table: SliceTable,
        complete: list[int],
        covered: list[int],
        told: list[list[int]],
    ) -> SliceStore:
        """A store of other partials that goes on from this one's slices."""
        store = SliceStore(node)
        store.evicted, store.complete = self.evicted, complete
        store.covered, store.told = covered, told
        store._merged = table
        return store

    def carried(self, node: Partials) -> SliceStore:
        """The same slices for partials that differ in nothing that is kept."""
        store = SliceStore(node)
        store.evicted, store.complete = self.evicted, self.complete
        store.covered, store.told = self.covered, self.told
        store._pending, store._merged, store._news = self._pending, self._merged, self._news
        store.moving, store.keeps_log = self.moving, self.keeps_log
        store.marks = self.marks
        return store

    @property
    def holds_rows(self) -> bool:
        """Whether any entry is kept."""
        if self.moving is not None:
            return self.moving.size > 0
        return bool(self._pending) or self._merged.starts.size > 0

    @property
    def frontier(self) -> int:
        """The tick below which slices are sealed, where they are."""
        return BEGINNING if self.moving is None else self.moving.frontier

    @property
    def size(self) -> int:
        """How many entries are kept; those of several batches count for each."""
        if self.moving is not None:
            return self.moving.size
        return int(self._merged.starts.size) + sum(each.starts.size for each in self._pending)

    @property
    def slices(self) -> int:
        """How many different slices hold rows."""
        return int(np.unique(self.table().starts).size)

    @property
    def entries(self) -> int:
        """How many pairs of slice, group and cell hold rows."""
        return int(self.table().starts.size)

    @property
    def groups(self) -> int:
        """How many groups hold rows."""
        keys = self.table().keys
        return len(keys[0]) if keys else 0

    @property
    def nbytes(self) -> int:
        """Bytes of all partials and keys."""
        if self.moving is not None:
            return self.moving.nbytes
        table = self.table()
        columns = sum(column.nbytes for column in table.columns)
        keys = sum(int(key.nbytes) for key in table.keys)
        codes = [each.nbytes for each in (table.codes, table.signatures) if each is not None]
        return table.starts.nbytes + table.groups.nbytes + keys + columns + sum(codes)
