"""SlickDeque(Inv): a running answer for every range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from muntin._typing import Ints
from muntin.aggregators.card import Card
from muntin.aggregators.contract import FIRST, OPERATIONS, SIZE, shared
from muntin.aggregators.operators import Store, combine, inverse, load, save
from muntin.aggregators.rings import append, drop_oldest, new_head, wrapped


def counted(ranges: Sequence[int]) -> float:
    """What comes and what goes, for every range."""
    return 2.0 * len(ranges)


CARD = Card(
    name="slickdeque_inv",
    needs="invertible",
    amortised="2",
    worst="2",
    multi="2 n",
    space="n + 2; 3 n with every range",
    several_ranges=True,
    paper="SlickDeque, EDBT 2018; Algorithm 2 of Algorithms and Optimizations for Incremental "
    "Window-Based Aggregations, 2019",
    counted=counted,
    steady=True,
)


class SlickDequeInv(NamedTuple):
    """A ring of partials, and running answers over the newest `covered` of them.

    By position the number of partials in a window varies, so a query takes the answer that covers
    the fewest partials too many, and takes those off.
    """

    partials: Store
    running: Store
    covered: Ints
    head: Ints

    @staticmethod
    def create(op: Any, capacity: int, columns: int, full: bool) -> SlickDequeInv:
        """Identities, counted as partials if `full`."""
        covered = np.zeros(columns, np.int64)
        head = new_head(capacity if full else 0)
        return SlickDequeInv(op.empty(capacity), op.empty(columns), covered, head)

    @staticmethod
    def insert(op: Any, state: SlickDequeInv, partial: Any) -> None:
        """Append, and combine into every answer."""
        head = state.head
        append(op, state.partials, head, partial)
        for j in range(len(state.covered)):
            save(op, state.running, j, combine(op, load(op, state.running, j), partial))
            state.covered[j] += 1
        head[OPERATIONS] += len(state.covered)

    @staticmethod
    def evict(op: Any, state: SlickDequeInv) -> None:
        """Take the oldest off the answers that cover it."""
        head = state.head
        oldest = load(op, state.partials, head[FIRST])
        for j in range(len(state.covered)):
            if state.covered[j] == head[SIZE]:
                save(op, state.running, j, inverse(op, load(op, state.running, j), oldest))
                state.covered[j] -= 1
                head[OPERATIONS] += 1
        drop_oldest(head, len(state.partials))

    @staticmethod
    def query(op: Any, state: SlickDequeInv, size: int) -> Any:
        """Bring the nearest running answer to `size` partials."""
        head = state.head
        capacity = len(state.partials)
        end = head[FIRST] + head[SIZE]
        best = 0
        for j in range(1, len(state.covered)):
            here, there = state.covered[j] - size, state.covered[best] - size
            if (here >= 0 and (there < 0 or here < there)) or (there < 0 and here > there):
                best = j
        answer = load(op, state.running, best)
        start = end - state.covered[best]
        head[OPERATIONS] += abs(state.covered[best] - size)
        for at in range(start, end - size):
            answer = inverse(op, answer, load(op, state.partials, wrapped(at, capacity)))
        for at in range(start - 1, end - size - 1, -1):
            answer = combine(op, load(op, state.partials, wrapped(at, capacity)), answer)
        save(op, state.running, best, answer)
        state.covered[best] = size
        return answer

    @staticmethod
    def slide(
        op: Any, state: SlickDequeInv, ranges: Ints, partials: Store, answers: Store, first: int
    ) -> int:
        """Two operations per partial and range: answer j is that of range j."""
        if len(ranges) == 1:
            return keep_one_running(
                op, state.partials, state.running, state.head, partials, answers, first
            )
        return keep_running(
            op, state.partials, state.running, state.head, ranges, partials, answers, first
        )


@shared
def keep_running(
    op: Any,
    ring: Store,
    running: Store,
    head: Ints,
    ranges: Ints,
    partials: Store,
    answers: Store,
    first: int,
) -> int:
    """Slide a full ring: each answer takes in the partial that comes and lets go of one.

    Two operations per answer, whatever the range.
    """
    capacity = len(ring)
    columns = len(ranges)
    at = head[FIRST]
    for i in range(first, len(partials)):
        partial = load(op, partials, i)
        for j in range(columns):
            start = at - ranges[j]
            if start < 0:
                start += capacity
            answer = combine(op, load(op, running, j), partial)
            answer = inverse(op, answer, load(op, ring, start))
            save(op, running, j, answer)
            save(op, answers, i * columns + j, answer)
        save(op, ring, at, partial)
        at += 1
        if at == capacity:
            at = 0
    head[FIRST] = at
    head[OPERATIONS] += 2 * columns * (len(partials) - first)
    return len(partials)


@shared
def keep_one_running(
    op: Any,
    ring: Store,
    running: Store,
    head: Ints,
    partials: Store,
    answers: Store,
    first: int,
) -> int:
    """The same for the one range that spans the ring; the answer stays in registers."""
    capacity = len(ring)
    at, done = head[FIRST], first
    answer = load(op, running, 0)
    while done < len(partials):
        # Up to the end of the ring, so that the inner loop is free of turns.
        size = min(capacity - at, len(partials) - done)
        coming, going = partials[done : done + size], ring[at : at + size]
        out = answers[done : done + size]
        for i in range(size):
            partial = load(op, coming, i)
            answer = inverse(op, combine(op, answer, partial), load(op, going, i))
            save(op, out, i, answer)
            save(op, going, i, partial)
        done += size
        at = at + size if at + size < capacity else 0
    save(op, running, 0, answer)
    head[FIRST] = at
    head[OPERATIONS] += 2 * (done - first)
    return done
