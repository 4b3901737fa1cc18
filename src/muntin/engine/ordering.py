"""The order of rows and of group keys: NULL first, NaN last, as Spark sorts."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc


def sort_order(columns: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Array:
    """The indices that sort rows by some columns, ascending, from left to right.

    >>> sort_order([pa.array([2.0, float("nan"), None, 1.0])]).to_pylist()
    [2, 3, 0, 1]
    """
    keys: dict[str, pa.Array | pa.ChunkedArray] = {}
    for i, column in enumerate(columns):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)  # noqa: PLW2901
        if pa.types.is_floating(column.type):
            # Arrow would put NaN next to NULL.
            keys[f"nan {i}"] = pc.is_nan(column)
        keys[f"key {i}"] = column
    return pc.sort_indices(pa.table(keys), [(name, "ascending", "at_start") for name in keys])


def in_time_order(table: pa.Table, time: str) -> pa.Table:
    """The table sorted by time, ties by every other column from left to right.

    Rows that are equal in all columns are interchangeable, so the order does not depend on how
    the rows arrived. Columns of nested types cannot be compared and do not take part.

    >>> table = pa.table({"ts": [2, 1, 1], "v": [0, 7, 3]})
    >>> in_time_order(table, "ts").to_pydict()
    {'ts': [1, 1, 2], 'v': [3, 7, 0]}
    """
    others = [name for name in table.column_names if name != time]
    columns = [table[name] for name in (time, *others)]
    order = sort_order([column for column in columns if not pa.types.is_nested(column.type)])
    return table.take(order)
