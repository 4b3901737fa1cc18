"""What is refused, where, why, and what to write instead: golden messages."""

from pathlib import Path

import pytest

from muntin.errors import QueryError
from muntin.queries import parse, parse_expression, queries

GOLDEN = Path(__file__).parent.parent / "golden" / "queries_errors.txt"
S = "FROM s [RANGE 10 SLIDE 5]"


def cases() -> list[tuple[str, str]]:
    """The golden file: SQL, a line of ---, what is said about it, a line of ===."""
    blocks = GOLDEN.read_text(encoding="utf-8").split("\n===\n")
    pairs = [block.strip("\n").split("\n---\n") for block in blocks if block.strip()]
    return [(sql, message) for sql, message in pairs]


@pytest.mark.parametrize(("sql", "message"), cases(), ids=lambda text: text.partition("\n")[0])
def test_golden(sql: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        queries(sql)
    said = "\n".join(str(problem) for problem in caught.value.problems)
    assert said == message


def test_every_problem_has_a_place_and_a_hint() -> None:
    for sql, _ in cases():
        with pytest.raises(QueryError) as caught:
            parse(sql)
        for problem in caught.value.problems:
            assert problem.hint, problem
            assert problem.line >= 1, problem
            assert problem.column >= 1, problem


def test_twenty_bad_queries_are_all_reported() -> None:
    bad = ["SELEC 1", f"SELECT * {S} LIMIT 5", f"SELECT a, count(*) {S}", "SELECT count(*) FROM s"]
    text = ";\n".join(bad[i % 4] for i in range(20))
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert [problem.line for problem in caught.value.problems] == list(range(1, 21))
    assert str(caught.value).endswith("... and 15 more")


def test_what_stands_before_an_open_quote_is_still_checked() -> None:
    with pytest.raises(QueryError) as caught:
        parse(f"SELECT a, count(*) {S};\nSELECT count(*) {S} WHERE x = 'open")
    assert [problem.line for problem in caught.value.problems] == [1, 2]


def test_expressions_are_checked_alone() -> None:
    for text in ["", "a +", "a) GROUP BY (b", "a; b", "'open", "((((a)))"]:
        with pytest.raises(QueryError) as caught:
            parse_expression(text)
        assert caught.value.problems
