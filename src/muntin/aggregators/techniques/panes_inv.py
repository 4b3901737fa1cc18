"""Panes(Inv): one running answer, updated by what comes and what goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from muntin._typing import Ints
from muntin.aggregators.card import Card
from muntin.aggregators.contract import FIRST, OPERATIONS
from muntin.aggregators.operators import Store, combine, inverse, load, save
from muntin.aggregators.rings import append, drop_oldest, new_head
from muntin.aggregators.techniques.slickdeque_inv import keep_one_running


def counted(ranges: Sequence[int]) -> float:
    """What comes and what goes."""
    return 2.0 * len(ranges)


CARD = Card(
    name="panes_inv",
    needs="invertible",
    amortised="2",
    worst="2",
    multi="-",
    space="n",
    several_ranges=False,
    paper="No Pane, No Gain, SIGMOD Record 2005; also known as subtract-on-evict",
    counted=counted,
    steady=True,
)


class PanesInv(NamedTuple):
    """A ring of partials and the combination of all of them."""

    partials: Store
    running: Store
    head: Ints

    @staticmethod
    def create(op: Any, capacity: int, columns: int, full: bool) -> PanesInv:
        """Identities, counted as partials if `full`."""
        return PanesInv(op.empty(capacity), op.empty(1), new_head(capacity if full else 0))

    @staticmethod
    def insert(op: Any, state: PanesInv, partial: Any) -> None:
        """Append, and combine into the answer."""
        head = state.head
        append(op, state.partials, head, partial)
        save(op, state.running, 0, combine(op, load(op, state.running, 0), partial))
        head[OPERATIONS] += 1

    @staticmethod
    def evict(op: Any, state: PanesInv) -> None:
        """Take the oldest off the answer."""
        head = state.head
        oldest = load(op, state.partials, head[FIRST])
        save(op, state.running, 0, inverse(op, load(op, state.running, 0), oldest))
        drop_oldest(head, len(state.partials))
        head[OPERATIONS] += 1

    @staticmethod
    def query(op: Any, state: PanesInv, size: int) -> Any:
        """The running answer, which is that of all partials held."""
        return load(op, state.running, 0)

    @staticmethod
    def slide(
        op: Any, state: PanesInv, ranges: Ints, partials: Store, answers: Store, first: int
    ) -> int:
        """Two operations per partial."""
        return keep_one_running(
            op, state.partials, state.running, state.head, partials, answers, first
        )
