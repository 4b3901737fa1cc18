"""Constants in every place give every row its own answer, whatever the height of the frame."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import polars as pl
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from expressions import conformance
from muntin.expressions import BindingError, Bound, Evaluator, bind, bind_text
from muntin.expressions.evaluation import program
from muntin.expressions.evaluation.program import Program

# Two constants of every type; a NULL is the third.
CONSTANTS = {
    "tiny": ["7Y", "cast(-128 as tinyint)"],
    "small": ["100S", "-1S"],
    "i": ["2", "0"],
    "l": ["42L", "9223372036854775807L"],
    "fl": ["1.5F", "cast('nan' as float)"],
    "d": ["0.0D", "-0.0D"],
    "dec": ["cast(1.50 as decimal(10, 2))", "cast(0 as decimal(10, 2))"],
    "wide": ["cast(7 as decimal(20, 0))", "cast(0 as decimal(20, 0))"],
    "b": ["true", "false"],
    "s": ["'abc'", "''"],
    "dt": ["DATE '2020-02-29'", "DATE '1969-12-31'"],
    "ts": ["TIMESTAMP '2020-02-29 12:34:56.7'", "TIMESTAMP '1969-12-31 23:59:59'"],
    "nt": ["TIMESTAMP_NTZ '2020-02-29 12:34:56.7'", "TIMESTAMP_NTZ '1969-12-31'"],
    "bin": ["X'0100'", "X''"],
    "num": ["' 12 '", "'abc'"],
    "day": ["'2020-2-9'", "'x'"],
}
Cell = tuple[object, bool]


def variants(text: str) -> Iterator[exp.Expr]:
    """The expression with constants for some of its columns: every choice of places."""
    node = sqlglot.parse_one(text, dialect="spark")
    places = len(list(node.find_all(exp.Column)))
    for chosen in range(1, 2**places):
        for turn in range(3):
            root = exp.Paren(this=node.copy())
            for place, column in enumerate(list(root.find_all(exp.Column))):
                if chosen >> place & 1:
                    options = [*CONSTANTS[column.name.removesuffix("2")], "null"]
                    value = options[(turn + place) % len(options)]
                    column.replace(sqlglot.parse_one(value, dialect="spark"))
            yield root.this


@cache
def bounds(paired: bool) -> list[Bound]:
    schema = table(paired).schema
    found: dict[str, Bound] = {}
    for text in conformance.cases():
        if conformance.uses_pairs(text) is paired:
            for node in variants(text):
                try:
                    bound = bind(node, schema)
                except BindingError:
                    continue  # Some types do not take NULL, or would drop digits.
                found.setdefault(bound.key, bound)
    return list(found.values())


@cache
def table(paired: bool) -> pa.Table:
    return conformance.pairs() if paired else conformance.singles()


@cache
def evaluator(paired: bool) -> Evaluator:
    """All expressions of the table, as they are and with constants."""
    schema = table(paired).schema
    texts = [text for text in conformance.cases() if conformance.uses_pairs(text) is paired]
    return Evaluator([*bounds(paired), *(bind_text(text, schema) for text in texts)])


def answers(run: Evaluator, batch: pa.Table) -> list[list[Cell]]:
    found = []
    for bound, one in zip(run.bounds, run(batch), strict=True):
        assert (len(one.values), one.values.type) == (batch.num_rows, bound.type)
        one.values.validate(full=True)
        errors = [False] * batch.num_rows if one.errors is None else one.errors.to_pylist()
        found.append(list(zip(conformance.plain(one.values), errors, strict=True)))
    return found


def same(left: Cell, right: Cell) -> bool:
    return left[1] == right[1] and conformance.same(left[0], right[0])


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("small", [0, 10**9])
def test_a_batch_gives_what_its_rows_give(
    paired: bool, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, run = table(paired), evaluator(paired)
    assert len(run.bounds) > 1000
    monkeypatch.setattr(program, "SMALL", 10**9)
    alone = rows_alone(paired)
    monkeypatch.setattr(program, "SMALL", small)
    whole = answers(run, batch)
    for row, each in alone.items():
        wrong = [
            (bound.key, many[row], one)
            for bound, many, one in zip(run.bounds, whole, each, strict=True)
            if not same(many[row], one)
        ]
        assert not wrong


@cache
def rows_alone(paired: bool) -> dict[int, list[Cell]]:
    """What some rows give, each as a batch of its own."""
    batch, run = table(paired), evaluator(paired)
    return {
        row: [cells[0] for cells in answers(run, batch.slice(row, 1))]
        for row in range(0, batch.num_rows, 9)
    }


@pytest.mark.parametrize("paired", [True, False])
def test_rows_that_are_all_alike(paired: bool) -> None:
    """Polars holds a computed column of equal values as one, which not all it does can take."""
    batch, run = table(paired), evaluator(paired)
    for row in (0, 10, batch.num_rows - 1):
        alone = answers(run, batch.slice(row, 1))
        alike = answers(run, batch.take([row] * 3))
        for bound, one, many in zip(run.bounds, alone, alike, strict=True):
            assert all(same(one[0], cell) for cell in many), bound.key


ROWS = pa.table({"s": ["a", "b", "c", "x", None, "bc"], "b": [True] * 6, "x": [0.0, -0.0] * 3})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("instr('abc', s)", [1, 2, 3, 0, None, 2]),
        ("locate(s, 'abc')", [1, 2, 3, 0, None, 2]),
        ("locate(s, 'été abc')", [5, 6, 7, 0, None, 6]),
        ("position('b' in s)", [0, 1, 0, 0, None, 1]),
        ("instr(null, s)", [None] * 6),
        ("startswith('abc', s)", [True, False, False, False, None, False]),
        ("5 = case when b then 1 else 2 end", [False] * 6),
        ("-(case when b then 1.5 else 2.5 end) < 0", [True] * 6),
        ("coalesce(1, length(s))", [1] * 6),
        ("false and s = 'a'", [False] * 6),
        ("2 in (length(s), 2)", [True] * 6),
        ("case when true then 1 else length(s) end", [1] * 6),
        ("concat(s, null, s) is null", [True] * 6),
    ],
)
@pytest.mark.parametrize("copies", [1, 6000])
def test_constants_beside_columns(text: str, expected: list[object], copies: int) -> None:
    batch = pa.concat_tables([ROWS] * copies).combine_chunks()
    [found] = Evaluator([bind_text(text, batch.schema)])(batch)
    assert found.values.to_pylist() == expected * copies
    assert found.errors is None


@pytest.mark.parametrize("text", ["0 - x", "x - -0.0D", "x + 0.0D", "0.0D + x"])
def test_zeros_keep_their_sign(text: str) -> None:
    """Every one of these is +0.0, as 0.0 - 0.0 and -0.0 + 0.0 are."""
    [found] = Evaluator([bind_text(text, ROWS.schema)])(ROWS)
    assert {str(value) for value in found.values.to_pylist()} == {"0.0"}


def test_a_constant_that_is_not_read_takes_no_room() -> None:
    listed = ", ".join(map(str, range(100)))
    bound = bind_text(f"length(s) in ({listed}) and s like 'a%'", ROWS.schema)
    assert Program([bound])._constants == []


def test_an_output_of_another_height_is_an_internal_error() -> None:
    frame = pl.DataFrame({"v0": [1.5]})
    with pytest.raises(RuntimeError, match="internal error: 1 values for 6 rows in one of x"):
        Program([bind_text("x + 1.5D", ROWS.schema)])._check_height(frame, ROWS.num_rows)
