"""Runs take turns; ratios come with the range that single turns gave."""

from __future__ import annotations

from random import Random

import pytest

from muntin_bench.measure import Ratio, Timing, measure


def test_sides_take_turns_in_alternating_order() -> None:
    called: list[str] = []
    sides = {name: lambda name=name: called.append(name) for name in "abc"}
    found = measure(sides, repeats=3)
    assert "".join(called) == "abc" + "abc" + "cba" + "abc"
    assert [timing.side for timing in found.values()] == ["a", "b", "c"]


def test_the_ratio_of_medians_lies_in_the_range_of_the_turns() -> None:
    random = Random(3)
    for _ in range(300):
        runs = random.randint(1, 9)
        ours, theirs = (
            Timing(side, tuple(random.expovariate(1) + 1e-6 for _ in range(runs))) for side in "ab"
        )
        ratio = ours.over(theirs)
        assert ratio.low <= ratio.value * (1 + 1e-12)
        assert ratio.value <= ratio.high * (1 + 1e-12)


def test_sides_that_ran_unequally_often_are_compared_run_by_run() -> None:
    assert Timing("a", (2.0, 6.0)).over(Timing("b", (1.0, 2.0, 4.0))) == Ratio(2.0, 0.5, 6.0)


@pytest.mark.parametrize(
    ("other", "apart"),
    [(Ratio(2, 1.5, 2.5), False), (Ratio(4, 3.5, 5), True), (Ratio(1, 0.5, 0.9), True)],
)
def test_ranges_may_be_apart(other: Ratio, apart: bool) -> None:
    ratio = Ratio(2, 1, 3)
    assert (ratio.apart(other), other.apart(ratio)) == (apart, apart)


def test_one_run_says_nothing_about_the_spread() -> None:
    timing = Timing("a", (2.0,))
    assert timing.milliseconds == "2,000.0 (one run)"
    assert not timing.over(Timing("b", (1.0,))).ranged
