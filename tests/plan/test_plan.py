"""What queries share, and how the plan shows it."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import muntin
from muntin import inputs
from muntin.errors import QueryError
from muntin.plan import Timeline, render_text
from muntin.planner import Draft, build_plan
from muntin.planner.steps.bind import bind
from muntin.planner.steps.cells import undecided
from muntin.queries import queries

SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("us", "UTC"),
        "symbol": pa.string(),
        "price": pa.float64(),
        "vol": pa.int64(),
        "seq": pa.int64(),
    }
)
GOLDEN = Path(__file__).parent.parent / "golden" / "plan.txt"
SQL = """
CREATE QUERY mean AS SELECT avg(price) FROM t [RANGE '10 min' SLIDE '5 min'] WHERE vol > 100;
CREATE QUERY spread AS
  SELECT stddev(price), sum(price) FROM t [RANGE '1 h' SLIDE '7 min'] WHERE (VOL) > 100;
CREATE QUERY starts AS
  SELECT symbol, first(price) FILTER (WHERE vol > 0) AS f
  FROM t GROUP BY window(ts, '12 minutes', '5 minutes'), symbol HAVING count(*) > 1;
CREATE QUERY counted AS SELECT count(*) AS n FROM t [ROWS 100 SLIDE 10];
CREATE QUERY numbered AS SELECT count(*) AS n FROM t [RANGE 100 SLIDE 30 WATTR seq];
"""


def test_the_plan_is_shown_as_stored() -> None:
    shown = render_text(build_plan(queries(SQL), SCHEMA, "ts"))
    assert shown + "\n" == GOLDEN.read_text()


def test_equal_predicates_and_parts_are_kept_once() -> None:
    plan = build_plan(queries(SQL), SCHEMA, "ts")
    shared = plan.partials[0]
    assert [final.name for final in plan.finals if final.partials == 0] == ["mean", "spread"]
    kinds = [str(accumulator) for accumulator in shared.accumulators]
    assert kinds == ["count(*)", "sum(price)", "count(price)", "sum_squares(price)"]


def test_windows_with_equal_edges_share_them() -> None:
    same = "SELECT count(*) FROM t [RANGE '10 min' SLIDE '5 min'];" * 3
    plan = build_plan(queries(same), SCHEMA, "ts")
    assert plan.slicings[0].classes == ((300_000_000, 0),)


def test_only_needed_columns_are_read() -> None:
    plan = build_plan(queries("SELECT sum(PRICE) FROM t [RANGE '1 h' SLIDE '1 h']"), SCHEMA, "TS")
    assert plan.columns() == ["ts", "price"]


def test_a_plan_travels() -> None:
    plan = build_plan(queries(SQL), SCHEMA, "ts")
    again = pickle.loads(pickle.dumps(plan))
    assert render_text(again) == render_text(plan)
    assert again.expressions() == plan.expressions()


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT sum(symbol) FROM t [RANGE '1 h' SLIDE '1 h']", "sum"),
        ("SELECT count(*) FROM t [RANGE '1 h' SLIDE '1 h'] WHERE vol", "must be a boolean"),
        ("SELECT sum(vol) FILTER (WHERE price) FROM t [RANGE '1 h' SLIDE '1 h']", "boolean"),
        ("SELECT count(*) FROM t [RANGE '1 h' SLIDE '1 h'] HAVING count(*)", "boolean"),
        ("SELECT sum(nope) FROM t [RANGE '1 h' SLIDE '1 h']", "nope"),
        ("SELECT count(*) FROM t [ROWS 5 SLIDE 5 WATTR seq]", "leave out WATTR"),
        ("SELECT count(*) FROM t GROUP BY window(seq, '1 h')", "plain integer"),
        ("SELECT count(*) FROM t GROUP BY window(nope, '1 h')", "no time column 'nope'"),
        ("SELECT count(*) FROM t [RANGE '1 h' SLIDE 1 TUPLE]", "no SLIDE in time"),
        ("SELECT count(*) FROM t [ROWS 5]", r"has no SLIDE, so .*\n.* \[ROWS 100 SLIDE 10\]"),
    ],
)
def test_what_does_not_fit_the_schema_is_refused(sql: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        build_plan(queries(sql), SCHEMA, "ts")


@pytest.mark.parametrize(
    ("having", "message"),
    [
        ("max(vol)", "a condition must be a boolean, HAVING has the type BIGINT"),
        ("max(vol) AND true", "AND wants BOOLEAN, not BIGINT"),
    ],
)
def test_what_is_wrong_with_aggregates_is_shown_where_they_stand(having: str, message: str) -> None:
    text = f"SELECT count(*) FROM t [RANGE '1 h' SLIDE '1 h'] HAVING {having}"
    with pytest.raises(QueryError) as caught:
        build_plan(queries(text), SCHEMA, "ts")
    (problem,) = caught.value.problems
    assert (problem.message, problem.column) == (message, text.index("max(vol)") + 1)


def test_the_plan_shows_the_edges_of_its_own_slicing() -> None:
    asked = queries("SELECT count(*) FROM t [RANGE '18 min' SLIDE '15 min']")
    assert "8 edges/h" in repr(build_plan(asked, SCHEMA, "ts"))
    assert "20 edges/h" in repr(build_plan(asked, SCHEMA, "ts", slicing="panes"))


@pytest.mark.parametrize(
    ("texts", "looks"),
    [
        (["SELECT sum(v) FROM s [RANGE 5 SLIDE 5]"], 0),
        (["SELECT sum(v) FROM s [RANGE 5 SLIDE 5] WHERE v > 3 GROUP BY k"], 0),
        ([f"SELECT sum(v) FROM s [RANGE {n} SLIDE 5] WHERE v > {n}" for n in range(3, 9)], 0),
        ([f"SELECT sum(v) FROM s [RANGE 5 SLIDE 5] {rest}" for rest in ("", "GROUP BY k")], 1),
        ([f"SELECT sum(v) FROM s [RANGE 5 SLIDE 5] WHERE {each} > 3" for each in ("v", "w")], 1),
    ],
)
def test_rows_are_looked_at_only_where_there_is_a_choice(texts: list[str], looks: int) -> None:
    schema = pa.table({"t": [1, 2], "k": [1, 2], "v": [3, 4], "w": [5, 6]}).schema
    draft = bind(Draft(queries(";".join(texts)), schema, Timeline.of(schema, "t")))
    assert len(undecided(draft)) == looks
    assert not undecided(replace(draft, strategy="shards"))


@pytest.mark.parametrize("asks", [True, False])
def test_a_source_is_asked_for_rows_only_where_they_matter(
    asks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    sample = inputs.LocalSource.sample
    monkeypatch.setattr(
        inputs.LocalSource, "sample", lambda source: looks.append(source) or sample(source)
    )
    texts = [f"SELECT sum(v) AS s FROM s [RANGE {n} SLIDE 5] WHERE v > {n}" for n in (5, 10)]
    rows = pa.table({"t": [1, 2], "v": [3, 4]})
    muntin.aggregate(rows, texts[: 1 + asks], "t")
    assert len(looks) == asks
    looks.clear()
    muntin.aggregate(rows, texts, "t", strategy="unshared")
    muntin.aggregate(rows, texts, "t", optimizer="all_share")
    assert not looks
