"""TimeGram: the report's example in both bucketings, and bounds that hold on random streams."""

from __future__ import annotations

import math

import numpy as np
import pytest

from muntin.errors import DataError
from muntin.synopses.library import EdgeBuckets, EqualBuckets, GeometricBuckets, TimeGram

# The report's stream, one row per tick; its largest window holds four.
VALUES = (3, -10, -9, 5, 2, 7, -3)


def gram_of(buckets, values=VALUES, longest=4):
    gram = TimeGram(buckets, longest)
    for time, value in enumerate(values, start=1):
        gram.insert(value, time)
    return gram


def test_the_example_with_buckets_of_equal_width():
    gram = gram_of(EqualBuckets(-10, 10, 5))

    assert gram.max(3) == (6, 10)
    assert gram.sum(4) == (4, 20)
    assert gram.avg(2) == (0, 4)
    assert gram.count(4) == 4


def test_the_example_with_the_bounds_as_printed():
    gram = gram_of(EdgeBuckets((-10, -6, -2, 4, 6, 10)))

    assert gram.max(3) == (6, 10)
    assert gram.sum(4) == (2, 18)
    assert gram.avg(2) == (0, 4)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "buckets", [EqualBuckets(-1, 1, 7), GeometricBuckets(0.05), EdgeBuckets((-2.0, 0.5, 3.0))]
)
def test_bounds_enclose_the_answer(seed, buckets):
    random = np.random.default_rng(seed)
    values = random.normal(0, 3 ** random.integers(0, 4), 200)
    times = np.cumsum(random.integers(0, 3, 200))
    gram = TimeGram(buckets, longest=40)
    for some in np.array_split(np.arange(200), 20):
        gram.insert_many(values[some], times[some])
        now, seen = times[some[-1]], some[-1] + 1
        for window in (1, 7, 40):
            inside = values[:seen][times[:seen] > now - window]
            assert gram.count(window) == len(inside)
            assert inside.max() in gram.max(window)
            assert inside.min() in gram.min(window)
            slack = 1e-9 * np.abs(inside).sum()
            low, high = gram.sum(window)
            assert low - slack <= math.fsum(inside) <= high + slack


def test_relative_error_of_geometric_buckets():
    buckets = GeometricBuckets(0.01)
    for value in (1e-6, 0.5, 1, 7, 1e9, -3.0, -1e12):
        low, high = buckets.bounds(int(buckets.number(np.array([value]))[0]))
        assert low <= value <= high
        assert high - low <= 0.021 * abs(value)


def test_values_outside_widen_the_buckets_and_keep_what_was_there():
    gram = gram_of(EqualBuckets(0, 1, 4), values=(0.1, 0.9, 5.0, -7.0), longest=10)

    assert gram.count(10) == 4
    assert 5.0 in gram.max(10)
    assert -7.0 in gram.min(10)
    assert len(gram.buckets.edges) == 5


def test_a_window_without_rows():
    gram = gram_of(EqualBuckets(0, 10, 5), values=(1,))
    gram.advance(50)

    assert gram.max(4) is None
    assert gram.avg(4) is None
    assert gram.count(4) == 0
    assert len(gram) == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TimeGram(EqualBuckets(0, 1, 2), 0), "above 0, not 0"),
        (lambda: EqualBuckets(1, 1, 2), "must be below"),
        (lambda: EqualBuckets(0, 1, 0), "at least one bucket"),
        (lambda: EdgeBuckets((1, 1)), "must increase"),
        (lambda: GeometricBuckets(1.5), "between 0 and 1"),
        (lambda: gram_of(EqualBuckets(0, 1, 2), values=(math.nan,)), "finite"),
        (lambda: gram_of(EqualBuckets(0, 1, 2), values=(1,)).insert(1, 0), "order of time"),
        (lambda: gram_of(EqualBuckets(0, 1, 2), values=(1,)).max(9), "between 1 and 4"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(DataError, match=message):
        make()


@pytest.mark.parametrize("accuracy", [0.3, 0.01, 1e-6])
@pytest.mark.parametrize("value", [1e300, -1.7e308, 5e-324, 1e-9, -1e-9, 0.0])
def test_the_largest_and_the_least_numbers_have_a_bucket(accuracy, value):
    gram = gram_of(GeometricBuckets(accuracy), values=(value,))
    assert gram.max(4).low <= value <= gram.max(4).high
