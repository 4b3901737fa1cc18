"""Random rows with awkward values, and random conditions over them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from random import Random

import pyarrow as pa
from hypothesis import strategies as st

INF, NAN = float("inf"), float("nan")
UTC = dt.UTC
DAYS = [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29)]
TIMES = [dt.datetime(2024, 2, 29, 12, 0, 0, micro, UTC) for micro in (0, 1, 999_999)]

COLUMNS: dict[str, tuple[pa.DataType, list[object]]] = {
    "i": (pa.int32(), [-(2**31), -1, 0, 1, 2, 3, 5, 2**31 - 1]),
    "big": (pa.int64(), [-(2**63), -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1]),
    "tiny": (pa.int8(), [-128, -1, 0, 1, 2, 127]),
    "x": (pa.float64(), [-INF, -1.5, -5e-324, -0.0, 0.0, 0.1, 1.0, 1.5, INF, NAN]),
    "f": (pa.float32(), [-INF, -0.0, 0.0, 0.1, 1.0, 1.5, INF, NAN]),
    "d": (pa.decimal128(10, 2), [Decimal(t) for t in ("-1.50", "0.00", "0.01", "1.50", "1.55")]),
    "wide": (pa.decimal128(30, 5), [Decimal(t) for t in ("-1e20", "0", "0.00001", "1.5", "1e20")]),
    "s": (
        pa.string(),
        ["", "a", "a\0", "ab", "abcdefgh", "abcdefgh\0", "abcdefghi", "b", "é", "😀"],
    ),
    "r": (pa.string(), ["", "a", "ab", "b"]),
    "flag": (pa.bool_(), [False, True]),
    "flag2": (pa.bool_(), [False, True]),
    "day": (pa.date32(), list(DAYS)),
    "ts": (pa.timestamp("us", "UTC"), list(TIMES)),
    "local": (pa.timestamp("us", "America/New_York"), list(TIMES)),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])

NUMBERS = ["-1", "0", "1", "2", "5", "1.5", "0.1", "1.55", "1.555", "1e0", "1.5e0", "-0.0", "NULL"]
NUMBERS += ["2147483647", "2147483648", "-2147483649", "9007199254740993", "9223372036854775807"]
NUMBERS += ["CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)", "1 + 1", "9.007199254740993e15"]
STRINGS = ["''", "'a'", "'ab'", "'abcdefgh'", "'abcdefghi'", "'é'", "'zz'", "NULL", "upper('a')"]
DATES = ["DATE '1970-01-01'", "'2024-02-29'", "DATE '1969-12-31'", "NULL"]
MOMENTS = [
    "TIMESTAMP '2024-02-29 12:00:00'",
    "'2024-02-29 12:00:00.000001'",
    "'2025-01-01'",
    "NULL",
]
FLAGS = ["TRUE", "FALSE", "NULL"]

# Expressions of one kind, and the constants that each may meet.
EXPRESSIONS = [
    (
        ["i", "big", "tiny", "x", "f", "d", "wide", "i + tiny", "x * 2", "CAST(i AS DOUBLE)"],
        NUMBERS,
    ),
    (["i / tiny", "10 div i", "big + 1", "abs(x - f) / f"], NUMBERS),
    (["s", "r", "upper(s)"], STRINGS),
    (["day", "CAST(ts AS DATE)"], DATES),
    (["ts", "local", "CAST(day AS TIMESTAMP)"], MOMENTS),
    (["flag", "flag2", "(i > 1)", "(s LIKE '%b')"], FLAGS),
]
OPERATORS = ["=", "<>", "<", "<=", ">", ">=", "<=>"]
OTHER = ["s LIKE 'a%'", "s LIKE 'ab'", "s LIKE '%'", "s LIKE 'a_c%'", "startswith(s, 'abc')"]
OTHER += ["isnan(x)", "isnan(i)", "isnan(f)", "flag", "NOT flag", "s = r", "r < s", "i > x"]
OTHER += ["s IN ('a', r)", "i IN (1, 1 div tiny)", "tiny <= i", "i >= tiny", "d <> wide"]
OTHER += ["10 div i < 10 div tiny", "10 div tiny > 10 div i"]


@st.composite
def atoms(draw: st.DrawFn) -> str:
    """A comparison, a list, a range or something that is none of these."""
    if draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(OTHER))
    expressions, constants = draw(st.sampled_from(EXPRESSIONS))
    expression = draw(st.sampled_from(expressions))
    constant = st.sampled_from(constants)
    kind = draw(st.sampled_from(["right", "right", "left", "between", "in", "null"]))
    negated = draw(st.sampled_from(["", "NOT "]))
    if kind == "null":
        return f"{expression} IS {negated}NULL"
    if kind == "between":
        return f"{expression} {negated}BETWEEN {draw(constant)} AND {draw(constant)}"
    if kind == "in":
        listed = ", ".join(draw(st.lists(constant, min_size=1, max_size=4)))
        return f"{expression} {negated}IN ({listed})"
    operator = draw(st.sampled_from(OPERATORS))
    sides = [expression, draw(constant)]
    return f" {operator} ".join(sides if kind == "right" else sides[::-1])


def combined(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Conditions made of conditions."""
    pairs = st.tuples(children, st.sampled_from(["AND", "OR", "="]), children)
    return st.one_of(
        pairs.map(lambda parts: f"({parts[0]}) {parts[1]} ({parts[2]})"),
        st.lists(children, min_size=2, max_size=4).map(
            lambda terms: " AND ".join(f"({term})" for term in terms)
        ),
        children.map(lambda term: f"NOT ({term})"),
        st.tuples(children, st.sampled_from(["NULL", "NOT NULL", "TRUE", "NOT FALSE"])).map(
            lambda parts: f"({parts[0]}) IS {parts[1]}"
        ),
        st.tuples(children, children, children).map(
            lambda parts: "CASE WHEN {} THEN {} ELSE {} END".format(*parts)
        ),
        st.tuples(children, children).map(lambda parts: "coalesce({}, {})".format(*parts)),
    )


conditions = st.recursive(atoms(), combined, max_leaves=6)


def table(seed: int, rows: int) -> pa.Table:
    """Rows of awkward values and NULLs."""
    random = Random(seed)
    columns = {
        name: pa.array(random.choices([None, *pool], k=rows), kind)
        for name, (kind, pool) in COLUMNS.items()
    }
    return pa.table(columns, SCHEMA)


def tables(rows: int = 200) -> st.SearchStrategy[pa.Table]:
    """Any such table."""
    return st.integers(0, 2**32).map(lambda seed: table(seed, rows))
