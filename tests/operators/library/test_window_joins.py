"""Algorithms 2 to 5: the same results as recomputation, and how many a lazy join loses."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from muntin.errors import DataError, WindowError
from muntin.operators.library import ALGORITHMS, window_join


def random_tuples(seed, streams, count=60, span=120, values=3):
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(0, span, count))
    return times, random.integers(0, streams, count), random.integers(0, values, count)


def expected(times, streams, values, windows, instants=None):
    """All combinations of equal values that are alive together; at an instant, where given."""
    sides = [np.flatnonzero(streams == i) for i in range(len(windows))]
    found = set()
    for chosen in product(*(side.tolist() for side in sides)):
        start = max(times[at] for at in chosen)
        end = min(times[at] + windows[i] for i, at in enumerate(chosen))
        alive = start < end
        if alive and instants is not None:
            alive = any(start <= instant < end for instant in instants)
        if alive and len({values[at] for at in chosen}) == 1:
            found.add(chosen)
    return found


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("windows", [(20, 35), (20, 30, 40), (15, 15, 15, 15)])
@pytest.mark.parametrize("buckets", [1, 2])
def test_results_equal_recomputation(algorithm, windows, buckets):
    for seed in range(4):
        count = 60 if len(windows) < 4 else 32
        times, streams, values = random_tuples(seed, len(windows), count)
        order = np.random.default_rng(seed).permutation(len(windows)).tolist()
        run = window_join(
            times, streams, values, windows,
            algorithm=algorithm, order=order, every=10, buckets=buckets, most=100_000,
        )  # fmt: skip
        instants = range(0, 400, 10) if algorithm == "lazy" else None
        rows = [tuple(row) for row in run.rows.tolist()]

        assert len(rows) == len(set(rows)) == run.results
        assert set(rows) == expected(times, streams, values, windows, instants)


# Of windows of T that are joined every Δ: Δ/2T; Δ/T - Δ²/3T²; 3Δ/2T - Δ²/T² + Δ³/4T³.
@pytest.mark.parametrize(
    ("count", "gap", "lost"), [(2, 1000, 8.33), (3, 3000, 15.74), (4, 5000, 22.34)]
)
def test_what_a_lazy_join_loses(count, gap, lost):
    random = np.random.default_rng(11)
    span, window, every = 40_000_000, 60_000, 10_000
    tuples = count * span // gap
    times = np.sort(random.integers(0, span, tuples))
    streams, values = random.integers(0, count, tuples), np.zeros(tuples, dtype=np.int64)
    every_result = window_join(
        times, streams, values, [window] * count, algorithm="lazy_restore", every=every
    )
    seen = window_join(times, streams, values, [window] * count, algorithm="lazy", every=every)

    assert 100 * (1 - seen.results / every_result.results) == pytest.approx(lost, abs=0.2)


def test_a_hash_join_looks_at_fewer_tuples():
    times, streams, values = random_tuples(1, 2, count=2000, span=4000, values=50)
    loops = window_join(times, streams, values, [500, 500])
    hashed = window_join(times, streams, values, [500, 500], buckets=10)

    assert hashed.results == loops.results
    assert hashed.comparisons < loops.comparisons / 8


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"windows": [5]}, WindowError, "2 to 6 windows, not 1"),
        ({"algorithm": "keen"}, DataError, "'keen' is not an algorithm"),
        ({"order": [0, 0]}, DataError, "each of 2 streams once"),
        ({"algorithm": "lazy", "every": 5}, WindowError, "longer than the interval of 5"),
        ({"windows": [0, 5]}, WindowError, "1 or more"),
        ({"times": [3, 1]}, DataError, "in order of time"),
    ],
)
def test_what_is_refused(options, error, message):
    times = np.array(options.pop("times", [1, 2]))
    windows = options.pop("windows", [5, 5])
    with pytest.raises(error, match=message):
        window_join(times, np.array([0, 1]), np.array([0, 0]), windows, **options)
