"""What users and we test with."""

from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.testing import assert_same_rows, check_types, rows_of


def too_long() -> pa.Table:
    """A decimal of more digits than its type has."""
    values = pa.array(["123.45"]).cast(pa.decimal128(20, 2))
    return pa.table({"a": pa.Array.from_buffers(pa.decimal128(3, 2), 1, values.buffers())})


def test_a_value_fits_its_type() -> None:
    for check in (check_types, rows_of, lambda table: assert_same_rows(table, table)):
        with pytest.raises(AssertionError, match=r"column a is no decimal128\(3, 2\)"):
            check(too_long())


def test_a_column_without_null_has_none() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    table = pa.Table.from_arrays([pa.array([1, None])], schema=schema)
    with pytest.raises(AssertionError, match="column a has 1 NULL"):
        check_types(table)
