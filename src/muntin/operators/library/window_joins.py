"""Joins of n sliding windows on one common attribute, tuple by tuple: Algorithms 2 to 5.

Each stream keeps its tuples in hash buckets, oldest first; one bucket is a nested-loop join. A
tuple of stream i probes the others in the global order without i, and nothing in between is
stored.

*Sliding Window Query Processing over Data Streams*, 5.2. Algorithm 5 is corrected: candidates
have no upper bound on their end, and the last check compares the latest time with the earliest
end of all tuples of a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.errors import DataError, WindowError

ALGORITHMS = ("eager", "eager_lazy_expiry", "lazy", "lazy_restore")
_MOST = 6


class JoinRun(NamedTuple):
    """What a join gave, and what it took.

    Attributes:
        results: How many combinations came out.
        comparisons: Candidates that were looked at.
        expiries: Tuples and buckets that were looked at to drop what has expired.
        rows: The combinations, a row each: positions of tuples, by stream; empty unless asked for.
    """

    results: int
    comparisons: int
    expiries: int
    rows: Ints


def window_join(
    times: Ints,
    streams: Ints,
    values: Ints,
    windows: Sequence[int],
    *,
    algorithm: str = "eager",
    order: Sequence[int] | None = None,
    every: int = 1,
    buckets: int = 1,
    most: int = 0,
) -> JoinRun:
    """Join tuples that come in order of time, each from one of several streams.

    A tuple of stream i is alive from its time to before its time + `windows[i]`. `eager` finds
    results on arrival and expires at once, `eager_lazy_expiry` expires every so often and
    compares times instead; `lazy` works every so often and finds what is alive then,
    `lazy_restore` also what was alive in between. `most` is how many results are given as rows.

    >>> times = np.array([0, 1, 4, 12]); streams = np.array([0, 1, 0, 1])
    >>> run = window_join(times, streams, np.zeros(4, int), [10, 10], most=9)
    >>> run.results, run.rows.tolist()
    (3, [[0, 1], [2, 1], [2, 3]])
    """
    count = len(windows)
    sequence = list(range(count)) if order is None else list(order)
    _check(algorithm, times, windows, sequence, every, buckets)
    probes = np.array(
        [[j for j in sequence if j != i] for i in range(count)], dtype=np.int64
    ).reshape(count, count - 1)
    rows = np.empty((most, count), dtype=np.int64)
    kernel: Any = _eager if algorithm.startswith("eager") else _lazy
    results, comparisons, expiries = kernel(
        np.ascontiguousarray(times, dtype=np.int64),
        np.ascontiguousarray(streams, dtype=np.int64),
        np.ascontiguousarray(values, dtype=np.int64),
        np.array(windows, dtype=np.int64),
        np.array(sequence, dtype=np.int64),
        probes,
        algorithm in ("eager_lazy_expiry", "lazy_restore"),
        every,
        buckets,
        rows,
    )
    return JoinRun(int(results), int(comparisons), int(expiries), rows[: min(int(results), most)])


def _check(
    algorithm: str, times: Ints, windows: Sequence[int], order: list[int], every: int, buckets: int
) -> None:
    if algorithm not in ALGORITHMS:
        raise DataError(
            f"{algorithm!r} is not an algorithm", hint=f"one of {', '.join(ALGORITHMS)}"
        )
    if not 2 <= len(windows) <= _MOST:
        raise WindowError(f"a join has 2 to {_MOST} windows, not {len(windows)}")
    if sorted(order) != list(range(len(windows))):
        raise DataError(f"an order must name each of {len(windows)} streams once, unlike {order}")
    if min(windows) < 1 or every < 1 or buckets < 1:
        raise WindowError("windows, intervals and numbers of buckets must be 1 or more")
    if algorithm.startswith("lazy") and min(windows) <= every:
        raise WindowError(f"windows must be longer than the interval of {every} between two runs")
    if len(times) > 1 and bool((np.diff(times) < 0).any()):
        raise DataError("tuples must come in order of time")


@compiled
def _push(first: Ints, last: Ints, after: Ints, stream: int, bucket: int, at: int) -> None:
    if first[stream, bucket] < 0:
        first[stream, bucket] = at
    else:
        after[last[stream, bucket]] = at
    last[stream, bucket] = at


@compiled
def _expire(first: Ints, after: Ints, ends: Ints, stream: int, now: int) -> int:
    """Drop what ends by now from every bucket of a stream; how many were looked at."""
    looked = 0
    for bucket in range(first.shape[1]):
        at = first[stream, bucket]
        looked += 1
        while at >= 0 and ends[at] <= now:
            at = after[at]
            looked += 1
        first[stream, bucket] = at
    return looked


@compiled
def _combine(
    at: int,
    probes: Ints,
    bucket: int,
    value: int,
    first: Ints,
    after: Ints,
    values: Ints,
    times: Ints,
    ends: Ints,
    stream: int,
    checks: bool,
    since: int,
    chosen: Ints,
    rows: Ints,
    counts: Ints,
) -> None:
    """All combinations with one tuple, depth first; `checks` compares times and ends.

    `since` is the earliest instant at which a candidate must still be alive. Results and
    comparisons are added to `counts`.
    """
    depth, width = 0, len(probes)
    pointers = np.empty(width, dtype=np.int64)
    latest = np.empty(width + 1, dtype=np.int64)
    earliest = np.empty(width + 1, dtype=np.int64)
    latest[0], earliest[0] = times[at], ends[at]
    chosen[stream] = at
    pointers[0] = first[probes[0], bucket]
    while depth >= 0:
        found = pointers[depth]
        if found < 0:
            depth -= 1
            if depth >= 0:
                pointers[depth] = after[pointers[depth]]
            continue
        counts[1] += 1
        fits = values[found] == value
        if fits and checks:
            latest[depth + 1] = max(latest[depth], times[found])
            earliest[depth + 1] = min(earliest[depth], ends[found])
            fits = ends[found] > since and latest[depth + 1] < earliest[depth + 1]
        if not fits:
            pointers[depth] = after[found]
            continue
        chosen[probes[depth]] = found
        if depth == width - 1:
            if counts[0] < len(rows):
                rows[counts[0]] = chosen
            counts[0] += 1
            pointers[depth] = after[found]
        else:
            depth += 1
            pointers[depth] = first[probes[depth], bucket]


@compiled
def _eager(
    times: Ints,
    streams: Ints,
    values: Ints,
    windows: Ints,
    order: Ints,
    probes: Ints,
    compares: bool,
    every: int,
    buckets: int,
    rows: Ints,
) -> tuple[int, int, int]:
    """Algorithms 2 and 3: every tuple probes on arrival."""
    first = np.full((len(windows), buckets), -1, dtype=np.int64)
    last = np.full((len(windows), buckets), -1, dtype=np.int64)
    after = np.full(len(times), -1, dtype=np.int64)
    ends = times + windows[streams]
    chosen = np.empty(len(windows), dtype=np.int64)
    counts = np.zeros(2, dtype=np.int64)
    expiries = 0
    purged = times[0] if len(times) else 0
    for at in range(len(times)):
        stream, now = streams[at], times[at]
        if not compares or now - purged >= every:
            purged = now
            for other in range(len(windows)):
                expiries += _expire(first, after, ends, other, now)
        bucket = values[at] % buckets
        _push(first, last, after, stream, bucket, at)
        _combine(
            at, probes[stream], bucket, values[at], first, after, values, times, ends,
            stream, compares, now, chosen, rows, counts,
        )  # fmt: skip
    return counts[0], counts[1], expiries


@compiled
def _lazy(
    times: Ints,
    streams: Ints,
    values: Ints,
    windows: Ints,
    order: Ints,
    probes: Ints,
    restores: bool,
    every: int,
    buckets: int,
    rows: Ints,
) -> tuple[int, int, int]:
    """Algorithms 4 and 5: all tuples of an interval probe at its end, once per value.

    Streams come in order: those before have their new tuples in, those behind do not, so that
    each combination of new tuples is found once.
    """
    first = np.full((len(windows), buckets), -1, dtype=np.int64)
    last = np.full((len(windows), buckets), -1, dtype=np.int64)
    after = np.full(len(times), -1, dtype=np.int64)
    ends = times + windows[streams]
    chosen = np.empty(len(windows), dtype=np.int64)
    counts = np.zeros(2, dtype=np.int64)
    expiries, start = 0, 0
    now = times[0] // every * every if len(times) else 0
    while start < len(times):
        now += every
        end = start
        while end < len(times) and times[end] <= now:
            end += 1
        for stream in order:
            new = [at for at in range(start, end) if streams[at] == stream]
            for at in new:
                _push(first, last, after, stream, values[at] % buckets, at)
            for place in range(len(new)):
                at = new[place]
                looked, found = counts[1], counts[0]
                again = False
                for other in range(place):
                    again = again or values[new[other]] == values[at]
                _combine(
                    at, probes[stream], values[at] % buckets, values[at], first, after, values,
                    times, ends, stream, restores, times[at], chosen, rows, counts,
                )  # fmt: skip
                if again:
                    # Tuples of one value share a probe; what it found is only checked again.
                    counts[1] = looked + (counts[0] - found if restores else 0)
        horizon = now if restores else now + every
        for other in range(len(windows)):
            expiries += _expire(first, after, ends, other, horizon)
        start = end
    return counts[0], counts[1], expiries
