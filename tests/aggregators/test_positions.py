"""Windows over unequal slices: insert, evict and query by position."""

import pyarrow as pa
import pytest

from muntin.aggregates import resolve
from muntin.aggregators import create, info, names
from muntin.errors import AggregateError, DataError

SUM, MAX = resolve("sum", [pa.int64()]), resolve("max", [pa.int64()])
ONCE = resolve("sum_distinct", [pa.int64()])


def filled(name, count=10, ranges=()):
    """Partials 1, 2, ... at positions 0, 10, 20, ...: slices of ten units."""
    aggregate = {"selective": MAX, "distinct": ONCE}.get(info(name).needs, SUM)
    aggregator = create(name, aggregate, ranges)
    for i in range(count):
        aggregator.insert_partial(aggregate.algebra.lift(i + 1), 10 * i)
    return aggregator


@pytest.mark.parametrize("name", names())
def test_the_number_of_partials_in_a_window_varies(name):
    """Positions  0  10  20  30  40  50  60  70  80  90
    values        1   2   3   4   5   6   7   8   9  10
                      evicted -> |<------- 4 to 10 --->|
    """
    aggregator = filled(name)
    assert aggregator.evict(before=25) == 3
    assert aggregator.evict(before=25) == 0
    assert aggregator.query(since=30) == (10 if info(name).needs == "selective" else 49)
    assert aggregator.evict(before=1000) == 7
    assert aggregator.query(since=30) is None
    aggregator.insert_partial(aggregator.aggregate.lift(5), 1000)
    assert aggregator.query(since=0) == 5


@pytest.mark.parametrize("name", [name for name in names() if info(name).several_ranges])
def test_queries_may_start_anywhere(name):
    aggregator = filled(name, ranges=[4, 2])
    for since in (95, 90, 41, 0, 60, 40, 80, -5):
        window = [i + 1 for i in range(10) if 10 * i >= since]
        expected = max(window, default=None) if info(name).needs == "selective" else sum(window)
        assert aggregator.query(since) == (expected or None)


@pytest.mark.parametrize("name", [name for name in names() if not info(name).several_ranges])
def test_one_range_answers_for_all_it_holds(name):
    aggregator = filled(name)
    with pytest.raises(AggregateError, match=r"evict\(before=20\) first"):
        aggregator.query(since=20)
    aggregator.evict(before=20)
    assert aggregator.query(since=20) == 52


@pytest.mark.parametrize("name", names())
def test_state_grows_with_the_window_only(name):
    aggregator = filled(name, 40)
    held = aggregator.nbytes
    for i in range(40, 2000):
        aggregator.insert(aggregator.aggregate.lift(1), 10 * i)
        aggregator.evict(before=10 * i - 300)
    assert aggregator.nbytes <= 2 * held


def test_positions_do_not_fall():
    aggregator = filled("panes")
    aggregator.insert(SUM.algebra.lift(5), 90)
    assert aggregator.query(since=90) == 15
    with pytest.raises(DataError, match="position 89 comes after 90"):
        aggregator.insert(SUM.algebra.lift(5), 89)


def test_a_running_answer_follows_each_range():
    """Two ranges, asked in turn: about two operations for each and partial."""
    sums = create("slickdeque_inv", SUM, [1, 2])
    for i in range(500):
        sums.insert(SUM.algebra.lift(i), i)
        sums.evict(before=i - 50)
        assert sums.query(since=i - 50) == sum(range(max(0, i - 50), i + 1))
        assert sums.query(since=i - 5) == sum(range(max(0, i - 5), i + 1))
    assert sums.operations <= 4 * 500
