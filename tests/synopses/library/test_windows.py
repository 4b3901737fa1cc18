"""Running, interval and basic interval synopses, and those of joins, against recomputation."""

from __future__ import annotations

import itertools
import random

import pyarrow as pa
import pytest

from muntin.aggregates import resolve
from muntin.errors import AggregateError, WindowError
from muntin.synopses.library import BasicIntervals, Intervals, JoinIntervals, Running

SUM = resolve("sum", (pa.int64(),)).algebra
MAX = resolve("max", (pa.int64(),)).algebra
COUNT = resolve("count", ()).algebra


@pytest.mark.parametrize(
    ("make", "aggregate", "plain"),
    [
        (Running, SUM, sum),
        (BasicIntervals, SUM, sum),
        (BasicIntervals, MAX, max),
        (Intervals, SUM, sum),
        (Intervals, MAX, max),
    ],
)
@pytest.mark.parametrize("parts", [1, 5, 8])
def test_every_window_of_a_stream(make, aggregate, plain, parts):
    draw = random.Random(parts)
    synopsis, values = make(aggregate, parts), []
    for _ in range(40):
        values.append(draw.randint(-9, 9))
        synopsis.close(aggregate.partial(values[-1]))
        for window in range(1, parts + 1):
            assert synopsis.answer(window) == plain(values[-window:])


def test_one_pass_answers_all_windows():
    basic = BasicIntervals(SUM, 10)
    for value in range(10):
        basic.close(SUM.partial(value))

    assert basic.answers(list(range(1, 11))) == [sum(range(10 - n, 10)) for n in range(1, 11)]
    assert basic.operations == 9


@pytest.mark.parametrize("parts", [8, 16, 64])
def test_an_interval_synopsis_takes_at_most_twice_the_logarithm(parts):
    worst = 0
    for phase in range(parts):
        intervals = Intervals(MAX, parts)
        for _ in range(parts + phase):
            intervals.close(0)
        worst = max(worst, *(len(intervals.pieces(n)) for n in range(1, parts + 1)))

    assert worst == 2 * (parts.bit_length() - 1) - 2


@pytest.mark.parametrize("kind", ["basic", "interval", "running"])
@pytest.mark.parametrize("general", [0, 1, 2, 5])
def test_joins_of_windows_that_differ(kind, general):
    draw, parts = random.Random(general), 8
    joins, results = JoinIntervals(COUNT, parts, general, kind), []
    for opened in range(1, 14):
        joins.advance()
        oldest = max(opened - parts, 0)
        for _ in range(30):
            left, right = draw.randint(oldest, opened - 1), draw.randint(oldest, opened - 1)
            joins.insert(left, right, COUNT.lift(()))
            results.append((left, right))
        for n1, n2 in itertools.product(range(1, parts + 1), repeat=2):
            if abs(n1 - n2) <= general:
                expected = sum(p >= opened - n1 and q >= opened - n2 for p, q in results)
                assert joins.answer(n1, n2) == expected


def test_a_join_of_maxima():
    joins = JoinIntervals(MAX, 4, 1, "interval")
    for _ in range(5):
        joins.advance()
    joins.insert(1, 4, 9)
    joins.insert(3, 2, 5)

    assert joins.answer(4, 4) == 9
    assert joins.answer(3, 4) == 5
    assert joins.answer(4, 3) == 9


def test_no_windows_have_no_answers():
    basic = BasicIntervals(SUM, 3)
    for _ in range(2):
        assert basic.answers([]) == []
        basic.close(SUM.partial(1))


def test_what_is_refused():
    with pytest.raises(AggregateError, match="max does not have"):
        Running(MAX, 3)
    with pytest.raises(AggregateError, match="max does not have"):
        JoinIntervals(MAX, 3, kind="running")
    with pytest.raises(WindowError, match="1 to 3 parts, not 4"):
        Running(SUM, 3).answer(4)
    with pytest.raises(WindowError, match="1 part or more"):
        Intervals(SUM, 0)
    joins = JoinIntervals(SUM, 3)
    joins.advance()
    with pytest.raises(WindowError, match="differ by more than 0"):
        joins.answer(1, 2)
    with pytest.raises(WindowError, match="part 1 is not one of 0 to 0"):
        joins.insert(0, 1, 1)
