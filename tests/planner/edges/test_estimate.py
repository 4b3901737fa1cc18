"""Edge estimates against exact rates."""

from random import Random

import numpy as np
import pytest

from muntin.errors import WindowError
from muntin.planner import edge_rate, estimate_edge_rate
from muntin.planner.edges.checks import FEW_SLIDES, checked_classes, reduced_classes
from muntin.planner.edges.estimate import marked
from muntin.windows.edges import reduce_classes


def drawn(number, longest, trial):
    random = Random(trial)
    slides = [random.randint(2, longest) for _ in range(number)]
    return [(slide, shift) for slide in slides for shift in (0, random.randrange(slide))]


def test_within_the_budget_the_rate_is_exact():
    found = estimate_edge_rate([(4, 0), (6, 1), (10, 3)])
    assert found.exact
    assert found.error == 0
    assert found.fraction == edge_rate([(4, 0), (6, 1), (10, 3)])
    assert found.rate == float(found.fraction)
    assert str(found).endswith("(exact)")


@pytest.mark.parametrize("classes", [[], [(1, 0)], [(2, 0), (2, 1)]])
def test_degenerate_sets_are_exact(classes):
    found = estimate_edge_rate(classes)
    assert (found.rate, found.exact) == (float(edge_rate(classes)), True)


@pytest.mark.parametrize(("number", "longest"), [(8, 60), (30, 500), (60, 3600), (20, 10**6)])
@pytest.mark.parametrize("trial", range(4))
def test_estimates_are_within_one_percent_and_say_so(number, longest, trial):
    classes = drawn(number, longest, trial)
    found = estimate_edge_rate(classes, budget=0)
    assert not found.exact
    assert found.fraction is None
    assert 0 < found.error < 0.01
    assert "estimate" in str(found)
    assert found.rate == pytest.approx(float(edge_rate(classes)), rel=0.01)


@pytest.mark.parametrize("unit", [10**6, 10**20])
def test_estimates_of_rare_edges(unit):
    # Strongly overlapping slides, too far apart for any sample of times to see one.
    classes = [(slide * unit, 7) for slide in (6, 10, 15, 14, 21)] + [(35 * unit, 8)]
    found = estimate_edge_rate(classes, budget=0)
    assert found.rate == pytest.approx(float(edge_rate(classes)), rel=0.01)


def test_estimates_are_deterministic_and_do_not_depend_on_order():
    classes = drawn(20, 900, 1)
    assert estimate_edge_rate(classes, 0) == estimate_edge_rate(reversed(classes), 0)


def test_too_entangled_sets_are_estimated():
    classes = drawn(400, 3600, 2)
    found = estimate_edge_rate(classes, budget=2000)
    assert not found.exact
    assert found.error < 0.01
    assert found.rate == pytest.approx(marked(reduced_classes(classes)).rate, rel=0.01)


@pytest.mark.parametrize("trial", range(3))
def test_reduced_classes_of_many_slides(trial):
    random = Random(trial)
    classes = [(random.randint(30, 2000), random.randrange(-50, 50)) for _ in range(1500)]
    assert len({slide for slide, _ in classes}) > FEW_SLIDES
    assert reduced_classes(classes) == reduce_classes(checked_classes(classes))


@pytest.mark.parametrize("trial", range(4))
def test_marked_classes_are_within_their_error(trial):
    classes = reduced_classes(drawn(10, 900, trial) + drawn(15, 300, trial + 100))
    found = marked(classes, 2**18)
    assert found.error < 0.01
    assert found.rate == pytest.approx(float(edge_rate(classes)), rel=found.error)


def test_marked_classes_that_never_meet_have_their_exact_rate():
    assert marked([(10, 0), (10, 3), (10, 7)], 2**12).rate == pytest.approx(0.3, rel=1e-12)
    assert marked([(10**9, 5)], 2**12).rate == 1e-9
    assert marked([], 2**12).rate == 0
    assert marked([(1, 0)], 2**12).rate == 1


@pytest.mark.parametrize("trial", range(10))
def test_marked_classes_that_meet_at_the_same_few_times_are_within_their_error(trial):
    random = Random(trial)
    classes = reduced_classes([(60 * random.randint(1, 240), 0) for _ in range(15)])
    found = marked(classes, 2**18)
    assert found.rate == pytest.approx(float(edge_rate(classes)), rel=found.error)


def test_thousands_of_dense_classes_are_estimated_from_a_sample():
    classes = drawn(3000, 10_000, 4)
    found = estimate_edge_rate(classes)
    assert not found.exact
    assert found.error < 0.01
    # One long run of times elsewhere.
    begin, marked = 10**12 + 39, np.zeros(2_000_000, dtype=bool)
    for slide, shift in classes:
        marked[(shift - begin) % slide :: slide] = True
    assert found.rate == pytest.approx(marked.mean(), rel=0.01)


def test_few_marked_edges_have_a_large_stated_error():
    assert marked([(60_000, 0), (90_000, 0)], 2**18).error > 0.1


def test_bad_classes_are_refused():
    with pytest.raises(WindowError, match="not positive"):
        estimate_edge_rate([(0, 3)])
