"""Group keys of any type: equal ones share a slot, and come back as they were."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.engine.slices.key_table import KeyTable

COLUMNS = [
    pa.array([1, -1, None, 1, 2**63 - 1, -(2**63)]),
    pa.array([1, 255, None, 1, 0, 2], pa.uint8()),
    pa.array([2**64 - 1, 0, None, 2**64 - 1, 1, 2], pa.uint64()),
    pa.array([0.5, float("nan"), None, 0.5, float("inf"), -2.0]),
    pa.array([0.5, float("nan"), None, 0.5, float("inf"), -2.0], pa.float32()),
    pa.array([True, False, None, True, False, True]),
    pa.array(["", "é" * 40, None, "", "a\0b", "ab"]),
    pa.array(["", "x" * 70_000, None, "", "a", "b"], pa.large_string()),
    pa.array([b"\0", b"", None, b"\0", b"\xff", b"a"]),
    pa.array([Decimal("1.50"), Decimal("-1.50"), None, Decimal("1.50"), Decimal(0), Decimal(9)]),
    pa.array([dt.date(1970, 1, 2), dt.date(1, 1, 1), None, dt.date(1970, 1, 2), None, None]),
    pa.array([0, 5, None, 0, 7, 9], pa.timestamp("us", "America/New_York")),
    pa.array([0, 5, None, 0, 7, 9], pa.duration("ns")),
    pa.array([None] * 6, pa.null()),
]


@pytest.mark.parametrize("column", COLUMNS, ids=[str(each.type) for each in COLUMNS])
def test_a_column_of_any_type(column: pa.Array) -> None:
    table = KeyTable([column.type])
    first = table.slots([column])
    assert table.slots([column.slice(1)]).tolist() == first[1:].tolist()
    known = [repr(each) for each in column.to_pylist()]
    assert [known.index(each) for each in known] == [
        first.tolist().index(slot) for slot in first.tolist()
    ]
    (back,) = table.keys(first)
    assert back.type == column.type
    assert [repr(each) for each in back.to_pylist()] == known


def test_zeros_are_one_key_and_so_are_nans() -> None:
    bits = np.array([0x7FF8000000000001, 0x7FF8000000000002], np.uint64).view(np.float64)
    column = pa.array([0.0, -0.0, *bits])
    assert KeyTable([pa.float64()]).slots([column]).tolist() == [0, 0, 1, 1]


def test_columns_do_not_run_into_each_other() -> None:
    table = KeyTable([pa.string(), pa.string(), pa.int32()])
    rows = [("a", "bc", 1), ("ab", "c", 1), (None, "abc", 1), ("", "abc", 1), ("abc", None, 1)]
    columns = [pa.array(each) for each in zip(*rows, strict=True)]
    columns[2] = columns[2].cast(pa.int32())
    slots = table.slots(columns)
    assert slots.tolist() == [0, 1, 2, 3, 4]
    keys = [key.to_pylist() for key in table.keys(slots[::-1].copy())]
    assert list(zip(*keys, strict=True)) == rows[::-1]


@given(
    st.lists(st.lists(st.tuples(st.text(max_size=3), st.none() | st.integers(-2, 2))), max_size=6)
)
def test_batches_of_keys(batches: list[list[tuple[str, int | None]]]) -> None:
    table, known = KeyTable([pa.string(), pa.int64()]), {}
    for batch in batches:
        columns = [pa.array([k for k, _ in batch], pa.string()),
                   pa.array([n for _, n in batch], pa.int64())]  # fmt: skip
        wanted = [known.setdefault(key, len(known)) for key in batch]
        assert table.slots(columns).tolist() == wanted


def test_many_keys_grow_the_table() -> None:
    table = KeyTable([pa.int64()])
    for low in range(0, 50_000, 7_000):
        column = pa.array(np.arange(low, low + 7_000) * 1_000_003)
        assert table.slots([column]).tolist() == list(range(low, low + 7_000))
    assert table.slots([pa.array([0, 1_000_003 * 49_999])]).tolist() == [0, 49_999]
