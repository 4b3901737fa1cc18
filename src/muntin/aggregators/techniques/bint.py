"""B-Int: base intervals, each combined once, when its last partial comes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from muntin._typing import Ints
from muntin.aggregators.card import Card
from muntin.aggregators.contract import FIRST, OPERATIONS, SIZE
from muntin.aggregators.operators import Store, combine, load, save
from muntin.aggregators.rings import at_front, drop_oldest, end_of, new_head, wrapped
from muntin.aggregators.techniques.flatfat import covering, joined, renew, sampled


def counted(ranges: Sequence[int]) -> float:
    """Every interval once in a round, and those that make up each window."""
    room = 1 << (max(ranges) - 1).bit_length()
    starts = sampled(room)
    made_up = sum(float(covering(starts, starts + size).mean()) - 1 for size in ranges)
    return 1.0 - 1.0 / room + made_up


CARD = Card(
    name="bint",
    needs="any",
    amortised="log n",
    worst="log n at powers of two, otherwise 2 log n",
    multi="n log n",
    space="2 n, up to 4 n where n is not a power of two",
    several_ranges=True,
    paper="Resource Sharing in Continuous Sliding-Window Aggregates, VLDB 2004",
    counted=counted,
    steady=True,
)


class BInt(NamedTuple):
    """Dyadic intervals of a ring of 2**k partials: interval i splits into 2 i and 2 i + 1.

    An interval is up to date from the moment its last partial is in until its first one is
    overwritten, which is when windows need it.
    """

    intervals: Store
    head: Ints

    @staticmethod
    def create(op: Any, capacity: int, columns: int, full: bool) -> BInt:
        """Identities; `full` says that `capacity` of them count as partials."""
        room = 1 << (capacity - 1).bit_length()
        head = new_head(capacity if full else 0)
        head[FIRST] = (room - head[SIZE]) % room
        return BInt(op.empty(2 * room), head)

    @staticmethod
    def room(state: BInt) -> int:
        """How many partials fit."""
        return len(state.intervals) // 2

    @staticmethod
    def grown(op: Any, state: BInt, capacity: int) -> BInt:
        """The same partials in a larger ring."""
        larger = BInt.create(op, capacity, 1, False)
        room, first = len(state.intervals) // 2, state.head[FIRST]
        for i in range(state.head[SIZE]):
            BInt.insert(op, larger, load(op, state.intervals, room + (first + i) % room))
        head = at_front(state.head)
        head[OPERATIONS] += larger.head[OPERATIONS]
        return BInt(larger.intervals, head)

    @staticmethod
    def insert(op: Any, state: BInt, partial: Any) -> None:
        """Combine the intervals that end here."""
        head = state.head
        intervals = state.intervals
        room = len(intervals) // 2
        at = room + end_of(head, room)
        save(op, intervals, at, partial)
        head[SIZE] += 1
        levels = 0
        while at & 1 and at > 1:
            at >>= 1
            renew(op, intervals, at)
            levels += 1
        head[OPERATIONS] += levels

    @staticmethod
    def evict(op: Any, state: BInt) -> None:
        """Step over the oldest."""
        drop_oldest(state.head, len(state.intervals) // 2)

    @staticmethod
    def query(op: Any, state: BInt, size: int) -> Any:
        """The fewest intervals that make up the window, in order, from the shortest up."""
        head = state.head
        intervals = state.intervals
        # Intervals a level: those past the end of the ring come round to its start.
        width = len(intervals) // 2
        low = wrapped(head[FIRST] + head[SIZE] - size, width)
        high = low + size
        left = right = load(op, intervals, width + low)
        lefts = rights = 0
        while low < high:
            if low & 1:
                part = load(op, intervals, width + (low & (width - 1)))
                left = combine(op, left, part) if lefts else part
                lefts += 1
                low += 1
            if high & 1:
                high -= 1
                part = load(op, intervals, width + (high & (width - 1)))
                right = combine(op, part, right) if rights else part
                rights += 1
            low >>= 1
            high >>= 1
            width >>= 1
        head[OPERATIONS] += lefts + rights - 1
        return joined(op, left, lefts, right, rights)
