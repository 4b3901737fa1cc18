"""Techniques by name: cards, legal pairings, and refusals that say what would do."""

import subprocess
import sys

import pyarrow as pa
import pytest

from muntin import aggregators
from muntin.aggregates import Aggregate, resolve
from muntin.errors import AggregateError, WindowError

SUM = resolve("sum", [pa.int64()])
MAX = resolve("max", [pa.int64()])
VALUE_RANGE = resolve("value_range", [pa.int64()])
NAMES = (
    "panes",
    "panes_inv",
    "flatfat",
    "bint",
    "flatfit",
    "two_stacks",
    "two_stacks_lite",
    "daba",
    "daba_lite",
    "slickdeque_inv",
    "slickdeque_noninv",
    "running_totals",
    "last_seen",
)
ONE_RANGE = {"panes_inv", "two_stacks", "two_stacks_lite", "daba", "daba_lite"}


class Undoable(Aggregate):
    """Text whose last piece can be taken off again: an inverse, but not of the oldest."""

    name = "undoable"
    invertible = True
    commutative = False
    identity = ""

    def lift(self, value):
        return value

    def combine(self, a, b):
        return a + b

    def inverse(self, a, b):
        return a.removesuffix(b)

    def lower(self, partial):
        return partial

    def result_type(self, types):
        return pa.string()


def test_the_names_are_pinned():
    assert aggregators.names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_card_is_filled_in(name):
    card = aggregators.info(name)
    assert card.name == name
    assert card.several_ranges == (name not in ONE_RANGE)
    assert all((card.amortised, card.worst, card.multi, card.space, card.paper))
    assert card.counted([7]) > 0
    assert (card.multi == "-") == (name in ONE_RANGE)


@pytest.mark.parametrize("aggregate", [SUM, MAX, VALUE_RANGE], ids=lambda one: one.name)
@pytest.mark.parametrize("ranges", [(4,), (4, 2)])
@pytest.mark.parametrize("name", NAMES)
def test_legal_says_what_create_takes(name, aggregate, ranges):
    if name in aggregators.legal(aggregate, len(ranges)):
        assert aggregators.create(name, aggregate, ranges).ranges == ranges
    else:
        with pytest.raises(AggregateError, match=f"{name} needs"):
            aggregators.create(name, aggregate, ranges)


@pytest.mark.parametrize(
    ("name", "aggregate", "ranges", "message"),
    [
        ("panes_inv", MAX, [3], "panes_inv needs an inverse, which max does not have"),
        ("slickdeque_noninv", SUM, [3], "needs a selective aggregate, which sum is not"),
        ("slickdeque_inv", Undoable(), [3], "needs a commutative aggregate, which undoable is not"),
        ("daba", SUM, [3, 5], "daba needs a single range, not 2"),
    ],
)
def test_an_illegal_pairing_names_what_is_missing_and_what_would_do(
    name, aggregate, ranges, message
):
    with pytest.raises(AggregateError, match=message) as caught:
        aggregators.create(name, aggregate, ranges)
    hint = caught.value.hint
    assert hint.startswith("use one of panes")
    assert all(
        aggregators.create(fitting, aggregate, ranges)
        for fitting in hint.removeprefix("use one of ").split(", ")
    )


def test_equal_ranges_are_one_range():
    assert aggregators.create("daba", SUM, [3, 3]).run([1, 2, 4, 8]).tolist() == [
        [1, 1], [3, 3], [7, 7], [14, 14],
    ]  # fmt: skip


def test_an_unknown_technique_gets_a_suggestion():
    with pytest.raises(AggregateError, match="did you mean flatfit"):
        aggregators.create("flatfitt", SUM, [3])


@pytest.mark.parametrize("bad", [0, -1, 2.5, True])
def test_ranges_are_whole_numbers_from_one(bad):
    with pytest.raises(WindowError, match="ranges are whole numbers"):
        aggregators.create("panes", SUM, [bad])


def test_an_aggregator_is_slid_or_driven_by_position():
    slid = aggregators.create("panes", SUM, [2])
    slid.insert(SUM.algebra.lift(1))
    with pytest.raises(AggregateError, match="slid by one"):
        slid.insert(SUM.algebra.lift(1), 7)
    driven = aggregators.create("panes", SUM, [2])
    driven.insert(SUM.algebra.lift(1), 7)
    with pytest.raises(AggregateError, match="driven by position"):
        driven.run([1])
    with pytest.raises(AggregateError, match="no range to answer"):
        aggregators.create("panes", SUM).run([1])


def test_importing_brings_no_compiler():
    code = "import sys, muntin.aggregators; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
