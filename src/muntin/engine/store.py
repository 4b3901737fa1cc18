"""The partials that are kept between batches: one store per set of partials of the plan."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.engine.partials import PartialBatch, SliceTable, merge, nothing
from muntin.plan.nodes import Partials
from muntin.plan.selection import Cells

Ints = npt.NDArray[np.int64]

# Before every tick.
BEGINNING = -(2**62)
# So many batches wait before they are merged: a merge costs as much as what it has merged before.
_PENDING = 32


class SliceStore:
    """Keeps the partials of one node, and forgets slices that no window will cover again.

    ``complete`` says for each accumulator from which tick on it holds every row: one that joined
    a running stream lacks the rows before. ``covered`` says the same for each predicate, and
    ``told`` for each dimension of cells, followed by its cuts, since when entries are told apart
    by it. Slices before ``evicted`` are forgotten.
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

    def add(self, batch: PartialBatch) -> None:
        """Take in the partials of a batch."""
        self._pending.append(batch)
        if len(self._pending) > _PENDING:
            self.table()

    def table(self) -> SliceTable:
        """All partials, each slice and group once."""
        if self._pending:
            before = [self._merged.as_batch()] if self._merged.starts.size else []
            self._merged = merge(self.node, [*before, *self._pending])
            self._pending = []
        return self._merged

    def evict(self, before: int) -> None:
        """Forget slices that start before a time, and groups that have no other."""
        self.evicted = max(self.evicted, before)
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

    @property
    def slices(self) -> int:
        """How many different slices hold rows."""
        return int(np.unique(self.table().starts).size)

    @property
    def nbytes(self) -> int:
        """Bytes of all partials and keys."""
        table = self.table()
        columns = sum(column.nbytes for column in table.columns)
        keys = sum(int(key.nbytes) for key in table.keys)
        codes = [each.nbytes for each in (table.codes, table.signatures) if each is not None]
        return table.starts.nbytes + table.groups.nbytes + keys + columns + sum(codes)
