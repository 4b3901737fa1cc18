"""Edge counts: the thesis's examples, three methods against one another, and hard cases."""

from fractions import Fraction
from itertools import pairwise
from math import lcm, prod
from random import Random

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from muntin.errors import WindowError
from muntin.planner import EDGE_METHODS, edge_count, edge_rate, f1_terms
from muntin.planner.edges.exact import MAX_DEPTH, uncovered
from muntin.planner.edges.f1 import overlap

# Examples 8 and 9: slides without fragments.
PLAIN = [(slide, 0) for slide in (2, 3, 4, 5, 6)]
# Examples 10 and 12: slides 3, 4, 6, 9, of which 4 has fragments (3, 1) and 6 has (2, 4).
FRAGMENTS = [(3, 0), (4, 0), (4, 3), (6, 0), (6, 2), (9, 0)]
PRIMES = [number for number in range(2, 1000) if all(number % d for d in range(2, number))]

small_classes = st.lists(
    st.tuples(st.sampled_from((1, *range(2, 17), 18, 20, 24, 30, 36, 60)), st.integers(-70, 70)),
    max_size=9,
)


@pytest.mark.parametrize("method", EDGE_METHODS)
def test_examples_8_to_12_of_the_thesis(method):
    assert edge_count(PLAIN, method) == 44
    assert edge_rate(PLAIN, method) == Fraction(44, 60)
    assert edge_count(FRAGMENTS, method) == 27
    assert edge_rate(FRAGMENTS, method) == Fraction(27, 36)


def test_partial_sums_of_f1():
    assert f1_terms(PLAIN) == [87, 70, 36, 10, 1]
    assert f1_terms(FRAGMENTS) == [46, 26, 8, 1]
    assert f1_terms([]) == []


def test_marks_of_example_8_one_slide_at_a_time():
    # 30 even positions, 40 with the multiples of 3, none added by 4, then 5 and 6.
    marked = [60 * edge_rate(PLAIN[:size]) for size in range(1, 6)]
    assert marked == [30, 40, 40, 44, 44]


@pytest.mark.parametrize("method", EDGE_METHODS)
def test_example_11_shifts_decide_whether_classes_overlap(method):
    #            1 2 3 4 5 6
    # 3(0)           x     x
    # 6(3)           x          within 3(0)
    # 6(2)         x            apart from it
    assert overlap((3, 0), (6, 3))
    assert not overlap((3, 0), (6, 2))
    assert edge_count([(3, 0), (6, 3)], method) == 2
    assert edge_count([(3, 0), (6, 2)], method) == 3


@seed(6)
@settings(max_examples=300, deadline=None)
@given(small_classes)
def test_methods_agree_with_the_bit_set(classes):
    expected = edge_count(classes, "bitset")
    assert edge_count(classes, "auto") == expected
    assert edge_count(classes, "f1") == expected
    assert edge_rate(classes) == Fraction(expected, lcm(*(slide for slide, _ in classes)))


@pytest.mark.parametrize("trial", range(12))
def test_auto_equals_the_bit_set_on_many_classes_of_a_long_period(trial):
    random = Random(trial)
    period = random.choice(
        (2**9 * 3**4 * 5 * 7, 2**4 * 3**2 * 5**2 * 7 * 11, 2**3 * 3 * 17 * 19 * 23)
    )
    divisors = [d for d in range(8, 3000) if period % d == 0]
    slides = random.choices(divisors, k=40)
    classes = [(slide, random.randrange(slide)) for slide in slides]
    assert edge_count(classes) == edge_count(classes, "bitset")


@seed(6)
@settings(max_examples=60, deadline=None)
@given(small_classes, st.integers(-(10**12), 10**12), st.integers(1, 10**15))
def test_rates_do_not_depend_on_the_origin_and_scale_with_the_unit(classes, origin, unit):
    moved = [(slide * unit, (shift + origin) * unit) for slide, shift in classes]
    assert edge_rate(moved) * unit == edge_rate(classes)


def test_168_primes_multiply():
    assert len(PRIMES) == 168
    period = prod(PRIMES)
    free = prod(prime - 1 for prime in PRIMES)
    assert edge_count([(prime, prime // 2) for prime in PRIMES]) == period - free


def test_100_slides_with_fragments_are_exact():
    random = Random(5)
    slides = [random.randint(1, 3600) for _ in range(100)]
    classes = [(slide, shift) for slide in slides for shift in (0, random.randrange(slide))]
    rate = edge_rate(classes)
    # The same edges in a period that holds an independent slide: one in 7919 of the free times
    # gains an edge.
    assert edge_rate([*classes, (7919, 5)]) == 1 - (1 - rate) * Fraction(7918, 7919)
    assert edge_count(classes) == rate * lcm(*slides)


@pytest.mark.parametrize("method", EDGE_METHODS)
def test_degenerate_classes(method):
    assert edge_count([], method) == 0
    assert edge_rate([], method) == 0
    assert edge_count([(1, 5)], method) == 1
    assert edge_count([(1, 0), (6, 2)], method) == 6
    assert edge_count([(6, -4), (6, 2), (6, 8), (6, 2)], method) == 1
    assert edge_count([(2, 0), (2, 1), (6, 3)], method) == 6
    assert edge_count(((slide, 0) for slide in (4, 2)), method) == 2


def test_huge_slides_need_no_factors():
    big, other = 2**89 - 1, 2**107 - 1
    assert edge_count([(big, 3), (other, -1)]) == big + other - 1
    assert edge_count([(big * other, 0), (big, 1)]) == other + 1


@pytest.mark.parametrize("method", EDGE_METHODS)
@pytest.mark.parametrize("bad", [(0, 1), (-3, 0), (2.5, 0), (2,), "ab", 7])
def test_bad_classes_are_refused_with_a_hint(method, bad):
    with pytest.raises(WindowError) as caught:
        edge_count([(2, 0), bad], method)
    assert caught.value.hint


def test_limits_are_errors_with_a_way_out():
    with pytest.raises(WindowError, match="bit set would need over") as caught:
        edge_count([(prime, 0) for prime in PRIMES], "bitset")
    assert "auto" in str(caught.value.hint)
    with pytest.raises(WindowError, match="did you mean bitset"):
        edge_count([(2, 0)], "bitsets")


def test_f1_stops_at_its_limit(monkeypatch):
    monkeypatch.setattr("muntin.planner.edges.f1.F1_LIMIT", 1000)
    with pytest.raises(WindowError, match="more than 1000 terms") as caught:
        edge_count([(prime, 0) for prime in PRIMES[:20]], "f1")
    assert "auto" in str(caught.value.hint)


def test_auto_stops_at_its_limit(monkeypatch):
    monkeypatch.setattr("muntin.planner.edges.counts.EXACT_LIMIT", 3)
    with pytest.raises(WindowError, match="too entangled") as caught:
        edge_count([(4, 0), (6, 1), (10, 3), (15, 2)])
    assert "estimate_edge_rate" in str(caught.value.hint)


def test_digits_that_all_classes_fix_take_the_work_of_one_after_the_other():
    # A second is twelve digits of microseconds, which all three classes fix; 6 and 10 share one.
    seconds = [(6, 0), (10, 2), (7, 1)]
    classes = [(slide * 10**6, shift * 10**6) for slide, shift in seconds]
    free, total = uncovered(seconds, limit=2)
    assert uncovered(seconds, limit=1) is None
    assert uncovered(classes, limit=12 * 3 + 2) == (total * (10**6 - 1) + free, total * 10**6)
    assert uncovered(classes, limit=12 * 3 + 1) is None


def test_digits_that_all_classes_fix_to_different_values():
    classes = [(6, 0), (6, 1), (10, 2), (10, 3), (14, 5), (22, 4)]
    period = lcm(*(slide for slide, _ in classes))
    free = sum(all(t % slide != shift for slide, shift in classes) for t in range(period))
    assert Fraction(*uncovered(classes, limit=1000)) == Fraction(free, period)


def test_a_chain_of_slides_longer_than_the_depth_is_given_up_not_overflowed():
    primes = [p for p in range(2, 6000) if all(p % d for d in range(2, int(p**0.5) + 1))]
    chain = [(a * b, 0) for a, b in pairwise(primes)]
    assert len(chain) > 2 * MAX_DEPTH
    assert uncovered(chain, limit=10**7) is None
