from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from muntin.expressions import bind_text
from muntin.predicates import Analysis, analyze, expected_cells, merge_shapes
from muntin.predicates.merge import Cost, CountCells


def wide(columns: int, constants: int) -> Analysis:
    schema = pa.schema([(f"c{i:02}", pa.int64()) for i in range(columns)])
    texts = [f"c{i:02} > {c}" for i in range(columns) for c in range(constants)]
    return analyze([bind_text(text, schema) for text in texts])


def test_keys_that_do_not_fit_are_compacted() -> None:
    analysis = wide(20, 30)
    shape = analysis.joined(range(20))
    assert shape.size == 32**20
    assert not shape.has_keys
    random = np.random.default_rng(1)
    columns = [random.integers(0, 2, 500).astype(np.int32) for _ in range(20)]
    columns = [np.concatenate([column, column[:100]]) for column in columns]
    cells = shape.cells(columns)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    numbers = {row: number for number, row in enumerate(dict.fromkeys(rows))}
    assert cells.ids.tolist() == [numbers[row] for row in rows]
    assert list(zip(*(ranks.tolist() for ranks in cells.ranks), strict=True)) == list(numbers)


def test_largest_keys_fit() -> None:
    shape = wide(3, 2**10 - 2).joined(range(3))
    columns = [np.array([0, d.size - 1], np.int32) for d in shape.dimensions]
    assert shape.keys(columns).tolist() == [0, shape.size - 1]
    for column, again in zip(columns, shape.ranks_of(shape.keys(columns)), strict=True):
        np.testing.assert_array_equal(column, again)


def test_reach_is_where_a_predicate_holds_or_fails() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("c", pa.bool_())])
    texts = ["a > 5 AND b > 7", "c AND b < 3", "a < 2 AND 10 div b > 1"]
    analysis = analyze([bind_text(text, schema) for text in texts])
    shape = analysis.shape(range(len(texts)))
    every = shape.ranks_of(np.arange(shape.size))
    asked = np.any(shape.truth(every) | shape.failures(every), axis=1).tolist()
    for kept in ([0], [1], [2], [3], [0, 2], [1, 3], [0, 1, 2, 3]):
        some = [shape.dimensions[place] for place in kept]
        reached = shape.reach(some)
        columns = tuple(every[place] for place in kept)
        expected = {
            ranks for ranks, hit in zip(zip(*columns, strict=True), asked, strict=True) if hit
        }
        if reached is None:
            assert len(expected) == np.prod([each.size for each in some])
        else:
            assert set(zip(*np.nonzero(reached), strict=True)) == expected
    assert shape.reach([]) is None


def test_signatures_have_one_bit_a_predicate() -> None:
    shape = wide(1, 20).shapes[0]
    signatures = shape.signatures([np.arange(22)])
    assert signatures.shape == (22, 3)
    assert signatures[20].tolist() == [255, 255, 15]
    assert not signatures[[0, 21]].any()
    assert [int(row.sum()) for row in shape.truth([np.arange(22)])] == [*range(21), 0]


def test_dependent_dimensions_have_no_box() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    texts = ["a > 1 OR b > 1", "a <> 1 AND b IS NOT NULL"]
    [shape] = analyze([bind_text(text, schema) for text in texts]).shapes
    assert shape.box(0) is None
    # Ranks of a: below 1, 1, above 1, NULL; of b: up to 1, above 1, NULL.
    assert shape.box(1) == (((0, 1), (2, 3)), ((0, 2),))


def joint_cost(rows: float, cells: CountCells) -> Cost:
    """Each row updates a cell of the group; joint cells are rolled up into every shape's."""

    def cost(members: tuple[int, ...], dimensions: frozenset[int]) -> float:
        return rows + (len(members) * cells(dimensions) if len(members) > 1 else 0)

    return cost


def test_shapes_merge_while_rows_outnumber_cells() -> None:
    shapes = [[0], [1], [0, 1], [0, 2], [3]]
    sizes = [4, 4, 4, 1000]
    many = merge_shapes(shapes, joint_cost(10_000, expected_cells(sizes, 10_000)))
    assert [merged.shapes for merged in many] == [(0, 1, 2, 3), (4,)]
    assert many[0].dimensions == (0, 1, 2)
    few = merge_shapes(shapes, joint_cost(10, expected_cells(sizes, 10)))
    assert [merged.shapes for merged in few] == [(0,), (1,), (2,), (3,), (4,)]


def test_a_shape_within_another_is_absorbed() -> None:
    cost = joint_cost(1000, expected_cells([10, 10], 1000))
    merged = merge_shapes([[], [0], [0, 1]], cost)
    assert [group.shapes for group in merged] == [(0, 1, 2)]


@given(
    st.lists(st.sets(st.integers(0, 5)), max_size=8),
    st.lists(st.integers(2, 50), min_size=6, max_size=6),
    st.floats(1, 1e6),
)
def test_merging_never_costs_more(shapes: list[set[int]], sizes: list[int], rows: float) -> None:
    cost = joint_cost(rows, expected_cells(sizes, rows))
    merged = merge_shapes(shapes, cost)
    assert sorted(place for group in merged for place in group.shapes) == list(range(len(shapes)))
    for group in merged:
        assert set(group.dimensions) == set().union(*(shapes[place] for place in group.shapes))
    together = sum(cost(group.shapes, frozenset(group.dimensions)) for group in merged)
    assert together <= len(shapes) * rows * (1 + 1e-9)
