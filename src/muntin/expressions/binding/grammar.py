"""Which function of the registry each SQL node of the Spark dialect stands for."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser

from muntin.expressions import types as t
from muntin.expressions.tree import BindingError

OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}

COMPARISONS = frozenset([exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ])

# Function nodes by the names of their arguments, in the order the registry wants them.
CALLS: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.Abs: ("abs", ("this",)),
    exp.Negative: ("negative", ("this",)),
    exp.Sign: ("sign", ("this",)),
    exp.Ceil: ("ceil", ("this",)),
    exp.Floor: ("floor", ("this",)),
    exp.Round: ("round", ("this", "decimals")),
    exp.Sqrt: ("sqrt", ("this",)),
    exp.Exp: ("exp", ("this",)),
    exp.Ln: ("ln", ("this",)),
    exp.Log: ("log", ("this", "expression")),
    exp.Pow: ("power", ("this", "expression")),
    exp.Greatest: ("greatest", ("this", "expressions")),
    exp.Least: ("least", ("this", "expressions")),
    exp.Coalesce: ("coalesce", ("this", "expressions")),
    exp.IsNan: ("isnan", ("this",)),
    exp.Nanvl: ("nanvl", ("this", "expression")),
    exp.Upper: ("upper", ("this",)),
    exp.Lower: ("lower", ("this",)),
    exp.Length: ("length", ("this",)),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.Left: ("left", ("this", "expression")),
    exp.Right: ("right", ("this", "expression")),
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.StartsWith: ("startswith", ("this", "expression")),
    exp.EndsWith: ("endswith", ("this", "expression")),
    exp.Contains: ("contains", ("this", "expression")),
    exp.StrPosition: ("instr", ("this", "substr")),
    exp.Reverse: ("reverse", ("this",)),
    exp.RegexpLike: ("rlike", ("this", "expression")),
    exp.Year: ("year", ("this",)),
    exp.Month: ("month", ("this",)),
    exp.Day: ("day", ("this",)),
    exp.DayOfMonth: ("day", ("this",)),
    exp.DayOfWeek: ("dayofweek", ("this",)),
    exp.DayOfYear: ("dayofyear", ("this",)),
    exp.Quarter: ("quarter", ("this",)),
    exp.WeekOfYear: ("weekofyear", ("this",)),
    exp.Hour: ("hour", ("this",)),
    exp.Minute: ("minute", ("this",)),
    exp.Second: ("second", ("this",)),
    exp.UnixSeconds: ("unix_seconds", ("this",)),
    exp.UnixMillis: ("unix_millis", ("this",)),
    exp.UnixMicros: ("unix_micros", ("this",)),
    exp.TimestampTrunc: ("date_trunc", ("unit", "this")),
    exp.DateTrunc: ("trunc", ("this", "unit")),
}

# Notes that the parser leaves on nodes; they do not change what Spark computes.
IGNORED_ARGUMENTS = frozenset(["safe", "typed", "ignore_nulls", "coalesce", "_type"])

# Spellings that the parser has no node for.
ALIASES = {"isnull": "is null", "btrim": "trim"}

# Entries of the registry that SQL writes as operators, not as calls.
FORMS = frozenset(["and", "or", "not", "in", "div", "case", "cast", "try_cast", "like", "ilike"])

EXTRACTED = {
    "year": "year",
    "quarter": "quarter",
    "month": "month",
    "week": "weekofyear",
    "day": "day",
    "dayofweek": "dayofweek",
    "dow": "dayofweek",
    "doy": "dayofyear",
    "hour": "hour",
    "minute": "minute",
}

TYPES = {
    exp.DataType.Type.BOOLEAN: t.BOOLEAN,
    exp.DataType.Type.TINYINT: t.TINYINT,
    exp.DataType.Type.SMALLINT: t.SMALLINT,
    exp.DataType.Type.INT: t.INT,
    exp.DataType.Type.BIGINT: t.BIGINT,
    exp.DataType.Type.FLOAT: t.FLOAT,
    exp.DataType.Type.DOUBLE: t.DOUBLE,
    exp.DataType.Type.TEXT: t.STRING,
    exp.DataType.Type.BINARY: t.BINARY,
    exp.DataType.Type.DATE: t.DATE,
    exp.DataType.Type.TIMESTAMP: t.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ: t.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPLTZ: t.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPNTZ: t.TIMESTAMP_NTZ,
}

# Letters behind a number of an exact type, as in 5L.
SUFFIXES = frozenset(["Y", "S", "L", "BD"])


class ExpressionParser(SparkParser):
    """Spark's grammar, in which 5L can be told from CAST(5 AS BIGINT)."""

    def build_cast(self, strict: bool, **kwargs: Any) -> exp.Expr:
        """A conversion, and the letters behind a number."""
        suffix = self._prev.text.upper()
        node = super().build_cast(strict, **kwargs)
        if isinstance(kwargs.get("this"), exp.Literal) and suffix in SUFFIXES:
            node.set("suffix", suffix)
        return node


class ExpressionDialect(Spark):
    """Spark's dialect with that grammar."""

    Parser = ExpressionParser


def named_type(node: exp.DataType) -> pa.DataType:
    """The type that a CAST names.

    >>> from sqlglot import parse_one
    >>> named_type(parse_one("CAST(a AS DECIMAL(10, 2))", dialect="spark").args["to"])
    Decimal128Type(decimal128(10, 2))
    """
    if node.this == exp.DataType.Type.DECIMAL:
        sizes = [int(param.name) for param in node.expressions]
        precision, scale = [*sizes, *(10, 0)[len(sizes) :]]
        if not 0 <= scale <= precision <= t.MAX_DIGITS:
            raise BindingError(
                f"DECIMAL({precision},{scale}) is not a type",
                hint=f"at most {t.MAX_DIGITS} digits, all of which may be behind the point",
            )
        return pa.decimal128(precision, scale)
    if node.this in TYPES and not node.expressions:
        return TYPES[node.this]
    raise BindingError(
        f"expressions have no type {node.sql(dialect='spark')}",
        hint="use BOOLEAN, an integer, FLOAT, DOUBLE, DECIMAL, STRING, DATE or TIMESTAMP",
    )
