"""Last seen: a mark for each value, at the newest partial that has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from muntin._typing import Ints
from muntin.aggregates.types import rank
from muntin.aggregators.card import Card
from muntin.aggregators.contract import FIRST, OPERATIONS, SIZE
from muntin.aggregators.operators import Store
from muntin.aggregators.rings import append, drop_oldest, end_of, new_head, wrapped

# How many partials were let go of, which counts all of them from the first on.
_GONE = 4


def counted(ranges: Sequence[int]) -> float:
    """A mark that moves for each value of a partial, whatever the ranges."""
    return 1.0


CARD = Card(
    name="last_seen",
    needs="distinct",
    amortised="1 per value",
    worst="1 per value",
    multi="1 per value",
    space="n, and a mark per value",
    several_ranges=True,
    steady=True,
    counted=counted,
    paper="Muntin; sets of a slice as in No Pane, No Gain, SIGMOD Record 2005, 3.3.2",
)


class LastSeen(NamedTuple):
    """A ring of the values that are marked at each partial, and where each value's mark is.

    A window holds the values that are marked in it, as no value has two marks. So one move per
    value serves windows of every range.
    """

    partials: Store
    marks: Store
    head: Ints

    @staticmethod
    def create(op: Any, capacity: int, columns: int, full: bool) -> LastSeen:
        """Identities, counted as partials if `full`."""
        marks = op.empty(1)
        marks[0] = {}
        return LastSeen(op.empty(capacity), marks, new_head(capacity if full else 0, _GONE + 1))

    @staticmethod
    def insert(op: Any, state: LastSeen, partial: Any) -> None:
        """Move the mark of every value of the partial here."""
        head, marks = state.head, state.marks[0]
        capacity = len(state.partials)
        number, end = int(head[_GONE] + head[SIZE]), end_of(head, capacity)
        append(op, state.partials, head, partial)
        state.partials[end] = {rank(value): value for value in partial}
        for key in state.partials[end]:
            stood = marks.get(key, -1) - head[_GONE]
            if stood >= 0:
                del state.partials[wrapped(head[FIRST] + stood, capacity)][key]
            marks[key] = number
            head[OPERATIONS] += 1

    @staticmethod
    def evict(op: Any, state: LastSeen) -> None:
        """Forget the marks at the oldest."""
        oldest = state.partials[state.head[FIRST]]
        for key in oldest:
            del state.marks[0][key]
        state.partials[state.head[FIRST]] = op.identity
        state.head[_GONE] += 1
        drop_oldest(state.head, len(state.partials))

    @staticmethod
    def query(op: Any, state: LastSeen, size: int) -> Any:
        """The values that are marked at the newest `size` partials, in order."""
        head, capacity = state.head, len(state.partials)
        found: dict[Any, Any] = {}
        for number in range(head[SIZE] - size, head[SIZE]):
            found.update(state.partials[wrapped(head[FIRST] + number, capacity)] or {})
        return tuple(found[key] for key in sorted(found))
