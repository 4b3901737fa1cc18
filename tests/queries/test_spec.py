"""The builder, the catalog, and whatever else stands for queries."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muntin.errors import QueryError, UnknownQueryError, WindowError
from muntin.queries import Catalog, Query, parse, queries, query
from muntin.windows import Window

COUNT = "SELECT count(*) AS n FROM s [RANGE 10 SLIDE 5]"


def spikes() -> Query:
    return (
        query("spikes")
        .from_("trades")
        .window("12 minutes", "5 minutes")
        .where("vol > 50000")
        .group_by("symbol", ex="upper(exchange)")
        .agg("count(*)", value="sum(price * vol)")
        .having("value > 1 OR value < 0", "count(*) > 2")
        .build()
    )


def test_builder() -> None:
    (same,) = queries(
        "CREATE QUERY spikes AS SELECT symbol, upper(exchange) AS ex, count(*), "
        "sum(price * vol) AS value FROM trades [RANGE '12 minutes' SLIDE '5 minutes'] "
        "WHERE vol > 50000 GROUP BY symbol, ex "
        "HAVING (value > 1 OR value < 0) AND count(*) > 2"
    )
    assert spikes() == same


def test_builder_steps_can_be_shared() -> None:
    base = query("base").window(10, 5)
    first, second = base.agg(a="sum(x)"), base.agg(b="sum(y)").emit_empty()
    assert first.build().columns[2:] == ("a",)
    assert second.build().columns[2:] == ("b",)
    assert second.build().emit_empty
    assert not first.build().emit_empty


def test_builder_windows() -> None:
    window = Window("12 minutes", "5 minutes", align="start")
    built = query("a").window(window, time="at").agg("count(*)").build()
    assert (built.window, built.time) == (window, "at")
    assert query("a").rows(100, 10).agg("count(*)").build().window == Window(
        100, 10, measure="rows"
    )
    with pytest.raises(WindowError, match="not positive"):
        query("a").window(0)


def test_builder_refuses_what_sql_refuses() -> None:
    base = query("a").window(10, 5)
    with pytest.raises(QueryError, match="unexpected"):
        base.where("x > 1) OR (y")
    with pytest.raises(QueryError, match="no window"):
        query("a").agg("count(*)").build()
    with pytest.raises(QueryError, match="no aggregate"):
        base.build()
    with pytest.raises(QueryError, match="is not a name for a query"):
        query("my query").window(10, 5).agg("count(*)").build()
    assert query("q" * 100).window(10, 5).agg("count(*)").build().name == "q" * 100
    with pytest.raises(QueryError, match=r"a name of more than 100 letters\s.*\s.*\sHint: shorten"):
        query("q" * 101).window(10, 5).agg("count(*)").build()
    with pytest.raises(QueryError, match="neither in GROUP BY"):
        base.agg("price", "count(*)").build()
    with pytest.raises(QueryError, match="no aggregate"):
        base.agg("price").build()


def test_builder_names_need_no_quotes() -> None:
    built = query("select").from_("order").window(10, 5).group_by(**{"from": "`group`"}).build()
    assert built.columns == ("window_start", "window_end", "from")
    assert queries(built.sql()) == (built,)


def test_queries_from_everything(tmp_path: Path) -> None:
    path = tmp_path / "some queries.sql"
    path.write_text(f"CREATE QUERY in_file AS {COUNT};\n{COUNT}", encoding="utf-8")
    builder = query("built").window(10, 5).agg("count(*)")
    found = queries([COUNT, path, spikes(), builder])
    assert [found_query.name for found_query in found] == ["q1", "in_file", "q3", "spikes", "built"]
    assert queries(str(path)) == queries(path)
    assert queries(builder) == (builder.build(),)
    assert queries(spikes()) == (spikes(),)
    assert queries([]) == ()


def test_statements_take_effect_in_order() -> None:
    create = f"CREATE QUERY a AS {COUNT};"
    assert queries(f"{create} CREATE QUERY b AS {COUNT}; DROP QUERY A")[0].name == "b"
    replaced = queries([create, "CREATE OR REPLACE QUERY A AS SELECT sum(x) FROM s [RANGE 5]"])
    assert [one.name for one in replaced] == ["A"]


def test_problems_of_all_parts_come_together(tmp_path: Path) -> None:
    missing = tmp_path / "missing.sql"
    binary = tmp_path / "binary.sql"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(QueryError) as caught:
        queries([COUNT, "SELECT", missing, str(missing), binary, "", spikes(), spikes(), 5])  # type: ignore[list-item]
    said = [problem.message for problem in caught.value.problems]
    assert len(said) == 7
    assert said[1] == f"cannot read {missing}: No such file or directory"
    assert said[3] == f"{binary} is not UTF-8 text"
    assert said[4] == "the text contains no query"
    assert said[5] == "there is already a query named spikes"
    assert said[6] == "int is not a query"
    assert all(problem.hint for problem in caught.value.problems)


@pytest.mark.parametrize("spec", [None, 5, b"SELECT 1", {"a": COUNT}, [None]])
def test_what_is_no_query_is_said_once(spec: Any) -> None:
    with pytest.raises(QueryError, match="is not a query") as caught:
        queries(spec)
    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].hint


@pytest.mark.parametrize(
    "step",
    [
        lambda base: base.agg(s=None),
        lambda base: base.agg(5),
        lambda base: base.where(5),
        lambda base: base.where(["x > 1"]),
        lambda base: base.group_by(None),
        lambda base: base.having(True),
        lambda base: base.from_(None),
        lambda base: base.window(5, 5, time=5),
        lambda base: query(None),  # type: ignore[arg-type]
        lambda base: parse(5),  # type: ignore[arg-type]
    ],
)
def test_builder_takes_text(step: Callable[[Any], Any]) -> None:
    with pytest.raises(QueryError, match="is not ") as caught:
        step(query("a").window(10, 5))
    assert caught.value.problems[0].hint


def test_a_select_on_its_own_takes_a_free_name() -> None:
    named = query("Q2").window(10, 5).agg("count(*)")

    def names(spec: Any) -> list[str]:
        return [one.name for one in queries(spec)]

    assert names([named, COUNT, COUNT]) == ["Q2", "q3", "q4"]
    assert names([COUNT, COUNT, named]) == ["q1", "q3", "Q2"]
    assert names(f"{COUNT}; CREATE QUERY q1 AS {COUNT}; {COUNT}") == ["q2", "q1", "q3"]
    assert names([COUNT, f"CREATE OR REPLACE QUERY q1 AS {COUNT}"]) == ["q2", "q1"]


def test_dropping_what_is_not_there() -> None:
    with pytest.raises(QueryError) as caught:
        queries(f"CREATE QUERY spikes AS {COUNT}; DROP QUERY spike")
    assert caught.value.problems[0].hint == "did you mean spikes?"


def test_catalog_versions() -> None:
    catalog = Catalog(queries(f"CREATE QUERY a AS {COUNT}; CREATE QUERY b AS {COUNT}"))
    assert (catalog.version, len(catalog), "A" in catalog, 5 in catalog) == (2, 2, True, False)
    with pytest.raises(QueryError, match="already a query named a"):
        catalog.add(queries(f"CREATE QUERY A AS {COUNT}")[0])
    with pytest.raises(UnknownQueryError, match="no query named c"):
        catalog.remove("c")
    assert catalog.version == 2
    replacement = queries("CREATE QUERY A AS SELECT sum(x) FROM s [RANGE 5]")[0]
    catalog.replace(replacement)
    assert (catalog.version, catalog.get("a")) == (3, replacement)
    assert catalog.remove("A") is replacement
    assert [one.name for one in catalog] == ["b"]
    assert repr(catalog) == "<Catalog version 4: b>"


def test_catalog_applies_all_or_nothing() -> None:
    catalog = Catalog()
    with pytest.raises(UnknownQueryError):
        catalog.apply(parse(f"CREATE QUERY a AS {COUNT}; DROP QUERY b"))
    assert (catalog.version, len(catalog)) == (0, 0)
    catalog.apply(parse(f"CREATE QUERY a AS {COUNT}; DROP QUERY a; CREATE QUERY b AS {COUNT}"))
    assert (catalog.version, [one.name for one in catalog]) == (1, ["b"])
    catalog.apply([])
    assert catalog.version == 1
