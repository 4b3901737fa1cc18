"""A constant gives what a column of the same value gives: value, type and failure."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from functools import cache

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

import muntin
from expressions import conformance
from muntin.errors import ExpressionError
from muntin.expressions import BindingError, Bound, Evaluator, bind, bind_text
from muntin.expressions import types as t
from muntin.expressions.binding.literals import quoted

ROWS_OF_EACH = 2
EPOCH = dt.datetime(1970, 1, 1)
ONE_ROW = pa.table({"x": [1]})


def written(value: pa.Scalar) -> str | None:
    """A value as a constant; None for dates that Python does not write."""
    kind, name = value.type, t.name_of(value.type)
    if not value.is_valid:
        return f"cast(null as {name})"
    if t.is_time(kind):
        ticks = value.cast(pa.int32() if kind == t.DATE else pa.int64()).as_py()
        try:
            moment = EPOCH + dt.timedelta(**{"days" if kind == t.DATE else "microseconds": ticks})
        except OverflowError:
            return None
        return f"{name} '{moment.date() if kind == t.DATE else moment}'"
    plain = value.as_py()
    if t.is_float(kind):
        return f"cast('{plain!r}' as {name})"
    if t.is_number(kind):
        return f"cast({plain} as {name})"
    return {t.BOOLEAN: str, t.STRING: quoted, t.BINARY: lambda b: f"X'{b.hex()}'"}[kind](plain)


@cache
def table(paired: bool) -> pa.Table:
    return conformance.pairs() if paired else conformance.singles()


def folded(text: str, row: int, batch: pa.Table) -> exp.Expr | None:
    """The expression with constants for all columns."""
    root = exp.Paren(this=sqlglot.parse_one(text, dialect="spark"))
    for column in list(root.find_all(exp.Column)):
        constant = written(batch.column(column.name)[row])
        if constant is None:
            return None
        column.replace(sqlglot.parse_one(constant, dialect="spark"))
    return root.this


def cases() -> Iterator[tuple[str, int, Bound]]:
    draw = random.Random(5)
    for text in conformance.cases():
        batch = table(conformance.uses_pairs(text))
        for row in draw.sample(range(batch.num_rows), ROWS_OF_EACH):
            node = folded(text, row, batch)
            if node is None:
                continue
            try:
                yield text, row, bind(node, batch.schema)
            except BindingError as error:
                # A string that is no date is refused, as in DATE 'x'.
                if "is not a valid DATE" not in str(error):
                    raise


def test_constants_give_what_columns_give() -> None:
    golden = conformance.load_golden()
    found = list(cases())
    assert len(found) > 1200
    answers = Evaluator([bound for _, _, bound in found])(ONE_ROW)
    wrong = []
    for (text, row, bound), one in zip(found, answers, strict=True):
        one.values.validate(full=True)
        spark = golden[text]
        ours = conformance.Answer(
            str(bound.type), conformance.plain(one.values), [] if one.errors is None else [0]
        )
        theirs = conformance.Answer(
            spark.type, [spark.values[row]], [0] if row in spark.failed else []
        )
        lines = conformance.differences(ours, theirs, ulps=conformance.ulps(text))
        wrong += [(text, bound.key, line) for line in lines]
    assert not wrong


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("CAST(12345678901234567890.5 AS DECIMAL(10,2))", "decimal128(10, 2)"),
        ("CAST(123456 AS DECIMAL(3,0))", "decimal128(3, 0)"),
        ("CAST(123456789.5 AS DECIMAL(5,2))", "decimal128(5, 2)"),
        ("CAST(1.5 AS DECIMAL(38,38))", "decimal128(38, 38)"),
        ("CAST(true AS DECIMAL(38,38))", "decimal128(38, 38)"),
        ("CAST(-1000 AS DECIMAL(3,0))", "decimal128(3, 0)"),
        ("CAST('123456' AS DECIMAL(3,0))", "decimal128(3, 0)"),
        ("CAST(' 999.6 ' AS DECIMAL(3,0))", "decimal128(3, 0)"),
        ("CAST('-1e3' AS DECIMAL(3,0))", "decimal128(3, 0)"),
        ("CAST('abc' AS INT)", "int32"),
        ("CAST(300 AS TINYINT)", "int8"),
    ],
)
def test_a_constant_that_does_not_fit_fails(text: str, kind: str) -> None:
    """In every row, as a column's values do, and counted so."""
    batch = pa.table({"ts": [0, 1, 2, 7], "x": [1, 2, 3, 4]})
    bound = bind_text(text, batch.schema)
    [found] = Evaluator([bound])(batch)
    assert (str(bound.type), bound.can_fail) == (kind, True)
    assert found.values.to_pylist() == [None] * 4
    assert found.errors is not None
    assert found.errors.to_pylist() == [True] * 4
    results = muntin.aggregate(
        batch, f"SELECT max({text}) AS m, count(*) AS n FROM s [RANGE 5 SLIDE 5]", time="ts"
    )
    assert results["q1"].column("m").to_pylist() == [None, None]
    assert results["q1"].column("n").to_pylist() == [3, 1]
    assert results.errors == {"q1": 4}


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("CAST(123 AS DECIMAL(3,0))", "123", "decimal128(3, 0)"),
        ("CAST(' 1e3 ' AS DECIMAL(5,1))", "1000.0", "decimal128(5, 1)"),
        ("CAST('1e-999999999' AS DECIMAL(5,1))", "0.0", "decimal128(5, 1)"),
        ("CAST('1d' AS DOUBLE)", "1.0", "double"),
        ("CAST('\\u000112' AS INT)", "12", "int32"),
        ("CAST(16777217 AS FLOAT)", "16777216.0", "float"),
        ("CAST(2305843146652647425 AS FLOAT)", "2.305843284091601e+18", "float"),
        ("1.50BD", "1.50", "decimal128(3, 2)"),
        ("0.00BD", "0.00", "decimal128(2, 2)"),
        ("-1e3BD", "-1000", "decimal128(4, 0)"),
        ("-128Y", "-128", "int8"),
        ("-9223372036854775808L", "-9223372036854775808", "int64"),
        ("1.00 / 3L", "0.333333", "decimal128(7, 6)"),
        ("1.5 * ceil(7)", "10.5", "decimal128(23, 1)"),
        ("1.5 * 7S", "10.5", "decimal128(4, 1)"),
        ("1.5 * 7Y", "10.5", "decimal128(6, 1)"),
        ("1.00 / CAST(3 AS BIGINT)", "0.33333333333333333333333", "decimal128(24, 23)"),
    ],
)
def test_constants(text: str, value: str, kind: str) -> None:
    bound = bind_text(text, ONE_ROW.schema)
    [found] = Evaluator([bound])(ONE_ROW)
    assert (str(found.values[0]), str(bound.type), found.errors) == (value, kind, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CAST('inf' AS DECIMAL(5,2))", "'inf' is not a valid DECIMAL"),
        ("CAST('1_0' AS DECIMAL(5,2))", "'1_0' is not a valid DECIMAL"),
        ("CAST('1e999999999' AS DECIMAL(5,1))", "is not a valid DECIMAL"),
        ("x = '\u00a012'", "is not a valid BIGINT"),
        ("128Y", "128Y is not a TINYINT"),
        ("1.5L", "1.5L is not a BIGINT"),
        ("1e400", "1e400 does not fit into a DOUBLE"),
    ],
)
def test_no_constants(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        bind_text(text, ONE_ROW.schema)


def test_zeros_of_one_frame_keep_their_signs() -> None:
    batch = pa.table({"b": [True, False], "x": [1.0, 2.0]})
    texts = [f"case when b then x else {zero} end" for zero in ("0.0D", "-0.0D")]
    found = Evaluator([bind_text(text, batch.schema) for text in texts])(batch)
    assert [str(one.values[1]) for one in found] == ["0.0", "-0.0"]
    [nanvl] = Evaluator([bind_text("nanvl(0.0D, -0.0D)", batch.schema)])(batch)
    assert str(nanvl.values[0]) == "0.0"
