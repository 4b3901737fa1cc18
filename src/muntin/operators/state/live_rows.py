"""Rows until some time after they have ended: found by their key, and by when they end.

They lie in segments that never change, as those of joins do, each with an order of its rows by
their ends as well: those that end between two instants stand together in it. So nothing is looked
at but what is asked for, wherever the segments lie.
"""

from __future__ import annotations

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.operators.rows import NONE, Rows
from muntin.operators.state import segments
from muntin.operators.state.probes import Places
from muntin.operators.state.segments import Matches, Segment, Segments, begins_of, matches


class LiveRows(Segments):
    """Rows of one input, in segments that know which of their rows end when.

    Args:
        lifetime: The longest that rows with an end live.
    """

    def _put(self, number: int, segment: Segment) -> None:
        super()._put(number, segment.indexed_by_end())

    def _merged(self, parts: list[Segment]) -> Segment:
        return segments.merged(parts).indexed_by_end()


def by_end(hashes: Ints, rows: Rows) -> Segment:
    """A segment that knows which of its rows end when."""
    return Segment.of(hashes, rows).indexed_by_end()


def ending(held: list[Segment], after: int, until: int) -> Ints:
    """Rows that end after an instant and at or before another, counted through all segments."""
    found = [np.empty(0, np.int64)]
    for begin, segment in zip(begins_of(held).tolist(), held, strict=True):
        if segment.last > after:
            ends = segment.end, segment.by_end
            first, last = (ended(*ends, each) for each in (after, until))
            found.append(begin + segment.by_end[first:last].astype(np.int64))
    return np.concatenate(found)


def matches_in(held: list[Segment], hashes: Ints, start: Ints, end: Ints) -> Matches:
    """Rows of all segments that have one of the hashes and live together with who asks."""
    parts = [matches(each, hashes, start, end) for each in held]
    if not parts:
        return Matches(NONE, NONE, NONE, NONE)
    begins = begins_of(held).tolist()
    return Matches(
        np.concatenate([part.asking for part in parts]),
        np.concatenate([part.kept + begin for part, begin in zip(parts, begins, strict=True)]),
        np.concatenate([part.start for part in parts]),
        np.concatenate([part.end for part in parts]),
    )


@compiled
def ended(end: Ints, by_end: Places, until: int) -> int:
    """How many rows end at or before an instant, by their ends and their order by these."""
    low, high = 0, by_end.size
    while low < high:
        middle = (low + high) // 2
        if end[by_end[middle]] > until:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def united(codes: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Lives in order of key and start, where they overlap or touch as one: the first of each too.

    Returns:
        Keys, starts, ends, and where the first that each is made of stands.
    """
    found = np.empty((4, codes.size), np.int64)
    count = 0
    for i in range(codes.size):
        last = count - 1
        if count and found[0, last] == codes[i] and found[2, last] >= start[i]:
            found[2, last] = max(found[2, last], end[i])
        else:
            found[0, count], found[1, count] = codes[i], start[i]
            found[2, count], found[3, count] = end[i], i
            count += 1
    found = found[:, :count].copy()
    return found[0], found[1], found[2], found[3]
