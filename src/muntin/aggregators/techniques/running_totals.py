"""Running totals: any range of an aggregate with an inverse is one subtraction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from muntin._typing import Ints
from muntin.aggregators.card import Card
from muntin.aggregators.contract import FIRST, OPERATIONS, SIZE
from muntin.aggregators.operators import Store, combine, inverse, load, save
from muntin.aggregators.rings import append, drop_oldest, new_head, wrapped


def counted(ranges: Sequence[int]) -> float:
    """An addition a partial, and a subtraction an answer."""
    return 1.0 + len(ranges)


CARD = Card(
    name="running_totals",
    needs="invertible",
    amortised="2",
    worst="2",
    multi="n + 1",
    space="n + 1",
    several_ranges=True,
    steady=True,
    counted=counted,
    paper="Sliding Window Query Processing over Data Streams, 2006, 2.3.4",
)


class RunningTotals(NamedTuple):
    """A ring of what was combined before each partial, and of what is combined by now.

    Totals hold all that ever came, so they suit aggregates whose partials stay small. Those of
    integers wrap around: a difference is right while the window's own sum fits.
    """

    partials: Store
    total: Store
    head: Ints

    @staticmethod
    def create(op: Any, capacity: int, columns: int, full: bool) -> RunningTotals:
        """Identities, counted as partials if `full`."""
        return RunningTotals(op.empty(capacity), op.empty(1), new_head(capacity if full else 0))

    @staticmethod
    def insert(op: Any, state: RunningTotals, partial: Any) -> None:
        """Note the total so far, then add to it."""
        total = load(op, state.total, 0)
        append(op, state.partials, state.head, total)
        save(op, state.total, 0, combine(op, total, partial))
        state.head[OPERATIONS] += 1

    @staticmethod
    def evict(op: Any, state: RunningTotals) -> None:
        """Step over the oldest."""
        drop_oldest(state.head, len(state.partials))

    @staticmethod
    def query(op: Any, state: RunningTotals, size: int) -> Any:
        """The total less what it was before the newest `size` partials."""
        head = state.head
        start = wrapped(head[FIRST] + head[SIZE] - size, len(state.partials))
        head[OPERATIONS] += 1
        return inverse(op, load(op, state.total, 0), load(op, state.partials, start))

    @staticmethod
    def rebased(op: Any, state: RunningTotals) -> RunningTotals:
        """Totals that begin with the oldest partial held: they fit wherever the window's sum does.

        Totals that have wrapped around mean nothing by themselves, so they are rebased before they
        are read as anything else than what kernels add up.
        """
        head, room = state.head, len(state.partials)
        partials, total = op.empty(room), op.empty(1)
        if not head[SIZE]:
            return state._replace(partials=partials, total=total)
        held = (head[FIRST] + np.arange(head[SIZE])) % room
        oldest = state.partials[held[0]]
        if state.partials.dtype == np.object_:
            for at in held.tolist():
                partials[at] = op.inverse(state.partials[at], oldest)
            total[0] = op.inverse(state.total[0], oldest)
        else:
            partials[held] = state.partials[held] - oldest
            total[:] = state.total - oldest
        return state._replace(partials=partials, total=total)
