"""SlickDeque(Non-Inv): a deque of the partials that can still be an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from muntin._typing import Ints
from muntin.aggregators.card import Card
from muntin.aggregators.contract import FIRST, OPERATIONS, SIZE, STEPS, shared
from muntin.aggregators.operators import Store, give, load, save, selects_later, take
from muntin.aggregators.rings import new_head, unrolled


def counted(ranges: Sequence[int]) -> float:
    """A partial beats one other and loses to one, whatever the ranges: they are looked up."""
    return 2.0 - 2.0 / max(ranges)


CARD = Card(
    name="slickdeque_noninv",
    needs="selective",
    amortised="less than 2",
    worst="n, with probability 1 / n! on random input",
    multi="n",
    space="2 to 2 n",
    several_ranges=True,
    paper="SlickDeque, EDBT 2018; Algorithm 3 of Algorithms and Optimizations for Incremental "
    "Window-Based Aggregations, 2019",
    counted=counted,
)

# FIRST is where the deque begins in its ring, SIZE counts the partials of the window.
LENGTH, END = 4, 5
_SMALLEST = 16


@shared
def beaten(op: Any, nodes: Store, first: int, length: int, partial: Any) -> int:
    """How many nodes at the end of the deque the partial beats."""
    count = 0
    while count < length:
        last = (first + length - 1 - count) & (len(nodes) - 1)
        if not selects_later(op, load(op, nodes, last), partial):
            break
        count += 1
    return count


class SlickDequeNonInv(NamedTuple):
    """A ring of 2**k nodes: a partial and its number. Each is what is left of all from it on.

    A partial that a later one beats can never be an answer again. So the deque holds few of a
    window's partials, and starts small.
    """

    partials: Store
    numbers: Ints
    head: Ints

    @staticmethod
    def create(op: Any, capacity: int, columns: int, full: bool) -> SlickDequeNonInv:
        """An empty deque: identities would only be compared and dropped."""
        room = min(1 << (capacity - 1).bit_length(), _SMALLEST)
        return SlickDequeNonInv(op.empty(room), np.zeros(room, np.int64), new_head(0, 6))

    @staticmethod
    def grown(op: Any, state: SlickDequeNonInv, capacity: int) -> SlickDequeNonInv:
        """The same nodes in a larger ring."""
        head = state.head.copy()
        room = 1 << (capacity - 1).bit_length()
        partials = unrolled(op, state.partials, head[FIRST], head[LENGTH], room)
        numbers = np.zeros(room, np.int64)
        order = (head[FIRST] + np.arange(head[LENGTH])) % len(state.numbers)
        numbers[: head[LENGTH]] = state.numbers[order]
        head[FIRST] = 0
        return SlickDequeNonInv(partials, numbers, head)

    @staticmethod
    def insert(op: Any, state: SlickDequeNonInv, partial: Any) -> None:
        """Drop the nodes that the partial beats, then append it."""
        head = state.head
        count = beaten(op, state.partials, head[FIRST], head[LENGTH], partial)
        head[OPERATIONS] += min(count + 1, head[LENGTH])
        head[LENGTH] -= count
        end = (head[FIRST] + head[LENGTH]) & (len(state.numbers) - 1)
        save(op, state.partials, end, partial)
        state.numbers[end] = head[END]
        head[LENGTH] += 1
        head[END] += 1
        head[SIZE] += 1

    @staticmethod
    def evict(op: Any, state: SlickDequeNonInv) -> None:
        """Drop the first node if it is the oldest partial."""
        head = state.head
        if state.numbers[head[FIRST]] == head[END] - head[SIZE]:
            head[FIRST] = (head[FIRST] + 1) & (len(state.numbers) - 1)
            head[LENGTH] -= 1
        head[SIZE] -= 1

    @staticmethod
    def query(op: Any, state: SlickDequeNonInv, size: int) -> Any:
        """The first node within the newest `size` partials."""
        head = state.head
        at = head[FIRST]
        while state.numbers[at] < head[END] - size:
            at = (at + 1) & (len(state.numbers) - 1)
            head[STEPS] += 1
        return load(op, state.partials, at)

    @staticmethod
    def slide(
        op: Any, state: SlickDequeNonInv, ranges: Ints, partials: Store, answers: Store, first: int
    ) -> int:
        """Keep the deque, answer every range."""
        if len(ranges) == 1:
            return slide_one(op, state, ranges, partials, answers, first)
        return walk(op, state, ranges, partials, answers, first)


def slide_one(
    op: Any, state: SlickDequeNonInv, ranges: Ints, partials: Store, answers: Store, first: int
) -> int:
    """The same for one range; compiled, it has a loop of its own."""
    return walk(op, state, ranges, partials, answers, first)


@shared
def walk(
    op: Any, state: SlickDequeNonInv, ranges: Ints, partials: Store, answers: Store, first: int
) -> int:
    """One walk along the deque answers all ranges, because they fall."""
    head, nodes, numbers = state.head, state.partials, state.numbers
    mask = len(numbers) - 1
    columns, window = len(ranges), ranges[0]
    start, length, number = head[FIRST], head[LENGTH], head[END]
    operations, steps, i = 0, 0, first
    while i < len(partials):
        if length > 0 and numbers[start] == number - window:
            start = (start + 1) & mask
            length -= 1
        # A ring as large as the window always has room by here.
        if length > mask:
            break
        partial = take(op, partials, i)
        count = beaten(op, nodes, start, length, partial)
        operations += min(count + 1, length)
        length -= count
        end = (start + length) & mask
        save(op, nodes, end, partial)
        numbers[end] = number
        length += 1
        number += 1
        at = start
        for j in range(columns):
            while numbers[at] < number - ranges[j]:
                at = (at + 1) & mask
                steps += 1
            give(op, answers, i * columns + j, load(op, nodes, at))
        i += 1
    head[FIRST], head[LENGTH], head[END] = start, length, number
    head[SIZE] = min(number, window)
    head[OPERATIONS] += operations
    head[STEPS] += steps
    return i
