"""The newest record of each key: segments that never change, of which later ones count more.

A record that takes the place of another is written beside it, and found before it. Records lie in
partitions by when they are over, as rows of joins do, so that those of which a newer one is known
go with their partition; where they come to outnumber the others, their partitions are merged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints, Words
from muntin.operators.rows import ALWAYS, NONE, take
from muntin.operators.state import keys
from muntin.operators.state.live_rows import LiveRows
from muntin.operators.state.probes import Places, lead_bits, run_of
from muntin.operators.state.segments import Segment, begins_of, merged

# Records of a batch end at any time within the lifetime: with many partitions it would be split
# into as many segments. In few, segments of more batches stand beside each other.
_CUTS = 3
_FAN_OUT = 32


class Newest(LiveRows):
    """Records by key: each lives until its end, and no newer one has an earlier end or start.

    Args:
        lifetime: The longest that records with an end live.
    """

    def __init__(self, lifetime: int) -> None:
        super().__init__(lifetime, _CUTS, _FAN_OUT)

    def all(self) -> list[Segment]:
        """All segments, those first that may hold newer records of a key."""
        numbers = sorted(self.partitions, reverse=True)
        return [each for number in numbers for each in reversed(self.partitions[number])]

    def compact(self, alive: int, since: int) -> None:
        """Leave one record of each key, if others outnumber those; none that ended before."""
        if len(self) <= 2 * alive:
            return
        for number, held in self.partitions.items():
            whole = self._merged(held) if len(held) > 1 else held[0]
            lasting = whole.pick(np.flatnonzero(whole.end >= since))
            self.partitions[number] = [lasting.indexed_by_end()] if len(lasting) else []

    def _merged(self, parts: list[Segment]) -> Segment:
        # Records of a key come in order of their starts, those that are newer last.
        found = merged(parts)
        same = found.hashes[1:] == found.hashes[:-1]
        if same.any():
            pairs = np.flatnonzero(same)
            before, after = (take(found.rows.columns, each) for each in (pairs, pairs + 1))
            is_newest = np.ones(len(found), np.bool_)
            is_newest[pairs[keys.equal_rows(before, after, pairs.size)]] = False
            found = found.pick(np.flatnonzero(is_newest))
        return found.indexed_by_end()


@dataclass(frozen=True)
class Found:
    """The newest record of each key: its place, counted through all segments, its end and start.

    Where there is none, the place is -1 and the others are ALWAYS.
    """

    places: Ints
    end: Ints
    start: Ints

    @classmethod
    def nothing(cls, count: int) -> Found:
        """No record of so many keys."""
        return cls(np.full(count, -1), np.full(count, ALWAYS), np.full(count, ALWAYS))


def newest_of(held: list[Segment], hashes: Ints, since: int) -> Found:
    """The newest record with each hash; one that ended before an instant does not count.

    Segments are in the order of `Newest.all`.
    """
    found = Found.nothing(hashes.size)
    left = np.arange(hashes.size)
    for begin, segment in zip(begins_of(held).tolist(), held, strict=True):
        if segment.last >= since:
            kept = segment.hashes, segment.start, segment.end
            of_each = found.places, found.start, found.end
            count = look_up(
                hashes, left, *kept, segment.heads, segment.marks, begin, since, *of_each
            )
            left = left[:count]
    return found


def all_of(held: list[Segment], hashes: Ints, since: int) -> Ints:
    """Where all records with some hashes stand that have not ended before an instant."""
    parts = [NONE]
    for begin, segment in zip(begins_of(held).tolist(), held, strict=True):
        places = np.searchsorted(hashes, segment.hashes)
        known = hashes[np.minimum(places, hashes.size - 1)] == segment.hashes
        parts.append(begin + np.flatnonzero(known & (segment.end >= since)))
    return np.concatenate(parts)


@compiled
def look_up(
    hashes: Ints,
    left: Ints,
    kept_hashes: Ints,
    kept_start: Ints,
    kept_end: Ints,
    heads: Places,
    marks: Words,
    begin: int,
    since: int,
    places: Ints,
    start: Ints,
    end: Ints,
) -> int:
    """Look some hashes up in one segment; those that it does not have stay in ``left``."""
    bits = lead_bits(heads.size - 1)
    count = 0
    for i in left:
        low, high = run_of(kept_hashes, heads, marks, bits, hashes[i])
        high -= 1
        while high >= low and kept_end[high] < since:
            high -= 1
        if high >= low:
            places[i], start[i], end[i] = begin + high, kept_start[high], kept_end[high]
        else:
            left[count] = i
            count += 1
    return count
