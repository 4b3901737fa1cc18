"""Queries that differ in constants only mean what each of them would mean by itself."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pytest

from muntin.errors import QueryError
from muntin.expressions.tree import structure
from muntin.planner import build_plan
from muntin.queries import CreateQuery, parse, queries
from muntin.queries.sql.depth import parts
from muntin.queries.sql.grammar import Grammar

Draw = Callable[[random.Random], str]


def number(rng: random.Random) -> str:
    return rng.choice(["0", "7", "007", "1.5", ".25", "1e3", "9" * 30, str(rng.randrange(10**6))])


def text(rng: random.Random) -> str:
    return rng.choice(["'a'", "''", "'it''s'", '"two"', "'a\\nb'", "'ü %_'", "'12'"])


def length(rng: random.Random) -> str:
    return f"'{rng.randrange(1, 90)} {rng.choice(['seconds', 'minutes', 'min', 'h'])}'"


# {n}: a number, {t}: a text, {d}: a duration, {s}: spaces or a comment.
FAMILIES = [
    "SELECT count(*) AS n{s}FROM s [RANGE {d} SLIDE {d}] WHERE price > {n} AND symbol = {t}",
    "SELECT sum(vol) FROM s [RANGE {d}{s}SLIDE {d} OFFSET {d}] WHERE vol BETWEEN {n} AND {n}",
    (
        "SELECT symbol, max(price) AS p FROM s WHERE NOT (symbol IN ({t}, {t})"
        " OR price * {n} < -{n}){s}GROUP BY window(ts, {d}, {d}), symbol HAVING count(*) > 3"
    ),
    "SELECT count(*) FROM TUMBLE(TABLE s, DESCRIPTOR(ts), {d}) WHERE {n} <= vol",
    "SELECT avg(price + 2) FROM s [ROWS 100 SLIDE {w}] WHERE price % {n} <> {n} - vol / {n}",
    "SELECT count(*) FROM s [RANGE {w} SLIDE 3 TUPLES] WHERE symbol >= {t}",
    # These have constants that must be looked at.
    "SELECT count(*) FROM s [RANGE {d} SLIDE {d}] WHERE ts > TIMESTAMP '2024-01-{w}' AND vol > {n}",
    "SELECT count(*) FROM s [RANGE {d} SLIDE {d}] WHERE upper(symbol) = upper({t}) AND vol > {n}",
    "SELECT count(*) FROM s [RANGE {w} minutes SLIDE {d}] WHERE vol IS NOT NULL AND vol > {n}",
    (
        "SELECT count(*) FROM HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '{w}' MINUTE,"
        " INTERVAL '60' MINUTE) WHERE ts < ts + INTERVAL '{w} minutes' OR vol = {n}"
    ),
    "SELECT count(*) AS n, symbol FROM s [RANGE {d} SLIDE {d}] WHERE vol = {n} GROUP BY 2",
    "SELECT vol + {n}, count(*) FROM s [RANGE {d} SLIDE {d}] GROUP BY vol + {n}",
    "SELECT count(*) FILTER (WHERE vol > 5) AS n FROM s [RANGE {d} SLIDE {d}] EMIT EMPTY",
    (
        "SELECT count(*) FROM s [RANGE {d} SLIDE {d}] JOIN r ON s.symbol = r.symbol"
        " WHERE s.vol > {n} AND r.weight < {n}"
    ),
]


def written(family: str, rng: random.Random, name: str) -> str:
    fills: dict[str, Draw] = {
        "n": number,
        "t": text,
        "d": length,
        "w": lambda rng: str(rng.randrange(10, 28)),
        "s": lambda rng: rng.choice([" ", "\n", "\n\n  ", " /* 5 */ ", " -- it's\n"]),
    }
    parts = family.replace("}", "{").split("{")
    body = "".join(fills[part](rng) if part in fills else part for part in parts)
    head = rng.choice([f"CREATE QUERY {name} AS ", f"create or replace query `{name}` AS\n"])
    return head + body


def outcome(sql: str) -> list[object]:
    """All that a reader of queries can see of them, or of what is wrong."""
    try:
        found = creations(sql)
    except QueryError as error:
        return [(problem.message, problem.hint, problem.query) for problem in error.problems]
    seen: list[object] = []
    for each in found:
        query = each.query
        nodes = [output.node for output in (*query.group_by, *query.select)]
        nodes += [node for node in (query.where, query.having) if node is not None]
        all_parts = [part for node in nodes for part in parts(node)]
        places = [query.problem(part, "here") for part in all_parts]
        shown = [(place.source or "")[(place.column or 1) - 1 :][:5] for place in places]
        seen.append((query.sql(), query.window, query.columns, [structure(n) for n in nodes]))
        seen.append((shown, [place.source for place in places], each.replace, query.text.text))
    return seen


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(3))
def test_alike_queries_mean_what_each_means_alone(family: str, seed: int) -> None:
    rng = random.Random(f"{family} {seed}")
    texts = [written(family, rng, f"q_{place}") + ";\n" for place in range(8)]
    sound = [one for one in texts if is_sound(one)]
    assert outcome("".join(sound)) == [each for one in sound for each in outcome(one)]
    broken = [one for one in texts if not is_sound(one)]
    if broken:
        assert outcome("".join(texts)) == [each for one in broken for each in outcome(one)]


# Sound and unsound ones, some of which have to be read as a whole.
COMPARISONS = [
    *("vol > {n}", "{n} <= price", "symbol = {t}", "NOT symbol <> {t}", "vol IS NOT NULL"),
    *("symbol IN ({t}, {t})", "vol NOT IN ({n})", "-vol < -{n}", "price * {n} - vol / {n} >= {n}"),
    *("upper(symbol) = upper({t})", "round(price, {w}) > {n}", "TRUE", "`vol` % {n} = {n}"),
    *("vol BETWEEN {n} AND {n}", "s.vol > {n}", "symbol LIKE {t}", "CAST(vol AS INT) = {n}"),
    *("CASE WHEN vol > {n} THEN TRUE ELSE price < {n} END", "(vol) > ({n})"),
]
WRONG = ["sum(vol) > {n}", "vol > ", "x.vol > {n}", "nothing(vol) = {n}", "vol > {n})", "*"]


def condition(rng: random.Random, depth: int = 0) -> str:
    kind = rng.randrange(5)
    if depth == 3 or kind == 0:
        return rng.choice(COMPARISONS if rng.random() < 0.98 else WRONG)
    if kind == 1:
        return f"{rng.choice(['', 'NOT '])}({condition(rng, depth + 1)})"
    terms = [condition(rng, depth + 1) for _ in range(rng.randint(2, 4))]
    return "{s}".join([terms[0], *(f"{rng.choice(['AND', 'or'])} {term}" for term in terms[1:])])


@pytest.mark.parametrize("seed", range(6))
def test_conditions_mean_what_each_means_alone(seed: int) -> None:
    rng = random.Random(seed)
    heads = ["SELECT count(*) AS n FROM s [RANGE {d} SLIDE {d}]", "SELECT sum(vol) FROM s"]
    tails = ["", " GROUP BY window(ts, {d}, {d})"]
    texts = []
    for place in range(40):
        kind = rng.randrange(2)
        family = (
            f"{heads[kind]} WHERE {condition(rng)}{tails[kind]}{rng.choice(['', ' HAVING n > 1'])}"
        )
        texts.append(written(family, rng, f"q_{place}") + ";\n")
    sound = [one for one in texts if is_sound(one)]
    assert sound
    assert outcome("".join(sound)) == [each for one in sound for each in outcome(one)]


def test_comparisons_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = Grammar.statement

    def counted(self: Grammar, tokens: list[object], text: str) -> object:
        read.append(text)
        return real(self, tokens, text)  # type: ignore[arg-type]

    monkeypatch.setattr(Grammar, "statement", counted)
    joined = ["vol > 1 AND price < 2", "price < 3 OR (vol > 4 AND NOT vol > 5)", "vol > 6"]
    head = "SELECT count(*) AS n FROM s [RANGE '1 min' SLIDE '1 min'] WHERE "
    found = queries(";".join(head + each for each in joined))
    assert len(read) == 1
    assert [each.sql().partition(" WHERE ")[2] for each in found] == [
        "vol > 1 AND price < 2",
        "price < 3 OR vol > 4 AND NOT vol > 5",
        "vol > 6",
    ]


def creations(sql: str) -> list[CreateQuery]:
    return [one for one in parse(sql) if isinstance(one, CreateQuery)]


def is_sound(sql: str) -> bool:
    try:
        return bool(parse(sql))
    except QueryError:
        return False


def test_they_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = Grammar.statement

    def counted(self: Grammar, tokens: list[object], text: str) -> object:
        read.append(text)
        return real(self, tokens, text)  # type: ignore[arg-type]

    monkeypatch.setattr(Grammar, "statement", counted)
    for family, times in ((FAMILIES[0], 1), (FAMILIES[2], 1), (FAMILIES[7], 1), (FAMILIES[6], 20)):
        read.clear()
        fixed = family.replace("{n}", "5").replace("{s}", " ").replace("{t}", "'x'")
        fixed = fixed.replace("{w}", "10")
        texts = [
            f"CREATE QUERY q{i} AS " + fixed.replace("{d}", f"'{i + 1} min'") for i in range(20)
        ]
        assert len(parse(";".join(texts))) == 20
        assert len(read) == times, family


def test_problems_point_into_the_text_of_the_query_itself() -> None:
    sql = "".join(
        f"CREATE QUERY q{number} AS SELECT count(*) AS n\n  FROM s [RANGE '{number + 1} min']"
        f"\n  WHERE {' ' * number}missing > {number};\n"
        for number in range(3)
    )
    schema = pa.schema({"ts": pa.timestamp("us"), "v": pa.int64()})
    with pytest.raises(QueryError) as caught:
        build_plan(queries(sql.replace("min'", "min' SLIDE '1 min'")), schema, "ts")
    assert [(each.query, each.line, each.column) for each in caught.value.problems] == [
        ("q0", 3, 9),
        ("q1", 6, 10),
        ("q2", 9, 11),
    ]


def test_names_are_given_as_ever() -> None:
    body = "SELECT count(*) AS n FROM s [RANGE '{} min' SLIDE '1 min']"
    bare = [body.format(number) for number in (1, 2, 3)]
    assert [each.name for each in queries(";".join(bare))] == ["q1", "q2", "q3"]
    named = f"CREATE QUERY q2 AS {bare[0]}; {bare[1]}; {bare[2]}"
    assert [each.name for each in queries(named)] == ["q2", "q3", "q4"]
    twice = f"CREATE QUERY a AS {bare[0]}; CREATE QUERY A AS {bare[1]}"
    with pytest.raises(QueryError, match="two queries named A"):
        queries(twice)
    (kept,) = queries(twice.replace("CREATE QUERY A", "CREATE OR REPLACE QUERY A"))
    assert kept.window.range == 120_000_000
    for wrong in ("ü", "a b", "x" * 101):
        with pytest.raises(QueryError, match="name"):
            queries(f"CREATE QUERY ok AS {bare[0]}; CREATE QUERY `{wrong}` AS {bare[1]}")


def test_so_they_are_in_texts_of_their_own() -> None:
    body = "SELECT count(*) AS n FROM s [RANGE '{0} min' SLIDE '1 min'] WHERE {1}v > {0}"
    texts = [body.format(number, "\n" * number) for number in (1, 2)]
    first, second = queries(texts)
    assert (first.name, second.name) == ("q1", "q2")
    assert second.sql().endswith("[RANGE '2 minutes' SLIDE '1 minute'] WHERE v > 2")
    assert second.where is not None
    assert second.problem(second.where, "here").line == 3
