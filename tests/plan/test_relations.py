"""Relations: tables found, keys bound, columns resolved."""

import pickle

import pyarrow as pa
import pytest

from muntin.errors import QueryError
from muntin.plan.relations import Relation, relate
from muntin.plan.timeline import Timeline
from muntin.planner.steps.bind import bind_query
from muntin.queries import Query, canonical_text, queries

STREAM = pa.schema(
    {
        "ts": pa.timestamp("us"),
        "symbol": pa.string(),
        "price": pa.float64(),
        "vol": pa.int32(),
        "tag": pa.string(),
    }
)
TABLES = {
    "Close": pa.schema(
        [pa.field("Symbol", pa.string(), nullable=False), ("cp", pa.float64()), ("tag", pa.int64())]
    ),
    "index": pa.schema({"symbol": pa.large_string(), "r3000": pa.bool_(), "lot": pa.int64()}),
    "days": pa.schema({"day": pa.date32(), "at": pa.timestamp("ns", "Asia/Tokyo")}),
}
S = "FROM trades t [RANGE '10 minutes' SLIDE '5 minutes']"


def one(text: str) -> Query:
    (query,) = queries(text)
    return query


def related(text: str) -> tuple[Relation, Query]:
    return relate(one(text), STREAM, TABLES)


def refused(text: str) -> list[tuple[int, str, str | None]]:
    with pytest.raises(QueryError) as caught:
        related(text)
    problems = caught.value.problems
    assert all(problem.hint and problem.query == "q1" for problem in problems)
    return [(problem.column, problem.message, problem.hint) for problem in problems]


def test_without_joins_it_is_the_stream() -> None:
    query = one(f"SELECT max(vol) AS m {S}")
    relation, same = relate(query, STREAM, TABLES)
    assert same is query
    assert relation == Relation((), STREAM)


def test_the_papers_query() -> None:
    relation, query = related(
        "SELECT sum(T.price * T.vol) FROM Trades T[RANGE '9 min' SLIDE '3 min'], Close C, Index X"
        " WHERE T.Symbol = C.Symbol AND T.Symbol = X.Symbol"
        " AND R3000 AND abs(Price - CP) / C.CP > 0.1"
    )
    assert relation.schema.names == [
        *STREAM.names,
        *["Close.Symbol", "Close.cp", "Close.tag"],
        *["index.symbol", "index.r3000", "index.lot"],
    ]
    assert [join.table for join in relation.joins] == ["Close", "index"]
    assert [[(k.key, c) for k, c in join.keys] for join in relation.joins] == [
        [("symbol", "Symbol")],
        [("symbol", "symbol")],
    ]
    assert query.where is not None
    where = "`index.r3000` AND abs(price - `Close.cp`) / `Close.cp` > 0.1"
    assert canonical_text(query.where) == where
    bound = bind_query(query, STREAM, Timeline.of(STREAM, "ts"), TABLES)
    assert bound.predicate is not None
    assert bound.predicate.columns == {"index.r3000", "price", "Close.cp"}


def test_aliases_make_no_difference() -> None:
    first, one_ = related(f"SELECT max(c.cp) AS m {S} JOIN close c ON t.symbol = c.symbol")
    second, other = related(
        "SELECT max(cp) AS m FROM trades [RANGE '1 day' SLIDE '1 day']"
        " JOIN CLOSE ON close.SYMBOL = `trades`.`Symbol`"
    )
    assert first == second
    assert hash(first) == hash(second)
    assert one_.select == other.select
    assert pickle.loads(pickle.dumps(first)) == first


@pytest.mark.parametrize(
    "join",
    [
        "LEFT JOIN close c ON t.symbol = c.symbol",
        "JOIN close c ON upper(t.symbol) = c.symbol",
        "JOIN index c ON t.symbol = c.symbol",
        "JOIN close c ON t.symbol = c.symbol AND t.vol = c.tag",
    ],
)
def test_other_joins_are_other_relations(join: str) -> None:
    base, _ = related(f"SELECT count(*) AS n {S} JOIN close c ON t.symbol = c.symbol")
    assert base != related(f"SELECT count(*) AS n {S} {join}")[0]


def test_a_table_joined_twice() -> None:
    relation, query = related(
        f"SELECT max(a.cp - b.cp) AS m {S} JOIN close a ON t.symbol = a.symbol"
        " LEFT JOIN close b ON a.tag = b.tag"
    )
    assert [join.prefix for join in relation.joins] == ["Close", "Close#2"]
    assert relation.joins[1].keys[0][0].columns == {"Close.tag"}
    assert canonical_text(query.select[0].node) == "max(`Close.cp` - `Close#2.cp`)"
    nullable = {field.name: field.nullable for field in relation.schema}
    assert (nullable["Close.Symbol"], nullable["Close#2.Symbol"]) == (False, True)


@pytest.mark.parametrize(
    ("on", "kind", "key"),
    [
        ("t.vol = x.lot", pa.int64(), "CAST(vol AS BIGINT)"),
        ("t.price = x.lot", pa.float64(), "price"),
        ("t.vol + 1 = x.lot", pa.int64(), "CAST(vol + 1 AS BIGINT)"),
        ("t.symbol = x.symbol", pa.string(), "symbol"),
        ("t.symbol = x.symbol AND x.lot = '5'", pa.int64(), "'5'"),
    ],
)
def test_keys_have_the_type_in_common(on: str, kind: pa.DataType, key: str) -> None:
    relation, _ = related(f"SELECT count(*) AS n {S} JOIN index x ON {on}")
    bound, _ = relation.joins[0].keys[-1]
    assert (bound.type, bound.key) == (kind, key)


def test_keys_over_dates_and_times() -> None:
    relation, _ = related(
        f"SELECT count(*) AS n {S} JOIN days d ON t.ts = d.day AND CAST(t.ts AS TIMESTAMP) = d.at"
    )
    kinds = [bound.type for bound, _ in relation.joins[0].keys]
    assert kinds == [pa.timestamp("us"), pa.timestamp("us", "UTC")]


def test_columns_of_the_same_name() -> None:
    _, query = related(
        f"SELECT t.tag AS a, c.tag AS b, max(c.symbol) AS m {S}"
        " JOIN close c ON t.symbol = c.symbol GROUP BY t.tag, c.tag HAVING max(c.tag) > b"
    )
    groups = [(group.name, canonical_text(group.node)) for group in query.group_by]
    assert groups == [("a", "tag"), ("b", "`Close.tag`")]
    assert query.having is not None
    assert canonical_text(query.having) == "max(`Close.tag`) > b"


def test_using_counts_once() -> None:
    _, query = related(
        f"SELECT symbol, count(*) AS n {S} JOIN close USING (SYMBOL) JOIN index USING (symbol)"
        " WHERE symbol <> close.symbol GROUP BY symbol"
    )
    assert canonical_text(query.group_by[0].node) == "symbol"
    assert query.where is not None
    assert canonical_text(query.where) == "symbol <> `Close.Symbol`"


def test_a_related_query_reads_back_and_is_related_to_itself() -> None:
    relation, query = related(
        f"SELECT c.cp, max(c.tag + lot) AS m {S} JOIN close c ON t.symbol = c.symbol"
        " LEFT JOIN index x ON c.symbol = x.symbol WHERE c.cp > 1 GROUP BY cp HAVING max(lot) > 1"
    )
    assert relate(query, STREAM, TABLES) == (relation, query)
    assert relate(one(query.sql()), STREAM, TABLES) == (relation, query)


def test_later_errors_still_have_their_place() -> None:
    text = f"SELECT max(1 + c.symbol) AS m {S} JOIN close c ON t.symbol = c.symbol"
    _, query = related(text)
    with pytest.raises(QueryError) as caught:
        bind_query(query, STREAM, Timeline.of(STREAM, "ts"), TABLES)
    assert caught.value.problems[0].column == text.index("1 +") + 1


JOIN = f"{S} JOIN close c ON t.symbol = c.symbol"


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        (
            f"{S} JOIN closee ON t.tag = closee.a",
            "closee",
            "no table closee",
            "did you mean Close?",
        ),
        (f"{JOIN} WHERE c.cpp > 1", "c.cpp", "no column cpp in c", "did you mean cp?"),
        (f"{JOIN} WHERE pric > 1", "pric", "no column pric", "did you mean price?"),
        (f"{JOIN} WHERE tag = 1", "tag", "column tag is ambiguous", "write t.tag or c.tag"),
        (
            f"{S} JOIN close c ON t.symbol = c.tag",
            "t.symbol",
            "Close.tag cannot be compared: STRING and BIGINT do not mix",
            "CAST this side: CAST(... AS BIGINT)",
        ),
        (
            f"{S} JOIN close c ON t.symbl = c.symbol",
            "t.symbl",
            "no column symbl in t",
            "did you mean symbol?",
        ),
        (
            f"{S} JOIN close c ON t.symbol = c.symbl",
            "c.symbl",
            "no column symbl in c",
            "did you mean Symbol?",
        ),
        (f"{S} JOIN close USING (cp)", "cp)", "no column cp in t", "known names: price, symbol,"),
    ],
)
def test_refused(text: str, place: str, message: str, hint: str) -> None:
    text = f"SELECT count(*) AS n {text}"
    ((column, said, advice),) = refused(text)
    assert (column, said) == (text.index(place) + 1, message)
    assert advice is not None
    assert advice.startswith(hint)


def test_all_problems_are_reported_but_none_that_follows_from_another() -> None:
    said = refused(
        f"SELECT max(z.a) AS m, max(nope) AS n {S} JOIN zzz z ON t.nope = z.k"
        " JOIN close c ON z.k = c.symbol WHERE c.nope > z.b"
    )
    assert [message for _, message, _ in said] == [
        *["no table zzz", "no column nope in t", "no column nope in c"],
    ]


def test_names_that_collide() -> None:
    query = one(f"SELECT count(*) AS n {S} JOIN close c ON t.symbol = c.symbol")
    stream = STREAM.append(pa.field("CLOSE.CP", pa.int64()))
    with pytest.raises(QueryError, match=r"there is a column named Close.cp already"):
        relate(query, stream, TABLES)
    with pytest.raises(QueryError, match="table close is ambiguous: Close, CLOSE"):
        relate(query, STREAM, {**TABLES, "CLOSE": TABLES["Close"]})
    twice = pa.schema([("symbol", pa.string()), ("SYMBOL", pa.string())])
    with pytest.raises(QueryError, match="column symbol is ambiguous"):
        relate(query, STREAM, {"close": twice})


def test_without_any_table() -> None:
    query = one(f"SELECT count(*) AS n {S} JOIN close c ON t.symbol = c.symbol")
    with pytest.raises(QueryError, match="pass it by name, for example tables="):
        relate(query, STREAM, {})
