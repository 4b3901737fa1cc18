"""Compiled runs: exact to the bit, whatever came before; to Python partials and back."""

import math

import numpy as np
import pyarrow as pa
import pytest

from muntin.aggregates import resolve
from muntin.aggregators import create, info, legal, names
from muntin.aggregators.operators import Least, Sum, Sums
from muntin.testing import conformance

SUM, MAX = resolve("sum", [pa.float64()]), resolve("max", [pa.float64()])
NARROW = np.random.default_rng(5).normal(size=150)
ADDING = [name for name in names() if info(name).needs in ("any", "invertible")]
OF_NUMBERS = [*ADDING, *(name for name in names() if info(name).needs == "selective")]
# Three that keep partials in different ways stand for all where kernels are wide.
SOME = ("slickdeque_inv", "flatfit", "daba_lite")


def ranges_for(name):
    return [7, 16, 1] if info(name).several_ranges else [7]


def fsums(values, size):
    return [math.fsum(values[max(0, i + 1 - size) : i + 1]) for i in range(len(values))]


@pytest.mark.parametrize(
    ("aggregate", "name"),
    [(aggregate.name, name) for aggregate in (SUM, MAX) for name in legal(aggregate)],
)
@pytest.mark.parametrize("kind", [pa.int64(), pa.float64()], ids=str)
def test_a_run_equals_the_definition(name, aggregate, kind):
    resolved = resolve(aggregate, [kind])
    values = NARROW if kind == pa.float64() else (NARROW * 1e6).astype(np.int64)
    conformance.check_run(name, resolved.algebra, values, ranges_for(name))


@pytest.mark.parametrize("name", ADDING)
def test_all_techniques_round_like_fsum(name):
    values = np.concatenate([[1e16, 1.0, -1e16, 3.0], NARROW, [1e16, 1.0], NARROW])
    answers = create(name, SUM, [7]).run(values)
    assert answers.dtype == np.float64
    assert answers.ravel().tolist() == fsums(values.tolist(), 7)


@pytest.mark.parametrize("aggregate", ["avg", "var_samp", "stddev_pop", "count", "min", "bool_or"])
def test_other_aggregates_are_compiled_too(aggregate):
    kind = pa.bool_() if aggregate == "bool_or" else pa.float64()
    values = NARROW > 1.5 if aggregate == "bool_or" else NARROW + 1e9
    algebra = resolve(aggregate, [kind]).algebra
    name = "slickdeque_noninv" if algebra.selective else "slickdeque_inv"
    conformance.check_run(name, algebra, values, [7, 3])
    aggregator = create(name, algebra, [7, 3])
    aggregator.run(values)
    assert isinstance(aggregator.window.op, Sum | Sums | Least)


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize(
    "values",
    [
        [1.0, math.nan, 2.0, math.inf, 3.0, -math.inf, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
        [1.0, None, None, None, None, 2.0, 3.0],
        [5e-324, 1e-310, -5e-324, 2.5e-308, 1e-300, -0.0, 0.0],
        [0.0, None, -0.0, math.inf, 0.0, 0.0],
        [1e308, 1e308, -1e308, -1e308, 5e-324, 1.0],
        [1.7976931348623157e308, 9.979201547673598e291, -1e308, 1e-20],
        [-1.7976931348623157e308, -9.9792015476735972e291, 1e292, 1.0, 1e280],
    ],
    ids=["special", "null", "denormal", "zero", "wild", "overflowing", "nearly overflowing"],
)
def test_no_input_is_too_wild(name, values):
    ranges = [3, 2] if info(name).several_ranges else [3]
    for aggregate in ("sum", "var_pop"):
        algebra = resolve(aggregate, [pa.float64()]).algebra
        conformance.check_run(name, algebra, pa.array(values * 3), ranges, seed=len(values))


def test_special_values_leave_with_their_row():
    sums = create("panes_inv", SUM, [2])
    answers = sums.run(np.array([math.inf, -math.inf, 1.0, math.nan, 2.0, 3.0])).ravel().tolist()
    assert (answers[0], answers[2], answers[5]) == (math.inf, -math.inf, 5.0)
    assert all(math.isnan(answers[i]) for i in (1, 3, 4))


def test_integers_are_checked_only_in_the_answer():
    big = 2**63 - 1
    sums = create("slickdeque_inv", resolve("sum", [pa.int64()]), [3])
    assert sums.run(np.array([big, -big, big, -big])).ravel().tolist() == [big, 0, big, -big]
    with pytest.raises(OverflowError, match="outside BIGINT"):
        sums.run(np.array([-big, 1, 2]))
    assert sums.run(np.array([3])).tolist() == [[6]]


@pytest.mark.parametrize("name", ["panes", "slickdeque_noninv"])
def test_the_extremes_of_the_type_are_values_too(name):
    for aggregate in ("min", "max"):
        algebra = resolve(aggregate, [pa.int64()]).algebra
        values = [1, 2**63 - 1, None, None, -(2**63), 2**63 - 1, 5, None]
        conformance.check_run(name, algebra, pa.array(values * 2), [2])


@pytest.mark.parametrize(
    "name", ["slickdeque_inv", "flatfit", "bint", "two_stacks", "running_totals"]
)
def test_partials_may_be_inserted_between_runs(name):
    """From plain lanes to Python partials, to lanes with marks, and back."""
    aggregator, rows = create(name, SUM, [5]), []

    def check(answers, added):
        rows.extend(added)
        expected = fsums([math.fsum(row) for row in rows], 5)[-len(added) :]
        assert list(answers) == expected

    check(aggregator.run(NARROW[:9])[:, 0], NARROW[:9, None].tolist())
    check(aggregator.run(NARROW[9:12] * 1e-30)[:, 0], (NARROW[9:12, None] * 1e-30).tolist())
    pair = SUM.algebra.combine(SUM.algebra.lift(0.1), SUM.algebra.lift(1e20))
    check(aggregator.insert(pair), [[0.1, 1e20]])
    check(aggregator.insert(SUM.algebra.identity), [[]])
    check(aggregator.run(NARROW[:4])[:, 0], NARROW[:4, None].tolist())
    check(aggregator.insert(SUM.algebra.lift(0.25)), [[0.25]])


def test_totals_that_have_wrapped_around_are_read_right():
    """From bare integers beyond 64 bits to Python partials, to lanes with marks, and back."""
    most = 2**52 - 1
    large = np.full(5000, most, np.int64)
    total = create("running_totals", "sum(int64)", [3])
    assert total.run(large)[-1] == 3 * most
    assert int(total.state.total[0]) == 5000 * most - 2**64
    again = create("running_totals", "sum(int64)", [3])
    again.restore(total.snapshot())
    for each in (total, again):
        assert each.insert(7) == (2 * most + 7,)
        assert each.run([None, 5]).tolist() == [[most + 7], [12]]
        assert each.run(large)[-1] == 3 * most
        assert each.run([0.0 + 2**40]).tolist() == [[2 * most + 2**40]]
    average = create("running_totals", "avg(int64)", [2])
    average.run(large)
    assert average.insert(1) == ((most + 1) / 2,)


def test_rows_are_known_after_plain_runs():
    average = resolve("avg", [pa.int64()])
    for name in ("flatfat", "slickdeque_inv", "daba", "running_totals"):
        aggregator = create(name, average, [4])
        aggregator.run(np.arange(10))
        assert aggregator.insert(average.algebra.lift(1)) == ((7 + 8 + 9 + 1) / 4,)
        aggregator = create(name, average, [4])
        aggregator.run(np.arange(2))
        assert aggregator.run([None, 8]).ravel().tolist() == [0.5, 3.0]


def test_null_answers_are_none():
    assert create("panes", SUM, [1]).run(pa.array([1.0, None])).tolist() == [[1.0], [None]]
    spread = create("panes_inv", resolve("var_samp", [pa.int64()]), [2])
    assert spread.run(np.array([1, 3])).tolist() == [[None], [2.0]]


def test_python_rows_run_without_kernels():
    latest = create("slickdeque_noninv", resolve("max_by", [pa.string(), pa.int64()]), [2])
    assert latest.run([("a", 3), ("b", 1), ("c", 2)]).ravel().tolist() == ["a", "a", "c"]
    assert latest.window.encoding is None


def test_answers_have_the_type_of_the_aggregate():
    for kind, dtype in ((pa.int16(), np.int16), (pa.float32(), np.float32), (pa.bool_(), bool)):
        values = np.array([1, 0, 1], dtype)
        assert create("slickdeque_noninv", resolve("min", [kind]), [2]).run(values).dtype == dtype
    empty = create("slickdeque_inv", SUM, [2]).run(np.zeros(0))
    assert (empty.shape, empty.dtype) == ((0, 1), np.float64)


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_memory_stays_bounded(name):
    aggregate = MAX if name == "slickdeque_noninv" else SUM
    compiled = create(name, aggregate, [64])
    values = np.random.default_rng(1).normal(size=100_000)
    compiled.run(values)
    held = compiled.nbytes
    for _ in range(10):
        compiled.run(values)
    assert compiled.nbytes == held < 64 * 8 * 2 * 4 + 500
    python = ("max_by", [pa.int64(), pa.int64()]) if aggregate is MAX else ("count", [])
    generic = create(name, resolve(*python), [8])
    generic.window.run_objects([(1, 2)] * 1000)
    held = generic.nbytes
    generic.window.run_objects([(1, 2)] * 19_000)
    assert generic.window.encoding is None
    assert generic.nbytes == held
