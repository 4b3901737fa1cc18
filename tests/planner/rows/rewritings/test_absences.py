"""Absences above and below joins: which plan is chosen, and what stays as it was written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin.plan.operators import Difference, Distinct, Exists, Join, RowFinal, RowPlan, Select
from muntin.planner.rows import StreamRate, is_undecided, row_plan
from muntin.planner.rows.rewritings.absences import alternatives, place_absences
from muntin.planner.rows.rewritings.costs import Costs
from muntin.queries import RowQuery, all_queries
from muntin.testing import row_oracle as oracle
from operators.random_plans import STREAMS, TIME, leaf, renamed, run, table

JOINED = (
    "SELECT a.v, b.v AS w FROM a [RANGE {0}] JOIN b [RANGE {0}] ON a.k = b.k "
    "WHERE NOT EXISTS (SELECT 1 FROM c [RANGE {1}] WHERE c.k = a.k)"
)


def rates(keys: int, rows: int = 2000) -> dict[str, StreamRate]:
    chance = np.random.default_rng(1)
    found = {}
    for name in "abc":
        columns = [
            pa.array(np.sort(chance.integers(0, rows, rows))),
            pa.array(chance.integers(0, keys, rows).astype(float)),
            pa.array(chance.choice(["x", "y"], rows)),
            pa.array(chance.integers(0, 9, rows)),
        ]
        known = StreamRate.of(pa.table(columns, schema=STREAMS["a"].schema), TIME)
        assert known is not None
        found[name] = known
    return found


def plan(*texts: str, keys: int | None = None, previous: RowPlan | None = None) -> RowPlan:
    named = [f"CREATE QUERY q{number} AS {text}" for number, text in enumerate(texts)]
    queries = [each for each in all_queries(named) if isinstance(each, RowQuery)]
    known = None if keys is None else rates(keys)
    return row_plan(queries, STREAMS, rates=known, previous=previous)


def below(final: RowFinal) -> bool:
    """Whether an absence stands below the join."""
    assert isinstance(final.root, Select)
    return isinstance(final.root.input, Join)


def test_without_rates_the_order_is_as_written() -> None:
    made = plan(JOINED.format(300, 900))
    assert is_undecided(made)
    assert not below(made.finals[0])
    assert "place_absences: as written: no rate of a is known yet" in made.explain()


def test_absences_that_leave_little_go_below_the_join() -> None:
    # Nine in ten rows of a have a partner in c, and would make pairs for nothing.
    made = plan(JOINED.format(300, 900), keys=300)
    assert below(made.finals[0])
    (told,) = made.finals[0].rewritings
    assert told.applied
    assert told.cost is not None
    assert told.instead is not None
    assert told.cost < told.instead
    assert "NOT EXISTS (c) below the join, not NOT EXISTS (c) above the join; " in made.explain()


def test_absences_stay_above_joins_of_few_pairs() -> None:
    made = plan(JOINED.format(30, 900), keys=2000)
    assert not below(made.finals[0])
    assert not made.finals[0].rewritings[0].applied
    assert not is_undecided(made)


def test_an_absence_below_is_pulled_up_where_joins_give_few_pairs() -> None:
    final = plan(JOINED.format(30, 900)).finals[0]
    assert isinstance(final.root, Select)
    (low,) = [each for each in alternatives(final.root.input) if isinstance(each, Join)]
    root, told = place_absences(low, Costs(rates(2000)))
    assert isinstance(root, Exists)
    assert told[0].applied


def test_joins_that_share_their_rows_with_others_keep_them() -> None:
    # Alone it would go below; beside joins of the same streams and key the rows are there anyway.
    texts = [JOINED.format(150, 300), JOINED.format(150, 300).split(" WHERE ")[0]]
    alone, beside = plan(texts[0], keys=300), plan(*texts, keys=300)
    costs = [each.finals[0].rewritings[0] for each in (alone, beside)]
    written = [each.instead if each.applied else each.cost for each in costs]
    assert written[1] < written[0]  # type: ignore[operator]


def test_queries_that_run_stay_as_they_are() -> None:
    text = JOINED.format(300, 900)
    before = plan(text)
    after = plan(text, text, keys=300, previous=before)
    assert after.finals[0] == before.finals[0]
    # What runs already is shared, too.
    assert after.finals[1].root == before.finals[0].root


def test_absences_that_read_both_streams_or_may_fail_stay_above() -> None:
    text = JOINED.format(300, 900) + " AND EXISTS (SELECT 1 FROM c [RANGE 9] WHERE c.v < a.v + b.v)"
    final = plan(text, keys=300).finals[0]
    assert isinstance(final.root, Select)
    top = final.root.input
    assert isinstance(top, Exists)
    assert top.residual is not None
    # The other one is free to go.
    assert isinstance(top.left, Join)
    assert isinstance(top.left.inputs[0], Exists)


@pytest.mark.parametrize("lengths", [(900, 3), (30, 900)])
def test_distinct_goes_below_absences_where_values_are_few(lengths: tuple[int, int]) -> None:
    text = (
        f"SELECT DISTINCT a.v FROM a [RANGE {lengths[0]}] WHERE NOT EXISTS "
        f"(SELECT 1 FROM c [RANGE {lengths[1]}] WHERE c.v = a.v)"
    )
    final = plan(text, keys=300).finals[0]
    (told,) = [each for each in final.rewritings if each.rule == "push_distinct_down"]
    assert isinstance(final.root, Exists) == told.applied == (lengths[0] == 900)
    if told.applied:
        assert isinstance(final.root.left, Distinct)  # type: ignore[union-attr]
        assert final.root.left.label == "WK"  # type: ignore[union-attr]


def test_bag_differences_are_never_moved() -> None:
    # Two rows of a value in a, three in b, one in c.
    a, b, c = (leaf(name, 10) for name in "abc")
    pairs = Join((renamed(a, ["k", "s", "v"]), renamed(b, ["k1", "s1", "v1"])), ((0,), (0,)))
    above = Difference(renamed(pairs, ["k", "s", "v"], ["k", "s", "v"]), c, "all")
    low = Join((Difference(a, c, "all"), renamed(b, ["k1", "s1", "v1"])), ((0,), (0,)))
    roots = {"above": above, "below": low}
    rows = {
        name: table([(0, 1.0, "x", 0)] * count)
        for name, count in zip("abc", (2, 3, 1), strict=True)
    }
    finals = tuple(RowFinal(name, root, TIME, output="final") for name, root in roots.items())
    made = RowPlan(STREAMS, finals)
    counts = {name: each.num_rows for name, each in run(made, iter([(rows, {})])).items()}
    assert counts == {"above": 5, "below": 3}
    for root in roots.values():
        assert not list(alternatives(root))
        assert place_absences(root, Costs(rates(300))) == (root, [])
        assert sum(oracle.answers(made, root, rows)[0].rows.values()) in (3, 5)
    # The anti-join is the same rows above and below.
    absent = replace(pairs, inputs=(Exists(pairs.inputs[0], c, ((0,), (0,)), negated=True),
                                    pairs.inputs[1]))  # fmt: skip
    assert len(list(alternatives(absent))) == 2


def test_whole_frames_are_looked_at_where_there_is_something_to_weigh() -> None:
    chance = np.random.default_rng(2)
    frames = {
        name: pa.table(
            {
                "ts": np.sort(chance.integers(0, 3000, 3000)),
                "k": chance.integers(0, 300, 3000),
                "v": chance.integers(0, 9, 3000),
            }
        )
        for name in "abc"
    }
    results = muntin.aggregate(frames, JOINED.format(300, 900), time="ts")
    assert results.row_plan is not None
    final = results.row_plan.finals[0]
    assert below(final)
    written = replace(final, root=final.written, written=None, rewritings=(), name="w")
    expected = muntin.operators.RowEngine(RowPlan(results.row_plan.streams, (written,))).close(
        frames
    )
    columns = [(name, "ascending") for name in results["q1"].column_names]
    assert results["q1"].sort_by(columns) == expected["w"].sort_by(columns)


def test_a_running_stream_tells_how_fast_rows_come() -> None:
    chance = np.random.default_rng(2)
    schema = pa.schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()})
    stream = muntin.stream(
        "CREATE QUERY one AS SELECT k FROM a [RANGE 5]", dict.fromkeys("abc", schema), time="ts"
    )
    for number in range(2):
        for name in "abc":
            times = np.sort(chance.integers(3000 * number, 3000 * (number + 1), 3000))
            keys, values = chance.integers(0, 300, 3000), chance.integers(0, 9, 3000)
            stream.feed(pa.table([times, keys, values], schema=schema), name)
    stream.add(f"CREATE QUERY two AS {JOINED.format(300, 900)}")
    assert below(stream.row_plan().finals[1])
    again = muntin.stream(
        stream.queries(), dict.fromkeys("abc", schema), time="ts", snapshot=stream.snapshot()
    )
    again.add("CREATE QUERY three AS SELECT v FROM a [RANGE 5]")
    assert again.row_plan().finals[:2] == stream.row_plan().finals
