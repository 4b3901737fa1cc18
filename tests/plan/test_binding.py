"""A binding shares what queries have in common, and changes nothing about any of them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.errors import MuntinError, QueryError
from muntin.plan.timeline import Timeline
from muntin.planner.steps.bind import Binding, bind_query
from muntin.queries import Query, queries

STREAM = pa.schema(
    {
        "ts": pa.timestamp("us", "UTC"),
        "at": pa.timestamp("us", "UTC"),
        "symbol": pa.string(),
        "price": pa.float64(),
        "vol": pa.int64(),
    }
)
TABLES = {"close": pa.schema({"symbol": pa.string(), "cp": pa.float64()})}
TIMELINE = Timeline.of(STREAM, "ts")
WINDOW = "[RANGE '10 minutes' SLIDE '5 minutes']"
JOINED = f"FROM s {WINDOW} JOIN close c ON s.symbol = c.symbol"
SOUND = (
    f"SELECT sum(price * vol) AS v FROM s {WINDOW}",
    f"SELECT sum(price * vol) AS v FROM s {WINDOW} WHERE vol > 5",
    f"SELECT sum(price * vol) AS w FROM s {WINDOW} WHERE vol > 5 AND price * vol < 7",
    f"SELECT sum(PRICE * `vol`) AS v FROM s {WINDOW} WHERE 7 < price * vol",
    "SELECT sum(price * vol) AS v FROM s [RANGE '1 hour' SLIDE '1 hour' WATTR at]",
    f"SELECT symbol, sum(vol) AS v FROM s {WINDOW} GROUP BY symbol HAVING sum(vol) > 5",
    f"SELECT symbol, sum(vol) AS v FROM s {WINDOW} GROUP BY symbol HAVING sum(vol) > 6",
    f"SELECT sum(vol) FILTER (WHERE price > 1) AS v FROM s {WINDOW}",
    f"SELECT sum(vol) FILTER (WHERE price > 2) AS v FROM s {WINDOW}",
    f"SELECT max(price - cp) AS v {JOINED} WHERE cp > 1",
    f"SELECT max(price - c.cp) AS v {JOINED} WHERE c.cp > 2",
    f"SELECT max(price - c.cp) AS v {JOINED.replace('JOIN', 'LEFT JOIN')} WHERE c.cp > 2",
    f"SELECT c.symbol, count(*) AS n {JOINED} GROUP BY c.symbol",
    f"SELECT s.symbol, count(*) AS n {JOINED} GROUP BY s.symbol",
)
UNSOUND = (
    f"SELECT sum(price * vol) AS v FROM s {WINDOW} WHERE vo > 5",
    f"SELECT sum(price * vol) AS v FROM s {WINDOW}    WHERE vo > 5",
    f"SELECT sum(price * vo) AS v FROM s {WINDOW} WHERE vol > 5",
    f"SELECT sum(symbol) AS v FROM s {WINDOW} WHERE vol > 5",
    f"SELECT sum(price * vol) AS v FROM s {WINDOW} WHERE vol",
    "SELECT sum(price * vol) AS v FROM s [RANGE 10 SLIDE 5] WHERE vo > 5",
    f"SELECT max(price - cp) AS v {JOINED} WHERE symbol = 'a' AND nothing > 1",
    f"SELECT max(price - nothing) AS v {JOINED.replace('close', 'closed')} WHERE cp > 1",
)


def read(texts: tuple[str, ...]) -> tuple[Query, ...]:
    return queries("\n;".join(texts))


@pytest.mark.parametrize("turn", [1, -1])
def test_queries_are_bound_as_each_is_alone(turn: int) -> None:
    binding = Binding(STREAM, TIMELINE, TABLES)
    for query in read(SOUND)[::turn] * 2:
        bound = binding.bind(query)
        assert bound == bind_query(query, STREAM, TIMELINE, TABLES)
        assert bound.query is query


def test_what_queries_have_in_common_is_one() -> None:
    first, second, third, *_ = read(SOUND)
    binding = Binding(STREAM, TIMELINE)
    assert binding.bind(first).calls is binding.bind(second).calls
    assert binding.bind(first).relation is binding.bind(third).relation
    assert binding.bind(second).predicate is binding.bind(second).predicate


def said(bind: object) -> list[object]:
    with pytest.raises(MuntinError) as raised:
        bind()  # type: ignore[operator]
    error = raised.value
    return error.problems if isinstance(error, QueryError) else [error.message, error.hint]


def test_problems_point_into_the_text_of_each_query() -> None:
    binding = Binding(STREAM, TIMELINE, TABLES)
    for query in (*read(SOUND), *read(SOUND)):
        binding.bind(query)
    places = []
    for query in read(UNSOUND):
        alone = said(lambda query=query: bind_query(query, STREAM, TIMELINE, TABLES))
        assert said(lambda query=query: binding.bind(query)) == alone
        places.append(repr(alone))
    assert len(set(places)) == len(UNSOUND)
