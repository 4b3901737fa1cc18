"""TimeGram: bounds on the aggregates of any window, from timestamps in buckets of values."""

from __future__ import annotations

import math
import sys
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from muntin._typing import Floats, Ints
from muntin.errors import DataError

# What no number's logarithm exceeds.
_LARGEST = math.log(sys.float_info.max)
_PACK = 1024  # dead timestamps in front of a bucket's list before they are cut off


class Bounds(NamedTuple):
    """Two numbers that enclose an answer, both included."""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high


class Buckets(Protocol):
    """How values are put into numbered buckets; higher numbers hold larger values."""

    def number(self, values: Floats) -> Ints:
        """The bucket of each value."""
        ...

    def bounds(self, bucket: int) -> Bounds:
        """The least and the largest value that a bucket may hold."""
        ...

    def widened(self, low: float, high: float) -> Buckets | None:
        """Buckets that reach further, each of which holds whole ones of these; None if these do."""
        ...


@dataclass(frozen=True)
class EdgeBuckets:
    """Buckets between edges that rise; a value at an edge belongs to the bucket above it."""

    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        edges = self.edges
        rising = all(a < b for a, b in pairwise(edges))
        _check(
            len(edges) > 1 and rising, f"the edges of buckets must increase, unlike {list(edges)}"
        )

    def number(self, values: Floats) -> Ints:
        """The bucket of each value; the last one holds its upper edge as well."""
        found = np.searchsorted(np.asarray(self.edges), values, side="right") - 1
        return np.minimum(found, len(self.edges) - 2)

    def bounds(self, bucket: int) -> Bounds:
        """The edges of a bucket."""
        return Bounds(self.edges[bucket], self.edges[bucket + 1])

    def widened(self, low: float, high: float) -> EdgeBuckets | None:
        """The first and the last one reach as far as is needed."""
        first, *inner, last = self.edges
        if first <= low and high <= last:
            return None
        return EdgeBuckets((min(first, low), *inner, max(last, high)))


class EqualBuckets(EdgeBuckets):
    """Buckets of equal width over [low, high]: an error of one width, whatever the value.

    Values outside double the width as often as it takes, so the number of buckets stays.

    >>> EqualBuckets(-10, 10, 5).bounds(3)
    Bounds(low=2.0, high=6.0)
    """

    def __init__(self, low: float, high: float, count: int) -> None:
        _check(count >= 1, f"a TimeGram needs at least one bucket, not {count}")
        _check(low < high, f"the lower end {low} must be below the upper end {high}")
        step = (high - low) / count
        super().__init__((*(low + step * i for i in range(count)), float(high)))

    def widened(self, low: float, high: float) -> EdgeBuckets | None:
        """Twice as wide, as often as needed, to the side that needs it."""
        edges = self.edges
        while edges[0] > low or edges[-1] < high:
            width, step = edges[-1] - edges[0], edges[1] - edges[0]
            _check(bool(np.isfinite(2 * width)), "buckets cannot span all numbers")
            more = [step * i for i in range(1, len(edges))]
            below = [edges[0] - each for each in reversed(more)] if edges[0] > low else []
            above = [] if below else [edges[-1] + each for each in more]
            # Every second edge: old buckets lie whole in new ones, to the last bit.
            edges = (*below, *edges, *above)[::2]
        return None if edges == self.edges else _equal(edges)


def _equal(edges: tuple[float, ...]) -> EqualBuckets:
    buckets = EqualBuckets.__new__(EqualBuckets)
    object.__setattr__(buckets, "edges", edges)
    return buckets


@dataclass(frozen=True)
class GeometricBuckets:
    """Buckets whose edges are powers: an error relative to the value, over all numbers.

    Zero and the values next to it (below `least` in size) share a bucket, signs are apart.

    >>> buckets = GeometricBuckets(0.01)
    >>> low, high = buckets.bounds(int(buckets.number(np.array([100.0]))[0]))
    >>> round(low, 2), round(high, 2)
    (99.24, 101.25)
    """

    accuracy: float
    least: float = 1e-9

    def __post_init__(self) -> None:
        _check(0 < self.accuracy < 1, f"accuracy must be between 0 and 1, not {self.accuracy}")
        _check(self.least > 0, f"the least size must be above 0, not {self.least}")

    @property
    def base(self) -> float:
        """The ratio of a bucket's edges."""
        return (1 + self.accuracy) / (1 - self.accuracy)

    def number(self, values: Floats) -> Ints:
        """0 for values next to zero, else one more than the power, with the value's sign."""
        sizes = np.abs(values)
        small = sizes < self.least
        # Not the logarithm of their ratio, which the largest numbers do not have.
        logs = np.log(np.where(small, self.least, sizes)) - math.log(self.least)
        logs = np.maximum(logs, 0.0) / math.log(self.base)
        powers = np.floor(logs).astype(np.int64)
        return np.where(small, 0, np.where(values < 0, -powers - 1, powers + 1))

    def bounds(self, bucket: int) -> Bounds:
        """The powers around a bucket, a little apart, since logarithms are rounded."""
        if bucket == 0:
            return Bounds(-self.least, self.least)
        power = abs(bucket) - 1
        low = self._power(power) * (1 - 1e-12)
        high = self._power(power + 1) * (1 + 1e-12)
        return Bounds(low, high) if bucket > 0 else Bounds(-high, -low)

    def _power(self, power: int) -> float:
        """An edge; infinity behind the largest number."""
        logarithm = math.log(self.least) + power * math.log(self.base)
        return math.exp(logarithm) if logarithm < _LARGEST else math.inf

    def widened(self, low: float, high: float) -> None:
        """Nothing: every finite number has a bucket."""
        return


class TimeGram:
    """Timestamps of the rows of the longest window, by bucket of their value.

    A window of length w at time `now` holds the rows with `now - w < time <= now`. Rows come in
    order of time. An insertion takes constant time; `max` and `min` look at no more than all
    buckets, `count` and `sum` search in each.

    >>> gram = TimeGram(EqualBuckets(-10, 10, 5), longest=4)
    >>> for time, value in enumerate([3, -10, -9, 5, 2, 7, -3], start=1):
    ...     gram.insert(value, time)
    >>> gram.max(3), gram.sum(4), gram.avg(2), gram.count(4)
    (Bounds(low=6.0, high=10.0), Bounds(low=4.0, high=20.0), Bounds(low=0.0, high=4.0), 4)

    *Aggregate Sharing in Stream Databases*, 3.2. The report's average divides by all timestamps
    that are kept; that of a window is over the window's own.
    """

    def __init__(self, buckets: Buckets, longest: int) -> None:
        _check(longest > 0, f"the longest window must be above 0, not {longest}")
        self.buckets: Buckets = buckets
        self.longest = longest
        self.now: int | None = None
        self._times: dict[int, list[int]] = {}  # by bucket, rising
        self._dead: dict[int, int] = {}  # how many of them, in front, have expired
        self._order: deque[tuple[int, int]] = deque()  # (time, bucket) of every row

    def __len__(self) -> int:
        """How many rows are kept."""
        return len(self._order)

    def insert(self, value: float, time: int) -> None:
        """Take in one row."""
        _check(math.isfinite(value), "a TimeGram takes finite numbers only")
        _check(
            self.now is None or time >= self.now,
            f"rows must come in order of time, but {time} came after {self.now}",
        )
        self._widen(value, value)
        bucket = int(self.buckets.number(np.array([value], dtype=np.float64))[0])
        self._times.setdefault(bucket, []).append(time)
        self._order.append((time, bucket))
        self.advance(time)

    def insert_many(self, values: Floats, times: Ints) -> None:
        """Take in rows whose times do not fall."""
        if not len(values):
            return
        _check(bool(np.isfinite(values).all()), "a TimeGram takes finite numbers only")
        first = int(times[0])
        rising = len(times) < 2 or bool((np.diff(times) >= 0).all())
        _check(
            rising and (self.now is None or first >= self.now),
            f"rows must come in order of time, but {first} came after {self.now}",
        )
        self._widen(float(values.min()), float(values.max()))
        found = self.buckets.number(values)
        for bucket in np.unique(found).tolist():
            self._times.setdefault(bucket, []).extend(times[found == bucket].tolist())
        self._order.extend(zip(times.tolist(), found.tolist(), strict=True))
        self.advance(int(times[-1]))

    def advance(self, now: int) -> None:
        """Let time pass: rows that no window can hold are dropped."""
        _check(self.now is None or now >= self.now, f"time cannot go back from {self.now} to {now}")
        self.now = now
        while self._order and self._order[0][0] <= now - self.longest:
            bucket = self._order.popleft()[1]
            dead = self._dead.get(bucket, 0) + 1
            if dead >= _PACK or dead == len(self._times[bucket]):
                del self._times[bucket][:dead]
                dead = 0
            self._dead[bucket] = dead

    def max(self, window: int) -> Bounds | None:
        """Bounds on the largest value; None of an empty window."""
        return self._extreme(window, reverse=True)

    def min(self, window: int) -> Bounds | None:
        """Bounds on the least value; None of an empty window."""
        return self._extreme(window, reverse=False)

    def count(self, window: int) -> int:
        """How many rows, exactly."""
        return sum(count for _, count in self._counts(window))

    def sum(self, window: int) -> Bounds:
        """Bounds on the sum."""
        found = [(self.buckets.bounds(bucket), count) for bucket, count in self._counts(window)]
        return Bounds(
            float(sum(each.low * count for each, count in found)),
            float(sum(each.high * count for each, count in found)),
        )

    def avg(self, window: int) -> Bounds | None:
        """Bounds on the average; None of an empty window."""
        count = self.count(window)
        total = self.sum(window)
        return Bounds(total.low / count, total.high / count) if count else None

    def _extreme(self, window: int, *, reverse: bool) -> Bounds | None:
        edge = self._edge(window)
        for bucket in sorted(self._times, reverse=reverse):
            times = self._times[bucket]
            # The newest timestamp says whether the window holds any row of the bucket.
            if times and times[-1] > edge:
                return self.buckets.bounds(bucket)
        return None

    def _counts(self, window: int) -> Iterable[tuple[int, int]]:
        edge = self._edge(window)
        for bucket, times in self._times.items():
            count = len(times) - bisect_right(times, edge, lo=self._dead.get(bucket, 0))
            if count:
                yield bucket, count

    def _edge(self, window: int) -> int:
        _check(
            0 < window <= self.longest,
            f"a window of this TimeGram is between 1 and {self.longest} long, not {window}",
        )
        return (self.now or 0) - window

    def _widen(self, low: float, high: float) -> None:
        """Move all timestamps into wider buckets where a value has none."""
        wider = self.buckets.widened(low, high)
        if wider is None:
            return
        middles = {
            bucket: (bounds.low + bounds.high) / 2
            for bucket in self._times
            for bounds in (self.buckets.bounds(bucket),)
        }
        moved = {
            bucket: int(wider.number(np.array([middle]))[0]) for bucket, middle in middles.items()
        }
        self._order = deque((time, moved[bucket]) for time, bucket in self._order)
        self._times, self._dead = {}, {}
        for time, bucket in self._order:
            self._times.setdefault(bucket, []).append(time)
        self.buckets = wider


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise DataError(message)
