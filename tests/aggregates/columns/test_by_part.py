"""Columns of accumulators give what the scalar algebra gives, however the rows are split."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregates.cases import (
    CASES,
    KINDS,
    answers,
    arrays,
    case_id,
    empty_columns,
    expected,
    python_rows,
    relaxed,
    update_all,
)
from muntin.aggregates import resolve
from muntin.aggregates.columns import by_part
from muntin.testing import laws

SIZE = 12
CELLS = 4


def draw_rows(data, types, cells=CELLS):
    args = data.draw(arrays(types, SIZE))
    indices = st.lists(st.integers(-1, cells - 1), min_size=SIZE, max_size=SIZE)
    where = np.array(data.draw(indices), np.int64)
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=SIZE, max_size=SIZE)), np.int64)
    return args, where, times


def rows_of(resolved, args, times, mask):
    rows = python_rows(resolved.algebra.timed, args, times)
    return [row for row, wanted in zip(rows, mask, strict=True) if wanted]


def assert_cells(resolved, cols, rows_by_cell):
    found = answers(resolved, cols)
    wanted = [expected(resolved.algebra, rows) for rows in rows_by_cell]
    for got, want, rows in zip(found, wanted, rows_by_cell, strict=True):
        assert laws.same(got, want), (got, want, rows)


def merged(resolved, first, second):
    """The second set of columns merged into the first, cell by cell."""
    for into, other in zip(first, second, strict=True):
        into.merge(np.arange(len(other)), other)


@pytest.mark.parametrize("case", CASES, ids=case_id)
@relaxed
@given(data=st.data())
def test_updates_merges_and_snapshots_equal_the_algebra(case, data):
    resolved = resolve(*case)
    args, where, times = draw_rows(data, case[1])
    cut = data.draw(st.integers(0, SIZE))
    first, second = empty_columns(resolved, 2), empty_columns(resolved, CELLS)
    for column in first:
        column.resize(CELLS)
    update_all(first, where[:cut], tuple(arg[:cut] for arg in args), times[:cut])
    update_all(second, where[cut:], tuple(arg[cut:] for arg in args), times[cut:])
    second = [through_ipc(column) for column in second]
    merged(resolved, first, second)
    wanted = [rows_of(resolved, args, times, where == cell) for cell in range(CELLS)]
    assert_cells(resolved, first, wanted)
    restored = [through_ipc(column) for column in first]
    assert_cells(resolved, restored, wanted)
    update_all(restored, where, args, times)
    assert_cells(resolved, restored, [doubled(resolved, args, times, where == c) for c in range(4)])


def doubled(resolved, args, times, mask):
    return 2 * rows_of(resolved, args, times, mask)


def through_ipc(column):
    """A column written to Arrow's file format and read back."""
    sink = pa.BufferOutputStream()
    batch = column.to_arrow()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    with pa.ipc.open_stream(sink.getvalue()) as reader:
        return by_part.from_arrow(column.part, reader.read_next_batch())


@pytest.mark.parametrize("case", KINDS, ids=case_id)
@relaxed
@given(data=st.data())
def test_sliding_equals_recomputation(case, data):
    resolved = resolve(*case)
    cells = 6
    args, where, times = draw_rows(data, case[1], cells)
    cols = empty_columns(resolved, cells)
    update_all(cols, where, args, times)
    bounds = st.lists(st.integers(0, cells), min_size=5, max_size=5)
    starts = np.array(data.draw(bounds), np.int64)
    ends = np.maximum(np.array(data.draw(bounds), np.int64), starts)
    if data.draw(st.booleans()):
        starts, ends = np.sort(starts), np.sort(ends)
        ends = np.maximum(starts, ends)
    windows = [
        rows_of(resolved, args, times, (where >= start) & (where < end))
        for start, end in zip(starts, ends, strict=True)
    ]
    assert_cells(resolved, [column.slide(starts, ends) for column in cols], windows)


@pytest.mark.parametrize("case", KINDS, ids=case_id)
@relaxed
@given(data=st.data())
def test_taken_cells_go_their_own_way(case, data):
    resolved = resolve(*case)
    args, where, times = draw_rows(data, case[1])
    cols = empty_columns(resolved, CELLS)
    update_all(cols, where, args, times)
    before = answers(resolved, cols)
    indices = np.array([3, 0, 0])
    taken = [column.take(indices) for column in cols]
    update_all(taken, np.where(where >= 3, -1, where), args, times)
    assert laws.same(answers(resolved, cols), before)
    rows = [rows_of(resolved, args, times, where == cell) for cell in range(CELLS)]
    assert_cells(resolved, taken, [rows[3] + rows[0], rows[0] + rows[1], rows[0] + rows[2]])


@pytest.mark.parametrize("case", KINDS, ids=case_id)
def test_no_cells_and_no_rows(case):
    resolved = resolve(*case)
    nothing = np.empty(0, np.int64)
    args = tuple(pa.array([], kind) for kind in case[1])
    cols = empty_columns(resolved, 0)
    update_all(cols, nothing, args, nothing)
    assert answers(resolved, [column.slide(nothing, nothing) for column in cols]) == []
    assert answers(resolved, [through_ipc(column) for column in cols]) == []
    cols = empty_columns(resolved, 2)
    assert_cells(resolved, cols, [[], []])
    assert_cells(resolved, [through_ipc(column) for column in cols], [[], []])
    slid = [column.slide(np.array([0, 1]), np.array([2, 1])) for column in cols]
    assert_cells(resolved, slid, [[], []])
    assert all(column.nbytes >= 0 for column in cols)


@pytest.mark.parametrize("kind", ["first_valid", "last_valid"])
@relaxed
@given(data=st.data())
def test_picks_that_ignore_nulls(kind, data):
    name = kind.removesuffix("_valid")
    resolved = resolve(name, [pa.string()], ignore_nulls=True)
    assert resolved.parts[0].kind == kind
    args, where, times = draw_rows(data, (pa.string(),))
    cols = empty_columns(resolved, CELLS)
    update_all(cols, where, args, times)
    rows = [rows_of(resolved, args, times, where == cell) for cell in range(CELLS)]
    assert_cells(resolved, cols, rows)


def test_a_dictionary_forgets_values_that_no_cell_holds():
    resolved = resolve("max", [pa.string()])
    (column,) = empty_columns(resolved, 1)
    sizes = []
    for number in range(1100):
        column.update(np.zeros(1, np.int64), (pa.array([f"{number:05}"]),))
        sizes.append(len(column.values.dictionary))
    assert max(sizes) <= 1002
    assert sizes[-1] < 200
    assert answers(resolved, [column]) == [("01099", False)]


@pytest.mark.parametrize("name", ["first", "max_by"])
def test_picks_of_strings_keep_a_small_dictionary(name):
    types = (pa.string(), pa.int64())[: 1 if name == "first" else 2]
    resolved = resolve(name, types)
    (column,) = empty_columns(resolved, 2)
    keys = np.arange(4000) % 1000
    values = pa.array([f"{number:05}" for number in range(4000)])
    column.update(np.arange(4000) % 2, (values, pa.array(keys))[: len(types)], keys)
    assert len(column.value_coder.dictionary) <= 8
    wanted = ["00000", "00001"] if name == "first" else ["03998", "03999"]
    assert column.result().to_pylist() == wanted


@pytest.mark.parametrize("exponent", [0, 900])
def test_a_fresh_column_has_room_for_numbers_like_anothers(exponent):
    part = resolve("sum", (pa.float64(),)).parts[0]
    column = by_part.empty(part, 1)
    rows = np.array([0, 0]), (pa.array([2.0**-exponent, 3.5 * 2.0**exponent]),)
    column.update(*rows)
    fresh = by_part.fresh(column, 3)
    assert len(fresh) == 3
    assert fresh.doubles().tolist() == [0.0, 0.0, 0.0]
    # A window that is unusually wide is not handed on.
    assert fresh.limbs.shape[1] == (0 if exponent else column.limbs.shape[1])
    fresh.update(np.array([2, 2]), rows[1])
    assert fresh.units(2) == column.units(0)
    assert (fresh.load, column.load) == (2, 2)
