"""Assertions about results, with a table of what differs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

_SHOWN = 10


def assert_same_rows(
    actual: pa.Table, expected: pa.Table, *, close: Mapping[str, float] | None = None
) -> None:
    """Check that two results have the same columns, types and rows, in any order.

    NaN equals NaN, and 0.0 differs from -0.0. Columns named in ``close`` may differ by that
    relative error.

    >>> assert_same_rows(pa.table({"a": [1, 2]}), pa.table({"a": [2, 1]}))
    """
    for table in (actual, expected):
        check_types(table)
    assert actual.schema.equals(expected.schema), (
        f"schemas differ\nactual:\n{actual.schema}\nexpected:\n{expected.schema}"
    )
    close = close or {}
    exact = [i for i, name in enumerate(actual.column_names) if name not in close]
    left, right = (sorted(rows_of(table), key=_sort_key(exact)) for table in (actual, expected))
    differing = [
        (i, a, e)
        for i, (a, e) in enumerate(zip(left, right, strict=False))
        if not _same_row(a, e, [close.get(name, 0.0) for name in actual.column_names])
    ]
    if differing or len(left) != len(right):
        raise AssertionError(_difference(actual.column_names, left, right, differing))


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows as tuples; times as integers, so that any year can be compared.

    Values that are none of their column's type are refused.
    """
    check_types(table)
    columns = []
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            ticks = [chunk.view(pa.int64()) for chunk in column.chunks]
            columns.append(pa.chunked_array(ticks, pa.int64()).to_pylist())
        else:
            columns.append(column.to_pylist())
    return list(zip(*columns, strict=True))


def check_types(table: pa.Table) -> None:
    """Check that every value is one of its column's type.

    A decimal has no more digits than its precision, a string is UTF-8, a column that is declared
    so has no NULL.

    >>> check_types(pa.table({"a": [1, None]}))
    """
    for field, column in zip(table.schema, table.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            message = f"column {field.name} is no {field.type}: {str(error).split(': ')[-1]}"
            raise AssertionError(message) from None
        missing = 0 if field.nullable else column.null_count
        assert not missing, f"column {field.name} has {missing} NULL, and is declared without"


def _sort_key(exact: list[int]) -> Any:
    # Rows are matched by what must be equal; repr puts all types, NULL and NaN in one order.
    return lambda row: tuple(repr(row[i]) for i in exact)


def _same_row(actual: tuple[Any, ...], expected: tuple[Any, ...], close: list[float]) -> bool:
    return all(map(_same, actual, expected, close))


def _same(actual: Any, expected: Any, tolerance: float) -> bool:
    if isinstance(actual, list) and isinstance(expected, list) and len(actual) == len(expected):
        return all(_same(a, e, tolerance) for a, e in zip(actual, expected, strict=True))
    if isinstance(actual, dict) and isinstance(expected, dict) and list(actual) == list(expected):
        return all(_same(actual[key], expected[key], tolerance) for key in actual)
    if isinstance(actual, float) and isinstance(expected, float):
        if math.isnan(actual) or math.isnan(expected):
            return math.isnan(actual) and math.isnan(expected)
        if tolerance:
            return math.isclose(actual, expected, rel_tol=tolerance, abs_tol=tolerance)
        return actual == expected and math.copysign(1, actual) == math.copysign(1, expected)
    return bool(actual == expected) and type(actual) is type(expected)


def _difference(
    names: list[str],
    left: list[tuple[Any, ...]],
    right: list[tuple[Any, ...]],
    differing: list[tuple[int, tuple[Any, ...], tuple[Any, ...]]],
) -> str:
    lines = [
        f"rows: {len(left)}, expected {len(right)}; {len(differing)} differ",
        " | ".join(names),
    ]
    for i, actual, expected in differing[:_SHOWN]:
        lines += [f"row {i} actual   {actual}", f"row {i} expected {expected}"]
    extra = left[len(right) :] or right[len(left) :]
    lines += [f"unmatched {row}" for row in extra[:_SHOWN]]
    return "\n".join(lines)
