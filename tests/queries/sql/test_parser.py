"""Statements, limits, and text that is no SQL."""

import importlib
import pickle
import random
import re
import sys
import threading
import time

import pytest
import sqlglot.parser
from hypothesis import given, settings
from hypothesis import strategies as st

from muntin.errors import Problem, QueryError
from muntin.queries import CreateQuery, DropQuery, parse, parse_expression, queries
from muntin.queries.sql import dialect
from muntin.queries.sql.depth import MAX_NESTING

S = "FROM s [RANGE 10 SLIDE 5]"
VALID = [
    """CREATE OR REPLACE QUERY spikes AS SELECT symbol, sum(price * vol) / count(*) AS v
    FROM trades AS t [RANGE '12 minutes' SLIDE '5 minutes' OFFSET '1 minute' WATTR ts]
    WHERE t.vol BETWEEN 1 AND 5 OR symbol LIKE 'A%' GROUP BY symbol HAVING v > 10;""",
    """SELECT window_start, max(x) FILTER (WHERE y IS NOT NULL) FROM TABLE(HOP(TABLE s,
    DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '12' MINUTE)) GROUP BY window_start""",
    "SELECT window.end, first(x) IGNORE NULLS FROM s GROUP BY window(ts, '12 minutes', '5m'), a",
    """SELECT c.cp, sum(T.price * T.vol) FROM Trades T[RANGE 600 SLIDE 300], Close C, Index X
    WHERE T.Symbol = C.Symbol AND (T.Symbol) = X.Symbol AND X.R3000 GROUP BY cp""",
    f"SELECT max(c.x) {S} LEFT OUTER JOIN close AS c ON s.k = c.k AND c.b = 1 JOIN d USING (k, l)",
    f"SELECT CASE WHEN sum(x) > 0 THEN 'up' ELSE \"down\" END AS d {S} EMIT EMPTY; DROP QUERY a",
]


def test_the_time_column_may_come_first_as_the_papers_write_it() -> None:
    first = "SELECT count(*) FROM s [WATTR ts RANGE 4 SLIDE 1]"
    last = "SELECT count(*) FROM s [RANGE 4 SLIDE 1 WATTR ts]"
    assert queries(first) == queries(last)
    with pytest.raises(QueryError, match="a second WATTR"):
        queries("SELECT count(*) FROM s [WATTR ts RANGE 4 SLIDE 1 WATTR ts]")


def test_statements() -> None:
    statements = parse(
        f"""
        -- a comment; with a semicolon
        CREATE QUERY a AS SELECT count(*) AS n {S};
        ; /* nothing */ ;
        create or replace query `A` as (select sum(x) as total {S});
        DROP QUERY a;
        SELECT ';' AS semicolon, count(*) AS n {S}
        """
    )
    first, second, third, fourth = statements
    assert isinstance(first, CreateQuery)
    assert (first.query.name, first.replace) == ("a", False)
    assert isinstance(second, CreateQuery)
    assert (second.query.name, second.replace) == ("A", True)
    assert third == DropQuery("a")
    assert isinstance(fourth, CreateQuery)
    assert fourth.query.name == "q4"
    assert fourth.query.columns == ("window_start", "window_end", "semicolon", "n")


def test_a_name_is_free_again_once_dropped() -> None:
    create = f"CREATE QUERY a AS SELECT count(*) AS n {S};"
    assert len(parse(f"{create} DROP QUERY A; {create}")) == 3


def test_nothing_to_read() -> None:
    assert parse("") == parse(" ; -- nothing\n;") == []


def test_comments_give_no_instructions() -> None:
    text = f"SELECT sum(x) /* sqlglot.anonymous sqlglot.meta start=no */ AS v {S}"
    (query,) = queries(text)
    assert query.problem(query.select[0].node, "here").column == 8


@pytest.mark.parametrize("operator", ["AND", "OR"])
def test_long_chains(operator: str) -> None:
    condition = f" {operator} ".join(f"x <> {i}" for i in range(1000))
    (query,) = queries(f"SELECT count(*) AS n {S} WHERE {condition}")
    assert query.where is not None
    depth = max(node.depth for node in query.where.walk())
    assert depth < 20
    assert query.sql().endswith(condition)
    assert queries(query.sql()) == (query,)
    assert pickle.loads(pickle.dumps(query)) == query


@pytest.mark.parametrize(
    ("opening", "closing"),
    [("(", ")"), ("coalesce(1, ", ")"), ("-(1 + ", ")"), ("CASE WHEN a THEN ", " END")],
)
def test_nesting_is_capped(opening: str, closing: str) -> None:
    for levels in (20, 60):
        text = opening * levels + "x" + closing * levels
        (query,) = queries(f"SELECT sum({text}) AS v {S}")
        assert pickle.loads(pickle.dumps(query)) == query
    levels = MAX_NESTING + 1
    with pytest.raises(QueryError, match="more than 100 levels of nesting"):
        parse_expression(opening * levels + "x" + closing * levels)


@pytest.mark.parametrize(
    "text",
    [
        "NOT " * 5000 + "x",
        "- " * 5000 + "x",
        "x" + "[1]" * 5000,
        "x" + ".x" * 5000,
        "CAST(x AS " + "ARRAY<" * 500 + "INT" + ">" * 500 + ")",
        " + ".join("x" * 3000),
        "x" + "::INT" * 3000,
        "x" + " IS NULL" * 3000,
    ],
    ids=lambda text: text[:16],
)
def test_deep_trees_are_refused_quickly(text: str) -> None:
    started = time.process_time()
    with pytest.raises(QueryError):
        parse(f"SELECT count(*) AS n {S} WHERE {text}")
    assert time.process_time() - started < 5


def test_statements_of_very_many_words_are_refused_quickly() -> None:
    condition = " AND ".join(["x"] * 60_000)
    started = time.process_time()
    with pytest.raises(QueryError, match="more than 100,000 words"):
        parse(f"SELECT count(*) AS n {S} WHERE {condition}")
    assert time.process_time() - started < 10


@pytest.mark.parametrize("name", ["select", "`select`", "as", "range"])
def test_any_word_names_a_query(name: str) -> None:
    (query,) = queries(f"CREATE QUERY {name} AS SELECT count(*) AS n {S}")
    assert query.name == name.strip("`")
    assert queries(query.sql()) == (query,)
    assert parse(f"DROP QUERY {name}") == [DropQuery(query.name)]


JOIN = "a JOIN b ON a.x = b.x"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (S + " JOIN t" * 2000, "expected ON or USING after t"),
        (S + "".join(f" JOIN t{i} ON s.x = t{i}.x" for i in range(2000)), "more than 16 joins"),
        (S + ", t" * 2000, "more than 16 joins"),
        (f"FROM {'(' * 60}{JOIN}{')' * 60}", "FROM takes the name of a stream"),
        (f"FROM {'(' * 30}{JOIN}{') JOIN c ON c.x = a.x' * 30}", "FROM takes the name"),
        (f"FROM {'(SELECT 1 FROM ' * 40}{JOIN}{') t JOIN b ON t.x = b.x' * 40}", "FROM takes"),
        (f"{S} JOIN b ON s.x = {f'(SELECT 1 FROM {JOIN} AND a.y = ' * 40}1{')' * 40}", "levels"),
        (f"{S} WHERE x = {'(SELECT 1 FROM a, b WHERE a.x = ' * 40}1{')' * 40}", "subqueries"),
        (f"{S} WHERE {'coalesce((SELECT 1 FROM a, b), ' * 40}1{')' * 40}", "subqueries"),
    ],
    ids=lambda text: text[-24:],
)
def test_many_joins_are_refused_in_one_pass(text: str, reason: str) -> None:
    with pytest.raises(QueryError, match=reason):
        parse(f"SELECT count(*) AS n {text}")


def test_the_recursion_limit_is_put_back_by_the_last_thread() -> None:
    limit = sys.getrecursionlimit()
    text = ";".join(VALID * 20).replace("CREATE OR REPLACE QUERY spikes AS ", "")
    threads = [threading.Thread(target=parse, args=(text,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.getrecursionlimit() == limit


def test_a_thousand_queries_parse_in_five_seconds() -> None:
    text = "\n".join(
        f"CREATE QUERY q_{i} AS SELECT symbol, sum(price * vol) / sum(vol) AS vwap, count(*) AS n"
        f" FROM trades [RANGE '{i + 1} minutes' SLIDE '{i % 7 + 1} minutes']"
        f" WHERE vol > {i} AND price < {2 * i} AND exchange IN ('a', 'b') GROUP BY symbol"
        " HAVING count(*) > 3;"
        for i in range(1000)
    )
    started = time.process_time()
    assert len(queries(text)) == 1000
    assert time.process_time() - started < 5


def reads_or_refuses(text: str) -> None:
    """Whatever the text, it is read or refused with places and hints: nothing else is raised."""
    problems: tuple[Problem, ...] = ()
    try:
        for statement in parse(text):
            if isinstance(statement, CreateQuery):
                statement.query.sql()
    except QueryError as error:
        problems = error.problems
        str(error).encode("utf-8")
    assert all(problem.hint and problem.line >= 1 for problem in problems)


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(max_size=60), st.binary(max_size=60).map(lambda b: b.decode("latin-1"))))
def test_any_text(text: str) -> None:
    reads_or_refuses(text)
    reads_or_refuses(f"SELECT {text} {S}")


WORDS = """
SELECT FROM WHERE GROUP BY HAVING EMIT EMPTY RANGE SLIDE ROWS OFFSET WATTR HOP TUMBLE TABLE
DESCRIPTOR window window_start count sum first upper ( ) [ ] , ; * + - / < = . :: => -> AND OR NOT
IN IS NULL LIKE BETWEEN CASE WHEN THEN ELSE END CAST AS DISTINCT ALL UNION JOIN ON INTERVAL MINUTE
5 '5m' 'x' "y" `z` a b s ts CREATE QUERY DROP REPLACE WITH ORDER LIMIT OVER FILTER IGNORE NULLS
ARRAY MAP STRUCT EXISTS ANY { } ? : @ # $ ! ~ & | ^ % 1L 1e5 := PIVOT VALUES LATERAL EXPLODE
LEFT INNER OUTER CROSS NATURAL USING APPLY s.a t.a
"""


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(WORDS.split()), max_size=30).map(" ".join))
def test_any_words(text: str) -> None:
    reads_or_refuses(text)
    reads_or_refuses(f"SELECT count(*) AS n {S} {text}")


@pytest.mark.parametrize("text", VALID)
def test_cut_off_and_scrambled_text(text: str) -> None:
    reads_or_refuses(text)
    for end in range(0, len(text), 3):
        reads_or_refuses(text[:end])
    rng = random.Random(7)
    for _ in range(100):
        words = text.split(" ")
        i, j = rng.randrange(len(words)), rng.randrange(len(words))
        words[i], words[j] = words[j], words[i]
        del words[rng.randrange(len(words))]
        reads_or_refuses(" ".join(words))


@pytest.mark.parametrize(
    "text",
    [
        "\x00",
        "\ud800",
        "'\ud800'",
        "SELECT '\U0001f600' AS `\U0001f600`",
        "\u2028;\ufeff",
        "{# x",
        "{{ x }}",
        "{% x %}",
        "/* open",
        "SELECT $$",
        "SELECT x'zz'",
        "SELECT 1e999999",
        "SHOW TABLES",
        "9" * 10_000,
        f"SELECT sum({'9' * 10_000}) {S}",
        f"SELECT sum('{'x' * 100_000}') {S}",
        f"SELECT count(*) FROM s [RANGE {'9' * 5000}]",
        f"SELECT count(*) FROM s GROUP BY {'9' * 5000}, window(ts, {'9' * 5000})",
    ],
    ids=lambda text: ascii(text[:24]),
)
def test_hostile_text(text: str) -> None:
    reads_or_refuses(text)


def test_a_compiled_sqlglot_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlglot.parser, "__file__", "parser.cpython-311-x86_64-linux-gnu.so")
    with pytest.raises(ImportError, match="pip uninstall sqlglotc"):
        importlib.reload(dialect)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE QUERY a WITH (technique = 'daba', prefer = 'latency') AS {}",
        "CREATE QUERY a AS {} WITH (prefer = 'latency', technique = 'daba')",
        "create query a with (Technique = 'daba') as {} with (PREFER = 'latency')",
    ],
)
@pytest.mark.parametrize(
    "body",
    [
        "SELECT max(v) AS m FROM s [RANGE 6 SLIDE 2]",
        "SELECT max(v) AS m FROM s [RANGE 6 SLIDE 2] WHERE v > 3",
        "SELECT max(v) AS m FROM s [RANGE 6 SLIDE 2] EMIT EMPTY",
        "SELECT g, max(v) AS m FROM s [RANGE 6 SLIDE 2] GROUP BY g HAVING max(v) > 2",
    ],
)
def test_a_query_may_say_its_technique(text: str, body: str) -> None:
    (query,) = queries(text.format(body))
    assert (query.technique, query.prefer) == ("daba", "latency")
    assert query.sql().startswith("CREATE QUERY a WITH (technique = 'daba', prefer = 'latency') AS")
    assert queries(query.sql()) == (query,)
    (plain,) = queries(f"CREATE QUERY a AS {body}")
    assert plain != query
    assert plain.technique is None


def test_techniques_are_not_taken_over_by_queries_alike() -> None:
    sql = "CREATE QUERY {} AS SELECT max(v) AS m FROM s [RANGE 6 SLIDE 2] WHERE v > {}{}"
    found = queries(
        ";".join(
            [
                sql.format("a", 1, ""),
                sql.format("b", 2, " WITH (technique = 'bint')"),
                sql.format("c", 3, " WITH (technique = 'daba')"),
                sql.format("d", 4, ""),
            ]
        )
    )
    assert [each.technique for each in found] == [None, "bint", "daba", None]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("(technique = daba)", "expected a string"),
        ("(technique 'daba')", "expected = after technique"),
        (
            "(speed = 'high')",
            "expected technique, prefer, output, restore",
        ),
        ("(prefer = 'speed')", "cannot prefer 'speed'"),
        ("(technique = 'a', technique = 'b')", "technique is given twice"),
        ("(technique = 'a b')", "not the name of a technique"),
        ("technique = 'daba'", "expected ( after WITH"),
        ("(technique = 'daba'", "expected , or ) after an option"),
    ],
)
def test_options_that_cannot_be_read(options: str, message: str) -> None:
    text = f"CREATE QUERY a WITH {options} AS SELECT max(v) FROM s [RANGE 6 SLIDE 2]"
    with pytest.raises(QueryError, match=re.escape(message)) as caught:
        queries(text)
    assert caught.value.problems[0].hint
