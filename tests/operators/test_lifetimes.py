"""Lifetimes worked out by hand, and the thesis's examples where its text goes wrong.

Timelines are drawn with one column per instant: `=` while a row is alive or shown.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from muntin.errors import DataError
from muntin.operators import RowEngine
from muntin.operators.distinct import Pieces
from muntin.operators.rows import Changes, Rows
from muntin.operators.state.calendar import Calendar
from muntin.plan.operators import (
    Difference,
    Distinct,
    Exists,
    Join,
    Node,
    RowFinal,
    RowPlan,
    Select,
    Union,
)
from muntin.testing import row_oracle as oracle
from operators.random_plans import SCHEMA, STREAMS, TIME, bound, leaf, renamed, run, table


def at(*times: int, k: float | None = 1.0) -> list[tuple[Any, ...]]:
    """Rows of one key at some times."""
    return [(time, k, "x", 0) for time in times]


def lives(root: Node, rows: dict[str, list[tuple[Any, ...]]], **how: Any) -> list[tuple[int, Any]]:
    """The lifetimes that a query shows, in order."""
    plan = RowPlan(STREAMS, (RowFinal("q", root, TIME, **how),))
    shown = run(plan, iter([({name: table(each) for name, each in rows.items()}, {})]))["q"]
    return sorted((times for times, _ in oracle.shown(shown, 2)), key=str)


def pair(left: Node, right: Node) -> Join:
    """A join on k."""
    sides = (renamed(left, ["k0", "s0", "v0"]), renamed(right, ["k1", "s1", "v1"]))
    return Join(sides, ((0,), (0,)))


def absent(left: Node, right: Node, **how: Any) -> Exists:
    """Rows without a partner of their k."""
    sides = (renamed(left, ["k0", "s0", "v0"]), renamed(right, ["k1", "s1", "v1"]))
    return Exists(*sides, ((0,), (0,)), negated=True, **how)


def test_labels_of_figure_3_5() -> None:
    one, two, three = (leaf(name, 10) for name in "abc")
    joined = pair(one, two)
    assert (one.label, joined.label) == ("WKS", "WK")
    assert absent(renamed(joined, ["k", "s", "v"], ["k0", "s0", "v0"]), three).label == "STR"
    below = absent(one, three)
    assert (below.label, pair(below, two).label) == ("STR", "STR")


def test_calendar_of_figure_3_6() -> None:
    calendar = Calendar(width=50 // 5)
    ends = np.arange(51, 101)
    calendar.add(ends, ends, ends)
    partitions = [(51, 60), (61, 70), (71, 80), (81, 90), (91, 100)]
    assert calendar.bounds() == partitions
    gone, _, _ = calendar.pop(60 + 1)
    assert sorted(gone.tolist()) == list(range(51, 61))
    calendar.add(np.arange(101, 111), np.arange(10), np.arange(10))
    assert calendar.bounds() == [*partitions[1:], (101, 110)]


def test_a_row_is_dead_at_its_end() -> None:
    # a  =====
    # b       ===   (slip 1: at its end a row joins nothing)
    assert lives(pair(leaf("a", 5), leaf("b", 3)), {"a": at(0), "b": at(5)}) == []
    assert lives(pair(leaf("a", 5), leaf("b", 3)), {"a": at(0), "b": at(4)}) == [(4, 5)]


def test_a_union_of_unequal_windows_is_weak() -> None:
    # Slip 2: what is born later may end earlier.
    union = Union((leaf("a", 10), leaf("b", 2)))
    assert union.label == "WK"
    assert Union((leaf("a", 10), leaf("b", 10))).label == "WKS"
    assert lives(union, {"a": at(0), "b": at(1)}) == [(0, 10), (1, 3)]


def test_a_join_with_one_window_is_weak() -> None:
    # Slip 3: neither of one length nor first in, first out.
    join = pair(leaf("a", 10), leaf("b", None))
    assert join.label == "WK"
    found = lives(join, {"a": at(0, 1), "b": at(2, 3)})
    assert found == [(2, 10), (2, 11), (3, 10), (3, 11)]


def test_distinct_goes_on_to_the_latest_end() -> None:
    # a  ==========        0 to 10
    # a   =============    1 to 14, of the longer window
    # b    ==              2 to 4: the newest, but not the one that lasts (slip 4)
    both = Union((leaf("a", 10), leaf("b", 13), leaf("c", 2)))
    rows = {"a": at(0), "b": at(1), "c": at(2)}
    assert lives(Distinct(both), rows) == [(0, 10), (10, 14)]
    assert lives(Distinct(both), rows, output="final") == [(0, 14)]


@pytest.mark.parametrize("count", [7, 20_000])
def test_distinct_keeps_two_ends_per_value(count: int) -> None:
    # Every value comes three times in each piece.
    pieces = Pieces(Distinct(leaf("a", 10)), 10)
    values = pa.array(np.arange(count) * 1.0), pa.array(["x"] * count), pa.array([0] * count)
    most = 0
    for time in range(0, 90, 4):
        times = np.full(count, time)
        rows = Rows(values, np.arange(count), times, times + 10)
        pieces.step([Changes.births(rows)], [time + 1])
        most = max(most, pieces.kept)
    assert count <= most <= 2 * count


def test_bag_difference_hides_for_a_hidden_row_that_ends() -> None:
    # a  =====          hidden by b, and ends
    # a    =====        shown, until the end of the older hides it at 5 (slip 5)
    # b   ========
    found = lives(
        Difference(leaf("a", 5), leaf("b", 8), "all"), {"a": at(0, 2), "b": at(1)}, output="final"
    )
    assert found == [(0, 1), (2, 5)]
    # The right's end shows only what the left still holds more of.
    found = lives(
        Difference(leaf("a", 9), leaf("b", 2), "all"), {"a": at(0), "b": at(1, 2)}, output="final"
    )
    assert found == [(0, 1), (4, 9)]


def test_negation_above_a_join_counts_pairs() -> None:
    # EXCEPT ALL may not be pulled above a join: 2 - 1 rows of a with 3 of b are 3, not 5 pairs.
    a, b, c = (leaf(name, 9) for name in "abc")
    rows = {"a": at(0, 0), "b": at(0, 0, 0), "c": at(0)}
    assert len(lives(pair(Difference(a, c, "all"), b), rows, output="final")) == 3
    pairs = renamed(pair(a, b), ["k", "s", "v"], ["k0", "s0", "v0"])
    assert len(lives(Difference(pairs, c, "all"), rows, output="final")) == 5


def test_an_output_window_holds_more_than_the_answer() -> None:
    # Slip 6: over weak results, those of the last T are more than those alive.
    join = pair(leaf("a", 10), leaf("b", 10))
    rows = {"a": at(0), "b": at(8)}
    assert lives(join, rows) == [(8, 10)]
    assert lives(join, rows, lasts=10) == [(8, 18)]
    assert lives(join, rows, internal=True) == [(8, None)]


def test_absence_is_maximal_and_comes_back() -> None:
    # a  ==========
    # b   ==   ==
    # q  =  ===  ===
    rows = {"a": at(0), "b": at(1, 6)}
    assert lives(absent(leaf("a", 11), leaf("b", 2)), rows, output="final") == [
        *[(0, 1), (3, 6), (8, 11)]
    ]
    # Partners that take over from each other at one instant leave no gap.
    rows = {"a": at(0), "b": at(1, 3)}
    assert lives(absent(leaf("a", 11), leaf("b", 2)), rows, output="final") == [(0, 1), (5, 11)]


def test_not_in_finds_equal_what_sql_does() -> None:
    # a  =====     NaN, NULL and -0.0 beside a 2.0 that nothing equals
    # b    ==      NaN, or 0.0
    nan = float("nan")
    node = renamed(leaf("a", 5), ["k0", "s0", "v0"])
    node = Exists(node, leaf("b", 2), ((0,), (0,)), negated=True, null_aware=True)
    plan = RowPlan(STREAMS, (RowFinal("q", node, TIME, output="final"),))
    left = [*at(0, k=nan), *at(0, k=None), *at(0, k=-0.0), *at(0, k=2.0)]
    for k, hidden in ((nan, {"nan", "None"}), (0.0, {"-0.0", "None"})):
        tables = {"a": table(left), "b": table(at(2, k=k)), "c": table([])}
        found = run(plan, iter([(tables, {})]))["q"]
        cut = {str(row["k0"]) for row in found.to_pylist() if row["valid_to"] == 2}
        assert cut == hidden
        oracle.check_lifetimes(oracle.answers(plan, node, tables), found)


def test_unmatched_rows_come_whole_once_they_have_ended() -> None:
    node = absent(leaf("a", 5), leaf("b", 2), whole=True)
    plan = RowPlan(STREAMS, (RowFinal("q", node, TIME, output="final"),))
    engine = RowEngine(plan)
    batch = {"a": table([*at(0, 6), *at(1, k=2.0), *at(2, k=None)]), "b": table(at(3))}
    first = engine.feed(batch, {"a": 5, "b": 5})["q"]
    assert [times for times, _ in oracle.shown(first, 2)] == []
    second = engine.feed({}, {"a": 7, "b": 7})["q"]
    assert sorted(times for times, _ in oracle.shown(second, 2)) == [(1, 6), (2, 7)]
    rest = engine.close()["q"]
    # 0 to 5 met its partner from 3 on; 6 to 11 never did.
    assert [times for times, _ in oracle.shown(rest, 2)] == [(6, 11)]


def test_unmatched_rows_are_too_late_for_other_operators() -> None:
    node = absent(leaf("a", 5), leaf("b", 2), whole=True)
    for root, how in ((Distinct(node), {}), (node, {"slide": 2}), (node, {"output": "changes"})):
        with pytest.raises(DataError, match="EMIT UNMATCHED"):
            RowEngine(RowPlan(STREAMS, (RowFinal("q", root, TIME, **how),)))


def test_pairs_come_with_their_second_row_and_absences_with_the_watermark() -> None:
    join = pair(leaf("a", 9), leaf("b", 9))
    node = absent(leaf("a", 9), leaf("b", 9))
    shown = (RowFinal("join", join, TIME), RowFinal("none", node, TIME, output="changes"))
    engine = RowEngine(RowPlan(STREAMS, shown))
    found = engine.feed({"a": table(at(4)), "b": table(at(3))}, {"a": 2, "b": 2})
    assert (found["join"].num_rows, found["none"].num_rows) == (1, 0)
    found = engine.feed({"a": table(at(20, k=5.0))}, {"a": 21, "b": 20})
    assert [(op, time) for (op, time, _, _), _ in oracle.shown(found["none"], 4)] == [("+", 12)]
    found = engine.feed({}, {"b": 21})
    assert [(op, time) for (op, time, _, _), _ in oracle.shown(found["none"], 4)] == [("+", 20)]
    assert engine.statistics.kept["join"] == 1


def test_restore_shows_once_what_no_window_end_saw() -> None:
    # ends      |    5    |    10
    # q      =========                  1 to 8: seen by 5
    # q                  ==             6 to 8: seen by none
    union = Union((leaf("a", 7), leaf("b", 2)))
    rows = {"a": at(1), "b": at(6)}
    assert lives(union, rows, slide=5, range=7) == [(-2, 5)]
    assert lives(union, rows, slide=5, range=7, restore=True) == [(-2, 5), (3, 10)]
    found = lives(union, rows, slide=5, range=7, restore=True, show="istream")
    assert found == [(-2, 5), (3, 10)]


def test_restore_knows_a_value_by_its_whole_life() -> None:
    # ends     0         5         10
    # a         ====
    # a          ====              DISTINCT in pieces: 1 to 5, 5 to 6
    # a                    ==
    # a                     ==     11 to 13, 13 to 14: once at 15
    rows = {"a": at(1, 2), "b": at(11, 12)}
    node = Distinct(Union((leaf("a", 4), leaf("b", 2))))
    assert lives(node, rows) == [(1, 5), (11, 13), (13, 14), (5, 6)]
    for how in ({}, {"show": "istream"}):
        found = lives(node, rows, slide=5, range=4, restore=True, **how)
        assert found == [(1, 5), (11, 15)]


def test_rows_that_never_end_are_shown_until_nothing_changes() -> None:
    # a  ----->
    # b     ====     so that a is shown up to the first window end after 8
    union = Union((leaf("a", None), leaf("b", 4)))
    found = lives(union, {"a": at(1), "b": at(4)}, slide=3, range=4)
    assert sorted(end for _, end in found) == [3, 6, 6, 9]
    hidden = absent(leaf("a", None), leaf("b", 4))
    found = lives(hidden, {"a": at(1), "b": at(4)}, slide=3, range=4)
    assert sorted(end for _, end in found) == [3, 9]


def test_equal_rows_that_follow_each_other_neither_enter_nor_leave() -> None:
    plan = RowPlan(
        STREAMS,
        (
            RowFinal("came", Distinct(leaf("a", 5)), TIME, show="istream"),
            RowFinal("went", leaf("a", 5), TIME, show="dstream"),
        ),
    )
    found = run(plan, iter([({"a": table(at(0, 3, 5))}, {})]))
    assert [time for (time,), _ in oracle.shown(found["came"], 1)] == [0]
    # The row of 0 ends as that of 5 begins.
    assert [time for (time,), _ in oracle.shown(found["went"], 1)] == [8, 10]


def test_joins_agree_with_duckdb() -> None:
    rng = np.random.default_rng(3)
    node = Join(
        tuple(
            renamed(leaf(name, length), [f"k{i}", f"s{i}", f"v{i}"])
            for i, (name, length) in enumerate((("a", 40), ("b", 7), ("c", 90)))
        ),
        ((0, 2),) * 3,
    )
    streams = {}
    connection = duckdb.connect()
    for name, i in (("a", 0), ("b", 1), ("c", 2)):
        times = np.sort(rng.integers(0, 2000, 1500))
        streams[name] = pa.table(
            {
                "ts": times,
                "k": rng.choice([np.nan, 0.0, -0.0, 1.0], 1500),
                "s": pa.array(["x"] * 1500),
                "v": rng.integers(0, 9, 1500),
            },
            schema=SCHEMA,
        )
        inputs = streams[name].rename_columns(["#t", f"k{i}", f"s{i}", f"v{i}"])
        connection.register(f"w{i}", inputs)
    plan = RowPlan(STREAMS, (RowFinal("q", renamed_away(node), TIME),))
    shown = run(plan, iter([(streams, {})]))["q"]
    # A join of three windows in DuckDB needs the inputs as plain windows.
    plain = Join(tuple(each.input for each in node.inputs), node.keys)  # type: ignore[union-attr]
    sql = oracle.join_sql(plain, [f"w{i}" for i in range(3)], node.schema.names)
    expected = connection.sql(sql).to_arrow_table()
    assert shown.num_rows > 100
    assert Counter(oracle.shown(shown, 2)) == Counter(oracle.shown(expected, 2))


def renamed_away(node: Join) -> Select:
    """A join with all its columns."""
    return renamed(node, node.schema.names)


@pytest.mark.parametrize("batches", [1, 7])
def test_a_hundred_thousand_rows_of_one_key(batches: int) -> None:
    count = 100_000
    times = np.arange(count)
    rows = pa.table(
        {"ts": times, "k": np.ones(count), "s": ["x"] * count, "v": times % 2}, schema=SCHEMA
    )
    join = pair(leaf("a", 20), leaf("b", 20))
    # All rows of a are alive at once, and so are those of b while there are some.
    always = absent(leaf("a", 10 * count), leaf("b", 10 * count))
    values = Distinct(leaf("a", 10 * count))
    rest = Difference(leaf("a", 10 * count), leaf("b", 10), "all")
    plan = RowPlan(
        STREAMS,
        (
            RowFinal("join", join, TIME),
            RowFinal("none", always, TIME, output="final"),
            RowFinal("values", values, TIME),
            RowFinal("rest", rest, TIME, output="final"),
        ),
    )
    size = -(-count // batches)
    feeds = [
        (
            {"a": rows.slice(begin, size), "b": rows.slice(begin, size)},
            {"a": begin + size, "b": begin + size},
        )
        for begin in range(0, count, size)
    ]
    found = run(plan, iter(feeds))
    assert found["join"].num_rows == sum(count - abs(gap) for gap in range(-19, 20))
    assert found["none"].num_rows == 0
    assert found["values"].num_rows == 4
    # Each row of b hides one of a for its ten instants: every a but the last few is shown once.
    oracle_rows = oracle.shown(found["rest"], 2)
    assert all(begin < end for (begin, end), _ in oracle_rows)
    alive = sum(end - begin for (begin, end), _ in oracle_rows)
    hidden = sum(min(10, 10 * count + time - time) for time in range(count))
    assert alive == 10 * count * count - hidden


def test_a_query_that_joins_is_cut_to_its_first_whole_instant() -> None:
    node = absent(leaf("a", 6), leaf("b", 3))
    join = pair(leaf("a", 6), leaf("b", 3))
    old = RowFinal("old", join, TIME)
    fresh = (
        RowFinal("rows", node, TIME, output="final"),
        RowFinal("log", node, TIME, output="changes"),
        RowFinal("ends", node, TIME, slide=2, range=6),
        RowFinal("came", node, TIME, show="istream"),
        RowFinal("again", join, TIME),
    )
    before = {"a": at(0, 4), "b": at(1, 4)}
    after = {"a": at(5, 7, 11, 12), "b": at(6, 13)}
    plan = RowPlan(STREAMS, (old, *fresh))
    rows = {name: table([*before[name], *after[name]]) for name in before}
    rows["c"] = table([])
    expected = oracle.answers(plan, node, rows)

    engine = RowEngine(RowPlan(STREAMS, (old,)))
    shown = [engine.feed({name: table(each) for name, each in before.items()}, {"a": 4, "b": 4})]
    engine.adopt(plan)
    engine = RowEngine.restore(plan, engine.snapshot())
    # The latest time was 4, the longest window is 6. The join runs already, but what it has shown
    # by now it does not show again.
    assert [engine.since(final.name) for final in plan.finals] == [None, 10, 10, 10, 10, 10]
    shown.append(engine.feed({name: table(each) for name, each in after.items()}, {"a": 9, "b": 9}))
    shown.append(engine.close())
    found = {
        final.name: pa.concat_tables([each[final.name] for each in shown if final.name in each])
        for final in plan.finals
    }

    cut = [each for each in expected if each.end is None or each.end > 10]
    cut[0] = oracle.Answer(10, cut[0].end, cut[0].rows)
    oracle.check_lifetimes(cut, found["rows"])
    oracle.check_lifetimes(cut, oracle.replayed(found["log"]))
    ends = Counter((end, values) for (_, end), values in oracle.shown(found["ends"], 2))
    assert ends == oracle.windows(fresh[2], expected, range(12, 30, 2))
    came = Counter((time, values) for (time,), values in oracle.shown(found["came"], 1))
    later = oracle.windows(fresh[3], expected, range(10, 30))
    assert came == Counter({key: n for key, n in later.items() if key[0] > 10})
    alone = run(RowPlan(STREAMS, (old,)), iter([(rows, {})]))["old"]
    assert Counter(oracle.shown(found["old"], 2)) == Counter(oracle.shown(alone, 2))


def test_a_snapshot_is_of_its_own_queries() -> None:
    plan = RowPlan(STREAMS, (RowFinal("q", leaf("a", 5), TIME),))
    data = RowEngine(plan).snapshot()
    with pytest.raises(DataError, match="other queries"):
        RowEngine.restore(RowPlan(STREAMS, (RowFinal("p", leaf("a", 5), TIME),)), data)
    with pytest.raises(DataError, match="damaged"):
        RowEngine.restore(plan, data[:-1])
    with pytest.raises(DataError, match="not a snapshot"):
        RowEngine.restore(plan, b"rows")
    with pytest.raises(DataError, match="have format 2, this version reads 3"):
        RowEngine.restore(plan, data[:7] + b"2" + data[8:])


def test_columns_that_do_not_fit_are_refused() -> None:
    sides = (renamed(leaf("a", 5), ["k0", "s0", "v0"]), renamed(leaf("b", 5), ["k1", "s1", "v1"]))
    with pytest.raises(DataError, match="put together"):
        RowEngine(RowPlan(STREAMS, (RowFinal("q", Join(sides, ((0,), (1,))), TIME),)))
    with pytest.raises(DataError, match="no stream 'z'"):
        RowEngine(RowPlan(STREAMS, (RowFinal("q", leaf("a", 5), TIME),))).feed({}, {"z": 1})
    with pytest.raises(DataError, match="cannot be appended"):
        RowEngine(RowPlan(STREAMS, (RowFinal("q", absent(leaf("a", 5), leaf("b", 5)), TIME),)))


def test_residuals_that_fail_are_counted() -> None:
    join = pair(leaf("a", 5), leaf("b", 5))
    join = Join(join.inputs, join.keys, bound("v0 % v1 = 0", join.schema))
    engine = RowEngine(RowPlan(STREAMS, (RowFinal("q", join, TIME),)))
    found = engine.feed({"a": table(at(0)), "b": table(at(1))}, {})
    assert (found["q"].num_rows, engine.statistics.errors["q"]) == (0, 1)
