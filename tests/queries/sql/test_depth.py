"""Walks and lines found at once are those found one by one."""

from __future__ import annotations

import random

import pytest

from muntin.errors import QueryError
from muntin.queries import parse_expression, queries
from muntin.queries.source import Lines, SourceText
from muntin.queries.sql.depth import parts


@pytest.mark.parametrize("text", ["a", "a + b * c > 1 AND f IN (1, 2, 3)", "sum(a) / count(*)"])
def test_parts_are_those_of_a_walk(text: str) -> None:
    node = parse_expression(text)
    assert [id(part) for part in parts(node)] == [id(part) for part in node.walk()]


def test_lines_are_those_around_the_characters() -> None:
    rng = random.Random(7)
    for _ in range(200):
        text = "".join(rng.choice("ab\n") for _ in range(rng.randrange(12)))
        lines = Lines(text)
        for start in range(len(text) + 1):
            end = rng.randrange(start, len(text) + 1)
            first = text.rfind("\n", 0, start) + 1
            last = text.find("\n", end)
            part = text[first:] if last < 0 else text[first:last]
            assert lines.slice(start, end) == SourceText(
                part, first, text.count("\n", 0, first) + 1
            )


def test_names_that_the_text_gives_are_passed_over() -> None:
    select = "SELECT count(*) FROM s [RANGE 5 SLIDE 5]"
    text = f"{select}; CREATE QUERY q1 AS {select}; CREATE QUERY q3 AS {select}; {select}"
    assert [query.name for query in queries(text)] == ["q2", "q1", "q3", "q4"]


def test_a_statement_that_is_refused_leaves_nothing_behind_for_the_next() -> None:
    sound = "CREATE QUERY a AS SELECT count(*) FROM s [RANGE 5 SLIDE 5]"
    with pytest.raises(QueryError) as raised:
        queries(f"SELECT ((a FROM s;\n{sound};\nSELECT FROM;\n{sound}")
    assert [problem.line for problem in raised.value.problems] == [1, 3, 4]
