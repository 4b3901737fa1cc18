"""A compiled piece of an expression: its value, and where computing it failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import polars as pl
import pyarrow as pa

from muntin.expressions import types as t

FloatFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Part:
    """Two polars expressions over the input frame.

    `failed` is a boolean without NULL, or None where nothing can fail. The value of a failed row
    is arbitrary: whoever reads it looks at `failed` first. `present` says that no value is NULL.

    Dates are days and timestamps microseconds since 1970 as integers, and decimals are their
    unscaled 128-bit integers, because polars' own types for these cover a smaller range.
    """

    value: pl.Expr
    failed: pl.Expr | None = None
    present: bool = False


PHYSICAL: dict[pa.DataType, pl.DataType] = {
    t.NULL: pl.Null(),
    t.BOOLEAN: pl.Boolean(),
    t.TINYINT: pl.Int8(),
    t.SMALLINT: pl.Int16(),
    t.INT: pl.Int32(),
    t.BIGINT: pl.Int64(),
    t.FLOAT: pl.Float32(),
    t.DOUBLE: pl.Float64(),
    t.STRING: pl.String(),
    t.BINARY: pl.Binary(),
    t.DATE: pl.Int32(),
    t.TIMESTAMP: pl.Int64(),
    t.TIMESTAMP_NTZ: pl.Int64(),
}


def physical(kind: pa.DataType) -> pl.DataType:
    """The polars type that carries values of a Spark type while they are computed."""
    return pl.Int128() if t.is_decimal(kind) else PHYSICAL[kind]


def constant(value: object, kind: pa.DataType) -> pl.Expr:
    """A typed polars literal; never left to polars to guess."""
    return pl.lit(value, dtype=physical(kind))


def wide(value: int) -> pl.Expr:
    """A 128-bit integer constant."""
    return pl.lit(value, dtype=pl.Int128)


def null(kind: pa.DataType) -> pl.Expr:
    """A typed NULL."""
    return pl.lit(None, dtype=physical(kind))


def on_floats(function: FloatFunction, kind: pa.DataType, left: pl.Expr, right: pl.Expr) -> pl.Expr:
    """A numpy function of two float operands, NULL where one of them is."""

    def compute(columns: Sequence[pl.Series]) -> pl.Series:
        with np.errstate(all="ignore"):
            result = function(*(column.to_numpy() for column in columns))
        return pl.Series(result, dtype=physical(kind))

    # Elementwise: what polars finds to be one value for all rows stays one.
    computed = pl.map_batches(
        [left, right], compute, return_dtype=physical(kind), is_elementwise=True
    )
    return pl.when(left.is_not_null() & right.is_not_null()).then(computed)


def quotient(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    """A correctly rounded quotient of DOUBLEs.

    Given a constant divisor polars multiplies by its rounded reciprocal, which is often off by
    one bit.
    """
    return on_floats(np.divide, t.DOUBLE, left, right)


def either(failures: Iterable[pl.Expr | None]) -> pl.Expr | None:
    """Where any of them failed; None where none can."""
    known = [failed for failed in failures if failed is not None]
    return reduce(lambda left, right: left | right, known) if known else None


def in_turn(parts: Sequence[Part]) -> pl.Expr | None:
    """Where evaluating the operands one after the other fails.

    As in Spark, a NULL operand ends the evaluation: what comes after it cannot fail.
    """
    failures: list[pl.Expr | None] = []
    seen: list[pl.Expr] = []
    for part in parts:
        failed = part.failed
        if failed is not None and seen:
            failed = reduce(lambda left, right: left & right, seen) & failed
        failures.append(failed)
        if not part.present:
            seen.append(part.value.is_not_null())
    return either(failures)


def strict(value: pl.Expr, parts: Sequence[Part], failed: pl.Expr | None = None) -> Part:
    """A value computed from all operands; `failed` adds its own failures, NULL meaning none."""
    own = None if failed is None else failed.fill_null(value=False)
    return Part(value, either([in_turn(parts), own]))


def strict_or_null(value: pl.Expr, parts: Sequence[Part]) -> Part:
    """A value that is NULL, although no operand is, exactly where it fails."""
    known = [part.value.is_not_null() for part in parts if not part.present]
    failed = reduce(lambda left, right: left & right, known, value.is_null())
    return Part(value, either([in_turn(parts), failed]))
