"""Queries over rows with lifetimes: what SQL and the builder mean, and how they are written."""

import pytest

from muntin.errors import QueryError
from muntin.queries import (
    Catalog,
    Compound,
    Query,
    RowQuery,
    Selection,
    all_queries,
    parse,
    queries,
    query,
)

PAIR = "FROM orders [RANGE '10 minutes'] AS o JOIN paid [RANGE '1 hour'] AS p ON o.id = p.id"

# What is written, and its canonical text behind CREATE QUERY q1 AS.
SPELLINGS = [
    ("select A.x from s [range 5] a", "SELECT x FROM s [RANGE 5]"),
    ("SELECT * FROM s [NOW]", "SELECT * FROM s [NOW]"),
    ("SELECT window_start, x FROM s [RANGE 5 SLIDE 2]", "SELECT x FROM s [RANGE 5 SLIDE 2]"),
    (
        "SELECT x FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 5)",
        "SELECT x FROM s [RANGE 5 SLIDE 5 WATTR ts]",
    ),
    (
        (
            "SELECT o.id, p.v*2 twice FROM orders [RANGE '600 seconds'] o INNER JOIN paid p"
            " [RANGE '60 minutes'] ON (o.id = p.id)"
        ),
        f"SELECT o.id, p.v * 2 AS twice {PAIR}",
    ),
    (
        "SELECT o.id FROM s [RANGE 5] o, t [RANGE 3] WHERE o.id = t.id",
        "SELECT o.id FROM s [RANGE 5] AS o, t [RANGE 3] WHERE o.id = t.id",
    ),
    (
        "SELECT o.id FROM s [RANGE 5 SLIDE 2] o JOIN t [RANGE 3] USING (id)",
        "SELECT o.id FROM s [RANGE 5 SLIDE 2] AS o JOIN t [RANGE 3 SLIDE 2] USING (id)",
    ),
    (
        "SELECT s.a FROM s [RANGE 5] FULL OUTER JOIN t [RANGE 3] ON s.a = t.a EMIT UNMATCHED",
        "SELECT s.a FROM s [RANGE 5] FULL JOIN t [RANGE 3] ON s.a = t.a EMIT UNMATCHED",
    ),
    (
        "SELECT s.a FROM s [RANGE 5] LEFT ANTI JOIN t [RANGE 3] ON s.a = t.a WHERE s.b > 1",
        (
            "SELECT a FROM s [RANGE 5] WHERE b > 1 AND NOT EXISTS"
            " (SELECT 1 AS `1` FROM t [RANGE 3] WHERE s.a = t.a)"
        ),
    ),
    (
        (
            "SELECT a FROM s [RANGE 5] WHERE NOT (a IN (SELECT DISTINCT b FROM t [RANGE 3]))"
            " AND NOT NOT EXISTS (SELECT * FROM u [RANGE 2] WHERE u.a = s.a) AND (c OR d)"
        ),
        (
            "SELECT a FROM s [RANGE 5] WHERE (c OR d) AND a NOT IN (SELECT b FROM t [RANGE 3])"
            " AND EXISTS (SELECT 1 AS `1` FROM u [RANGE 2] WHERE u.a = s.a)"
        ),
    ),
    (
        (
            "SELECT a FROM s [RANGE 5] UNION SELECT a FROM t [RANGE 5]"
            " INTERSECT SELECT a FROM u [RANGE 5]"
        ),
        (
            "SELECT a FROM s [RANGE 5] UNION (SELECT a FROM t [RANGE 5]"
            " INTERSECT SELECT a FROM u [RANGE 5])"
        ),
    ),
    (
        (
            "(SELECT a FROM s [RANGE 5] UNION ALL SELECT a FROM t [RANGE 5])"
            " INTERSECT SELECT DISTINCT a FROM u [RANGE 5]"
        ),
        (
            "(SELECT a FROM s [RANGE 5] UNION ALL SELECT a FROM t [RANGE 5])"
            " INTERSECT SELECT DISTINCT a FROM u [RANGE 5]"
        ),
    ),
    ("SELECT Istream(a, b AS c) FROM s [RANGE 5]", "Istream(SELECT a, b AS c FROM s [RANGE 5])"),
    ("DSTREAM(SELECT a FROM s [RANGE 5])", "Dstream(SELECT a FROM s [RANGE 5])"),
    ("SELECT Rstream(a) FROM s [RANGE 5 SLIDE 1]", "SELECT a FROM s [RANGE 5 SLIDE 1]"),
    (
        "SELECT Wstream(a)[RANGE '5 minutes'] FROM s [RANGE '1 hour' INTERNAL]",
        "Wstream(SELECT a FROM s [RANGE '1 hour'])[RANGE '5 minutes']",
    ),
    ("SELECT a FROM s [RANGE 5 INTERNAL]", "SELECT a FROM s [RANGE 5 INTERNAL]"),
]


def row_query(sql: str) -> RowQuery:
    (found,) = all_queries(sql)
    assert isinstance(found, RowQuery)
    return found


@pytest.mark.parametrize(("written", "canonical"), SPELLINGS)
def test_canonical_text(written: str, canonical: str) -> None:
    found = row_query(written)
    assert found.sql() == f"CREATE QUERY q1 AS {canonical}"
    assert row_query(found.sql()) == found


def test_options_are_part_of_the_text() -> None:
    text = "CREATE QUERY a WITH (output = 'changes') AS SELECT x FROM s [RANGE 5]"
    assert row_query(text).sql() == text
    text = "CREATE QUERY a WITH (restore = true) AS SELECT x FROM s [RANGE 5 SLIDE 2]"
    assert row_query(text).sql() == text
    plain = row_query("CREATE QUERY a AS SELECT x FROM s [RANGE 5 SLIDE 2] WITH (restore = false)")
    assert not plain.restore


def test_aggregates_stay_aggregates() -> None:
    aggregates = [
        "SELECT count(*) FROM s [RANGE 5]",
        "SELECT a FROM s [RANGE 5 SLIDE 5] GROUP BY a",
        "SELECT max(v) FROM s [RANGE 5 SLIDE 5] JOIN close c ON s.a = c.a",
    ]
    assert all(isinstance(each, Query) for each in all_queries(aggregates))


def test_streams_are_those_of_all_parts() -> None:
    found = row_query(
        "SELECT a FROM s [RANGE 5] WHERE NOT EXISTS (SELECT 1 FROM t [RANGE 5] WHERE t.a = s.a)"
        " EXCEPT SELECT a FROM u [RANGE 5]"
    )
    assert found.streams == ("s", "t", "u")
    assert isinstance(found.body, Compound)
    assert isinstance(found.body.left, Selection)


def test_only_aggregates_are_taken_where_only_they_run() -> None:
    with pytest.raises(QueryError, match="rows with lifetimes cannot be run here"):
        queries("SELECT a FROM s [RANGE 5]")
    with pytest.raises(QueryError, match="rows with lifetimes cannot be run here"):
        Catalog().apply(parse("SELECT a FROM s [RANGE 5]"))


def test_many_selects_are_refused_before_they_are_deep() -> None:
    text = " UNION ALL ".join(["SELECT a FROM s [RANGE 5]"] * 33)
    with pytest.raises(QueryError, match="more than 32 SELECTs"):
        parse(text)
    nested = "SELECT a FROM s [RANGE 5]"
    for _ in range(40):
        nested = f"SELECT a FROM s [RANGE 5] WHERE EXISTS ({nested})"
    with pytest.raises(QueryError, match="more than 32 SELECTs"):
        parse(nested)


def test_builder_means_what_sql_means() -> None:
    orders = query("q1").from_("orders", "o").window("10 minutes")
    joined = orders.select("o.id", twice="p.v * 2").join(
        "paid", "o.id = p.id", window="1 hour", alias="p"
    )
    assert joined.build() == row_query(f"SELECT o.id, p.v * 2 AS twice {PAIR}")
    left = orders.select("o.*").join(
        "paid", "o.id = paid.id", window="1 hour", how="left", unmatched=True
    )
    assert left.build() == row_query(
        "SELECT o.* FROM orders [RANGE '10 minutes'] o LEFT JOIN paid [RANGE '1 hour']"
        " ON o.id = paid.id EMIT UNMATCHED"
    )


def test_builder_has_sets_and_partners() -> None:
    t = query("t").from_("t").window(3)
    s = query("q1").from_("s").window(5).where("b > 1")
    built = s.select("a").not_in("a", t.select("b")).distinct().output("changes").build()
    assert built == row_query(
        "CREATE QUERY q1 WITH (output = 'changes') AS SELECT DISTINCT a FROM s [RANGE 5]"
        " WHERE b > 1 AND a NOT IN (SELECT b FROM t [RANGE 3])"
    )
    sets = s.select("a").union_all(t.select("a")).except_(t.select("b")).istream().build()
    assert sets == row_query(
        "Istream((SELECT a FROM s [RANGE 5] WHERE b > 1 UNION ALL SELECT a FROM t [RANGE 3])"
        " EXCEPT SELECT b FROM t [RANGE 3])"
    )
    assert s.select("*").wstream(4).internal().build() == row_query(
        "SELECT Wstream(*)[RANGE 4] FROM s [RANGE 5] WHERE b > 1"
    )


def test_builder_refuses_subqueries_as_text_and_mixtures() -> None:
    s = query("q1").from_("s").window(5)
    with pytest.raises(QueryError, match="a subquery inside an expression"):
        s.where("a IN (SELECT b FROM t)")
    with pytest.raises(QueryError, match="select is for rows without aggregates"):
        s.agg("count(*)").select("a")
    with pytest.raises(QueryError, match="no join of kind"):
        s.select("a").join("t", "s.a = t.a", window=5, how="cross")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="no window"):
        query("q1").select("a")


@pytest.mark.parametrize("sql", ["SELECT x FROM s [RANGE 5]", f"SELECT o.id {PAIR}"])
def test_rows_are_not_limited_by_having(sql: str) -> None:
    with pytest.raises(QueryError, match="LIMIT is not supported") as caught:
        parse(f"{sql} LIMIT 3")
    assert "WHERE" in str(caught.value)
    assert "HAVING" not in str(caught.value)
