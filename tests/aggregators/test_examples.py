"""The worked examples of the thesis, state by state where a figure shows states."""

from itertools import pairwise

import pyarrow as pa
import pytest

from muntin.aggregates import resolve
from muntin.aggregators import create

SUM = resolve("sum", [pa.int64()])
MAX = resolve("max", [pa.int64()])
NOTHING = None

EXAMPLE_3 = [2, 4, 0, 3, 7, 6, 1, 8, 9, 5]
# Pointers, partials, and the answers of ranges 5 and 2, after every step of Figure 10.
FIGURE_10 = [
    ([1, 0, 0, 0, 0], [NOTHING, 2, 2, 2, 2], (2, 2)),
    ([1, 0, 0, 0, 0], [4, 2, 2, 2, 2], (4, 4)),
    ([2, 2, 0, 0, 0], [4, 0, 2, 2, 2], (4, 4)),
    ([3, 2, 3, 0, 0], [4, 0, 3, 2, 2], (4, 3)),
    ([4, 2, 3, 4, 0], [7, 0, 3, 7, 2], (7, 7)),
    ([4, 2, 3, 4, 0], [7, 0, 3, 7, 6], (7, 7)),
    ([1, 2, 1, 1, 1], [1, 0, 7, 7, 6], (7, 6)),
    ([1, 2, 1, 1, 1], [1, 8, 7, 7, 6], (8, 8)),
    ([1, 3, 3, 1, 1], [1, 9, 9, 7, 6], (9, 9)),
    ([1, 4, 3, 4, 1], [1, 9, 9, 5, 6], (9, 9)),
]
# Operations of each step with the range 5 alone: two resets, ones around them, twos between.
STEPS_OF_EXAMPLE_3 = [4, 1, 2, 2, 2, 1, 4, 1, 2, 2]

EXAMPLE_5 = [6, 5, 0, 1, 3, 4, 2, 7]
SUMS = [(6, 6), (11, 11), (11, 11), (6, 12), (4, 15), (8, 13), (9, 10), (13, 17)]
MAXIMA = [(6, 6), (6, 6), (6, 6), (5, 6), (3, 6), (4, 5), (4, 4), (7, 7)]
# The deque after every step of Figure 22: position in the window of five, value.
FIGURE_22 = [
    [(0, 6)],
    [(0, 6), (1, 5)],
    [(0, 6), (1, 5), (2, 0)],
    [(0, 6), (1, 5), (3, 1)],
    [(0, 6), (1, 5), (4, 3)],
    [(1, 5), (0, 4)],
    [(0, 4), (1, 2)],
    [(2, 7)],
]


def test_example_3_takes_21_operations_where_panes_takes_40():
    flatfit, panes = create("flatfit", MAX, [5]), create("panes", MAX, [5])
    counted = [0]
    for value, (_, _, (answer, _)) in zip(EXAMPLE_3, FIGURE_10, strict=True):
        assert flatfit.insert(value) == panes.insert(value) == (answer,)
        counted.append(flatfit.operations)
    assert [b - a for a, b in pairwise(counted)] == STEPS_OF_EXAMPLE_3
    assert (flatfit.operations, panes.operations) == (21, 40)


def test_example_4_takes_6_more_and_goes_through_the_states_of_figure_10():
    flatfit = create("flatfit", MAX, [5, 2])
    assert flatfit.state.pointers.tolist() == [1, 2, 3, 4, 0]
    assert flatfit.state.partials.tolist() == [NOTHING] * 5
    for value, (pointers, partials, answers) in zip(EXAMPLE_3, FIGURE_10, strict=True):
        assert flatfit.insert(value) == answers
        assert flatfit.state.pointers.tolist() == pointers
        assert flatfit.state.partials.tolist() == partials
    assert flatfit.operations == 21 + 6


def test_example_4_in_panes_takes_10_more():
    panes = create("panes", MAX, [5, 2])
    panes.run(EXAMPLE_3)
    assert panes.operations == 40 + 10


def test_example_5_takes_32_operations_where_panes_takes_48():
    slickdeque, panes = create("slickdeque_inv", SUM, [3, 5]), create("panes", SUM, [3, 5])
    for i, (value, answers) in enumerate(zip(EXAMPLE_5, SUMS, strict=True)):
        partial = SUM.algebra.lift(value)
        assert slickdeque.insert(partial) == panes.insert(partial) == answers
        # Figure 20, but for its third row, which repeats the second: the ring after the step.
        ring = [EXAMPLE_5[k] for k in range(i + 1)][-5:]
        held = [slickdeque.state.partials[k % 5].total.units for k in range(max(0, i - 4), i + 1)]
        assert held == ring
        running = [partial.total.units for partial in slickdeque.state.running]
        assert running == list(answers)[::-1]
    assert (slickdeque.operations, panes.operations) == (32, 48)


def test_example_6_takes_11_operations_and_goes_through_the_states_of_figure_22():
    slickdeque = create("slickdeque_noninv", MAX, [3, 5])
    for value, answers, deque in zip(EXAMPLE_5, MAXIMA, FIGURE_22, strict=True):
        assert slickdeque.insert(value) == answers
        assert _nodes(slickdeque.state, 5) == deque
    assert slickdeque.operations == 11


@pytest.mark.parametrize(
    ("name", "aggregate", "ranges", "values", "operations"),
    [
        ("flatfit", MAX, [5], EXAMPLE_3, 21),
        ("flatfit", MAX, [5, 2], EXAMPLE_3, 27),
        ("panes", MAX, [5], EXAMPLE_3, 40),
        ("slickdeque_inv", SUM, [3, 5], EXAMPLE_5, 32),
        ("panes", SUM, [3, 5], EXAMPLE_5, 48),
        ("slickdeque_noninv", MAX, [3, 5], EXAMPLE_5, 11),
        ("slickdeque_noninv", MAX, [5], EXAMPLE_5, 11),
    ],
)
def test_the_compiled_loops_count_the_same(name, aggregate, ranges, values, operations):
    aggregator = create(name, aggregate, ranges)
    aggregator.run(values)
    assert aggregator.window.encoding is not None
    assert aggregator.operations == operations


def _nodes(state, window):
    first, length = state.head[2], state.head[4]
    places = [(first + k) % len(state.numbers) for k in range(length)]
    return [(int(state.numbers[at]) % window, state.partials[at]) for at in places]
