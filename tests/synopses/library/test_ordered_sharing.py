"""OrderedSharing: the report's example, its fault, and random streams against recomputation."""

from __future__ import annotations

import random

import pytest

from muntin.errors import DataError, WindowError
from muntin.synopses.library import OrderedSharing

A, B, C, D, E, F = 2, 4, 6, 8, 10, 12


def figure():
    """Answers 5, 10, 15, 20, 30 and 50 of six sizes, the larger the older, at time 12."""
    shared = OrderedSharing([A, B, C, D, E, F])
    for time, value in ((2, 50), (3, 30), (6, 20), (7, 15), (9, 10), (11, 5), (12, 1)):
        shared.insert(value, time)
    assert shared.lookup(F) == 50
    assert [node.answer for node in shared.nodes] == [5, 10, 15, 20, 30, 50]
    return shared


def test_a_value_takes_the_place_of_all_that_are_not_larger():
    shared = figure()
    shared.insert(30, 12)

    assert [(node.size, node.answer) for node in shared.nodes] == [(E, 30), (F, 50)]


def test_a_value_above_an_answer_whose_row_has_left():
    shared = figure()
    shared.insert(35, 13)  # the row of E has just left

    assert [(node.size, node.answer) for node in shared.nodes] == [(D, 35), (F, 50)]


def test_an_answer_does_not_outlive_its_row():
    shared = OrderedSharing([3])
    for time, value in enumerate([9, 1, 1], start=1):
        shared.insert(value, time)
    assert shared.lookup(3) == 9
    shared.insert(1, 4)

    assert shared.lookup(3) == 1


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("seed", range(20))
def test_lookups_equal_recomputation(seed, kind):
    draw = random.Random(seed)
    sizes = draw.sample(range(1, 40), draw.randint(1, 6))
    shared, rows, now = OrderedSharing(sizes, kind), [], 0
    for _ in range(300):
        now += draw.randint(0, 3)
        rows.append((now, draw.randint(0, 50)))
        shared.insert(rows[-1][1], now)
        if draw.random() < 0.5:
            size = draw.choice(sizes)
            inside = [value for time, value in rows if time > now - size]
            assert shared.lookup(size) == (max if kind == "max" else min)(inside)
        answers = [node.answer for node in shared.nodes]
        assert answers == sorted(answers, reverse=kind == "min")


def test_what_is_refused():
    with pytest.raises(WindowError, match="1 or more"):
        OrderedSharing([0])
    shared = OrderedSharing([3, 5])
    assert shared.lookup(3) is None
    shared.insert(1, 5)
    with pytest.raises(WindowError, match="size 4 is not registered"):
        shared.lookup(4)
    with pytest.raises(DataError, match="order of time"):
        shared.insert(1, 4)
    with pytest.raises(DataError, match="NaN has not"):
        shared.insert(float("nan"), 6)
