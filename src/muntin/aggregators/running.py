"""Running answers: the loop that panes_inv and slickdeque_inv share."""

from __future__ import annotations

from typing import Any

from muntin.aggregators.contract import FIRST, OPERATIONS, Ints, shared
from muntin.aggregators.operators import Store, combine, inverse, load, save


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

    Two operations an answer, whatever the range.
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
