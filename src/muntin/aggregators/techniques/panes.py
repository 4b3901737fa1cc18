"""Panes: every answer anew from the partials of its window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from muntin._typing import Ints
from muntin.aggregators.card import Card
from muntin.aggregators.contract import FIRST, OPERATIONS, SIZE
from muntin.aggregators.operators import Store, combine, load
from muntin.aggregators.rings import append, drop_oldest, new_head, wrapped


def counted(ranges: Sequence[int]) -> float:
    """All partials of every window."""
    return float(sum(size - 1 for size in ranges))


CARD = Card(
    name="panes",
    needs="any",
    amortised="n - 1",
    worst="n - 1",
    multi="n (n - 1) / 2",
    space="n",
    several_ranges=True,
    paper="No Pane, No Gain, SIGMOD Record 2005",
    counted=counted,
)


class Panes(NamedTuple):
    """A ring of partials."""

    partials: Store
    head: Ints

    @staticmethod
    def create(op: Any, capacity: int, columns: int, full: bool) -> Panes:
        """Identities, counted as partials if `full`."""
        return Panes(op.empty(capacity), new_head(capacity if full else 0))

    @staticmethod
    def insert(op: Any, state: Panes, partial: Any) -> None:
        """Append."""
        append(op, state.partials, state.head, partial)

    @staticmethod
    def evict(op: Any, state: Panes) -> None:
        """Step over the oldest."""
        drop_oldest(state.head, len(state.partials))

    @staticmethod
    def query(op: Any, state: Panes, size: int) -> Any:
        """Combine from the oldest to the newest."""
        head = state.head
        capacity = len(state.partials)
        start = wrapped(head[FIRST] + head[SIZE] - size, capacity)
        answer = load(op, state.partials, start)
        # Two straight loops, up to the end of the ring and from its beginning, run as vectors.
        for at in range(start + 1, min(start + size, capacity)):
            answer = combine(op, answer, load(op, state.partials, at))
        for at in range(start + size - capacity):
            answer = combine(op, answer, load(op, state.partials, at))
        head[OPERATIONS] += size - 1
        return answer
