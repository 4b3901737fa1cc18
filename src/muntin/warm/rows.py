"""Small tables of synthetic rows, with a column of every type that plans take."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa

from muntin.expressions import types as t

MINUTE = 60_000_000
BEGIN = 1_381_152_600_000_000
TYPES = {
    **{name.lower(): kind for kind, name in t.NAMES.items() if kind != t.NULL},
    "decimal": pa.decimal128(10, 2),
    "wide": pa.decimal128(38, 6),
}
_ODD_NUMBERS = {95: math.nan, 96: math.inf, 97: -math.inf, 98: 5e-324, 99: -1e300}


def synthetic_rows(
    count: int = 600, *, nulls: bool = True, groups: int = 7, hours: int = 2
) -> pa.Table:
    """Rows with a column of every type, named like it, and times that ascend."""
    chance = random.Random(count)
    values = [chance.randrange(100) for _ in range(count)]
    step = hours * 60 * MINUTE // count
    columns: dict[str, pa.Array] = {
        "ts": pa.array([BEGIN + place * step for place in range(count)], t.TIMESTAMP),
        "place": pa.array(range(count), t.BIGINT),
        "k": pa.array([f"key{chance.randrange(groups)}" for _ in values]),
        "g": pa.array([chance.randrange(groups) for _ in values]),
    }
    for name, kind in TYPES.items():
        own = [_value(kind, value) for value in values]
        if nulls:
            own = [None if chance.random() < 0.1 else value for value in own]
        columns[name] = pa.array(own, kind)
    return pa.table(columns)


def _value(kind: pa.DataType, number: int) -> Any:
    if pa.types.is_boolean(kind):
        return number % 2 == 0
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        # Those of eight bytes and fewer, and longer ones, are kept differently.
        text = f"key{number % 20}" if number % 3 else f"a longer key of {number} bytes"
        return text if pa.types.is_string(kind) else text.encode()
    if pa.types.is_decimal(kind):
        return Decimal(number)
    if pa.types.is_floating(kind):
        return _ODD_NUMBERS.get(number, number + 0.1)
    if kind == t.BIGINT:
        return {98: 2**63 - 1, 99: -(2**63)}.get(number, number)
    return BEGIN + number * MINUTE if pa.types.is_timestamp(kind) else number


def varied_rows(count: int = 600, groups: int = 7) -> list[pa.Table]:
    """Rows with NULLs and without, each in memory of both kinds, and very few of them.

    Where all strings are empty, only the memory of their bytes cannot be written.
    """
    some, full = (synthetic_rows(count, nulls=nulls, groups=groups) for nulls in (True, False))
    few = empty = full.slice(0, 1)
    for place, field in enumerate(few.schema):
        if pa.types.is_string(field.type) or pa.types.is_binary(field.type):
            empty = empty.set_column(place, field, pa.array([""], field.type))
    return [some, full, few, empty, *(read_only(rows) for rows in (some, full, few))]


def read_only(rows: pa.Table) -> pa.Table:
    """The same rows in memory that cannot be written, which is another type to numba."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return pa.ipc.open_stream(pa.py_buffer(sink.getvalue().to_pybytes())).read_all()
