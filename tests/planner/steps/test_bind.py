"""Bound conditions that outlive a plan: each means what its own schema and zone say."""

import pyarrow as pa
import pytest

import muntin
from muntin.errors import QueryError
from muntin.expressions.zones import UTC
from muntin.planner import build_plan
from muntin.planner.steps import bind
from muntin.predicates import analysis
from muntin.queries import queries

SCHEMA = pa.schema({"ts": pa.int64(), "v": pa.int64(), "w": pa.float64()})
CONDITIONS = ("v > 1", "v > 1 AND w < 2.5", "v = 3 OR v = 4", "NOT v > 1", "w IS NULL", "v / 2 > 1")


def _text(*conditions: str) -> str:
    return ";".join(
        f"CREATE QUERY q{n} AS SELECT count(*) AS n FROM s [RANGE 10 SLIDE 10] WHERE {condition}"
        for n, condition in enumerate(conditions)
    )


def _forget() -> None:
    bind._conditions.cache_clear()
    analysis._known.clear()


def _shown(text: str) -> tuple[object, ...]:
    plan = build_plan(queries(text), SCHEMA, "ts")
    selections = [node.selection for node in plan.partials]
    return plan.explain("json"), selections, [final.predicate for final in plan.finals]


@pytest.mark.parametrize(
    ("kind", "values", "counted"),
    [
        (pa.int64(), [2, 3], 1),
        (pa.float64(), [2.4, 2.6], 1),
        (pa.decimal128(3, 1), [2, 3], 1),
        (pa.int8(), [3, 4], 2),
    ],
)
def test_one_text_over_columns_of_other_types(
    kind: pa.DataType, values: list[object], counted: int
) -> None:
    rows = pa.table({"ts": [1, 2], "v": pa.array(values, kind)})
    answer = muntin.aggregate(rows, _text("v > 2.5"), time="ts")
    assert answer["q0"]["n"].to_pylist() == [counted]


def test_a_text_that_is_known_is_refused_over_a_type_that_does_not_fit() -> None:
    build_plan(queries(_text("v > 2.5")), SCHEMA, "ts")
    other = pa.schema({"ts": pa.int64(), "v": pa.string(), "w": pa.float64()})
    with pytest.raises(QueryError, match="do not mix"):
        build_plan(queries(_text("v > 2.5")), other, "ts")


def test_one_text_in_other_zones() -> None:
    rows = pa.table({"ts": pa.array([0, 3_600_000_000], pa.timestamp("us", "UTC"))})
    text = "SELECT count(*) AS n FROM s [RANGE '1 day' SLIDE '1 day'] WHERE hour(ts) = 1"
    for zone, counted in (("UTC", [1]), ("+01:00", [1]), ("+05:00", [])):
        answer = muntin.aggregate(rows, text, time="ts", timezone=zone)
        assert answer["q1"]["n"].to_pylist() == counted


def test_conditions_that_are_known_make_the_same_plan() -> None:
    _forget()
    first = _shown(_text(*CONDITIONS))
    assert _shown(_text(*CONDITIONS)) == first
    # Some are known, in another order than they were bound in.
    _forget()
    _shown(_text(*CONDITIONS[4:1:-1]))
    assert _shown(_text(*CONDITIONS)) == first


def test_more_conditions_than_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    _forget()
    first = _shown(_text(*CONDITIONS))
    _forget()
    monkeypatch.setattr(bind, "_MOST_CONDITIONS", 2)
    monkeypatch.setattr(analysis, "_MOST_KNOWN", 2)
    for _ in range(2):
        assert _shown(_text(*CONDITIONS)) == first
    assert len(bind._conditions(SCHEMA, UTC)) <= 2
    assert len(analysis._known) <= 2


def test_a_condition_that_is_refused_is_refused_again() -> None:
    for _ in range(2):
        with pytest.raises(QueryError, match="no column nope"):
            build_plan(queries(_text("v > 1", "nope > 1")), SCHEMA, "ts")


def test_all_that_is_wrong_with_a_query_is_said_at_once() -> None:
    text = (
        "SELECT nope % 2 AS g, top_k(v, 0) AS a, top_k(x, 'b') AS b, top_k(v, 3) AS c,"
        " max(z) FILTER (WHERE y > 1) AS d FROM s [RANGE 10 SLIDE 10] WHERE u > 1 GROUP BY g"
    )
    with pytest.raises(QueryError) as caught:
        build_plan(queries(text), SCHEMA, "ts")
    assert [problem.message for problem in caught.value.problems] == [
        "no column nope",
        "top_k takes a whole number from 1 to 10,000, not 0",
        "no column x",
        "no column z",
        "no column y",
        "no column u",
    ]
