"""What callers hand in: read as it is meant, or refused with a reason."""

import math
import re
from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from aggregators.concat import Concat
from muntin.aggregates import Aggregate, resolve
from muntin.aggregators import create, info, legal
from muntin.errors import AggregateError, DataError, WindowError

SUM, COUNTED = resolve("sum", [pa.float64()]), resolve("sum", [pa.int64()])
LEAST = -(2**63)


@pytest.mark.parametrize(
    "values",
    [
        [1, 2.0],
        (1.0, 2.0),
        iter([1.0, 2.0]),
        range(1, 3),
        np.array([1, 2], np.int16),
        np.array([1.0, 2.0], ">f8"),
        np.array([1.0, 0.0, 2.0])[::2],
        np.array([Decimal(1), Decimal(2)], object),
        pa.array([1, 2]),
        pa.chunked_array([[1.0], [2.0]]),
        pl.Series([1.0, 2.0]),
    ],
    ids=lambda values: type(values).__name__,
)
def test_numbers_are_taken_from_any_sequence(values):
    assert create("panes", SUM, [2]).run(values).tolist() == [[1.0], [3.0]]


@pytest.mark.parametrize("empty", [[], np.array([]), pa.array([], pa.float64()), iter(())])
def test_no_values_give_no_answers(empty):
    aggregator = create("slickdeque_inv", SUM, [2, 3])
    assert aggregator.run(empty).shape == (0, 2)
    assert aggregator.run([0.5]).tolist() == [[0.5, 0.5]]


def test_none_and_masked_values_are_null_and_nan_is_not():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    assert create("panes", SUM, [2]).run(masked).tolist() == [[1.0], [1.0]]
    answers = create("panes", SUM, [1]).run([None, math.nan]).tolist()
    assert answers[0] == [None]
    assert math.isnan(answers[1][0])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.5], "truncated"),
        ([math.nan], "not int64"),
        ([2**63], "not int64"),
        (["1"], "they are string"),
        ([True], "they are bool"),
        (np.ones((2, 2)), "one-dimensional"),
        (np.float64(1), "one-dimensional"),
        (None, "where values go"),
        ("12", "where values go"),
        ({1: 2}, "where values go"),
    ],
)
def test_what_is_not_of_the_type_is_refused_and_changes_nothing(values, message):
    aggregator = create("panes", COUNTED, [2])
    aggregator.run([1])
    with pytest.raises(DataError, match=message):
        aggregator.run(values)
    assert aggregator.run([1]).tolist() == [[2]]


def test_an_iterator_that_kernels_refuse_is_not_used_up():
    largest = create("slickdeque_noninv", resolve("max", [pa.int64()]), [2])
    assert largest.run(iter([LEAST, 3, LEAST])).tolist() == [[LEAST], [3], [3]]


def test_a_value_that_was_not_lifted_is_refused_before_it_does_harm():
    slid, driven = create("slickdeque_inv", SUM, [2]), create("slickdeque_inv", SUM)
    for insert in (slid.insert_partial, lambda partial: driven.insert_partial(partial, 3)):
        insert(SUM.algebra.lift(1.0))
        with pytest.raises(DataError, match="lift values first"):
            insert(3.0)
    assert slid.insert(SUM.algebra.lift(2.0)) == (3.0,)
    assert driven.query(since=0) == 1.0


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("sum", [5.0, 5.0, 7.0]),
        ("max", [5, 5, 5]),
        ("avg", [5.0, 5.0, 3.5]),
        ("count", [1, 1, 2]),
        ("stddev_pop", [0.0, 0.0, 1.5]),
        ("product", [5.0, 5.0, 10.0]),
        ("value_range", [0.0, 0.0, 3.0]),
    ],
)
def test_values_go_in_as_they_are_by_the_name_of_an_aggregate(name, answers):
    slid, driven = create("daba", name, ranges=[3]), create("two_stacks_lite", name)
    for i, (value, answer) in enumerate(zip([5, None, 2], answers, strict=True)):
        assert slid.insert(value) == (answer,)
        driven.insert(value, i)
        assert driven.query(since=0) == answer


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("first", 5, r"insert\(\(value, time\)\)"),
        ("last", 5, r"insert\(\(value, time\)\)"),
        ("max_by", 5, r"insert\(\(x, y\)\)"),
        ("corr", 5, r"insert\(\(x, y\)\)"),
        ("avg", (1, 2), "give a number"),
        ("sum", "five", "give a number"),
    ],
)
def test_a_value_of_another_shape_is_refused_with_the_shape_that_would_do(name, value, hint):
    aggregator = create("panes", name, ranges=[3])
    with pytest.raises(DataError, match=f"is not what {name} takes") as caught:
        aggregator.insert(value)
    assert re.search(hint, caught.value.hint)


def test_names_may_say_types():
    assert create("panes", "max(string)", [2]).insert("muntin") == ("muntin",)
    assert create("panes", "count()", [2]).insert(()) == (1,)
    assert create("panes", "bool_and", [2]).insert(True) == (True,)
    assert create("panes", "max_by", [2]).insert((1.0, 2.0)) == (1.0,)
    for said, message in (("maxx", "no aggregate"), ("max(text)", "does not know")):
        with pytest.raises(AggregateError, match=message) as caught:
            create("panes", said, [2])
        assert caught.value.hint


class Longest(Aggregate):
    """Partials that look like values of another kind."""

    name = "longest"
    identity = 0

    def lift(self, value):
        return len(value)

    def combine(self, a, b):
        return max(a, b)

    def lower(self, partial):
        return partial

    def result_type(self, types):
        return pa.int64()


def test_values_and_partials_are_told_apart_by_the_call():
    longest = create("two_stacks_lite", Longest(), [2])
    assert longest.insert("sash") == (4,)
    assert longest.insert_partial(6) == (6,)
    assert longest.insert(None) == (6,)
    assert longest.insert("a") == (1,)


@pytest.mark.parametrize("position", ["x", 1.5, None, True, 2**70])
def test_positions_are_whole_numbers(position):
    aggregator = create("panes", SUM)
    with pytest.raises(DataError, match="not a position"):
        aggregator.evict(position)
    if position is not None:
        with pytest.raises(DataError, match="not a position"):
            aggregator.insert(SUM.algebra.lift(1.0), position)
    aggregator.insert(SUM.algebra.lift(1.0), np.int64(4))
    assert aggregator.query(since=4) == 1.0


def test_ranges_may_be_numpy_integers_and_must_be_listed():
    assert create("panes", SUM, np.array([3, 2])).ranges == (3, 2)
    with pytest.raises(WindowError, match=r"ranges=\[5\]"):
        create("panes_inv", SUM, 5)
    with pytest.raises(WindowError, match="from 1 to"):
        create("panes_inv", SUM, [2**70])


def test_an_aggregate_is_named_or_resolved():
    assert legal("sum") == legal(SUM)
    with pytest.raises(AggregateError, match="not an aggregate"):
        legal(7)


@pytest.mark.parametrize("name", legal(Concat()))
def test_order_is_kept_where_it_matters(name):
    text, ranges = "abcdefgh", [5, 2] if info(name).several_ranges else [5]
    answers = create(name, Concat(), ranges).run(list(text)).tolist()
    ends = range(1, len(text) + 1)
    assert answers == [[text[max(0, end - size) : end] for size in ranges] for end in ends]


def test_a_window_may_be_larger_than_memory_where_few_partials_are_held():
    largest = create("slickdeque_noninv", resolve("max", [pa.int64()]), [2**62])
    assert largest.run([3, 1, 2]).tolist() == [[3], [3], [3]]
