"""Worked examples of the paper: Figure 7's fragments, and the predicates of its Table 8."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa

from muntin.expressions import Evaluator, bind_text
from muntin.predicates import Analysis, analyze

TRADES = pa.schema([("symbol", pa.string()), ("price", pa.float64()), ("vol", pa.int64())])
INDICES = ["r3000", "r2000", "r1000"]
JOINED = pa.schema([*TRADES, ("cp", pa.float64()), *((index, pa.bool_()) for index in INDICES)])


def ranks(analysis: Analysis, table: pa.Table) -> list[np.ndarray]:
    found = Evaluator([dimension.bound for dimension in analysis.dimensions])(table)
    return [d.of(values) for d, values in zip(analysis.dimensions, found, strict=True)]


def test_figure_7_all_possible_fragments() -> None:
    rows = [dict(zip("abc", flags, strict=True)) for flags in product([False, True], repeat=3)]
    flags = pa.Table.from_pylist(rows)
    analysis = analyze([bind_text(name, flags.schema) for name in "abc"])
    shape = analysis.joined(range(3))
    fragments = shape.fragments(ranks(analysis, flags))
    assert fragments.signatures.tolist() == [[bits] for bits in range(8)]
    # Rows count up with a as the highest digit; predicate a is the signature's lowest bit.
    assert fragments.ids.tolist() == [0, 4, 2, 6, 1, 5, 3, 7]


def test_fragment_0_is_there_without_tuples() -> None:
    table = pa.table({"vol": [5, 15, 25, 30]})
    analysis = analyze([bind_text(text, table.schema) for text in ("vol > 1", "vol > 20")])
    fragments = analysis.shapes[0].fragments(ranks(analysis, table))
    assert fragments.signatures.tolist() == [[0], [1], [3]]
    assert fragments.ids.tolist() == [1, 1, 2, 2]


def table_8(indices: list[str], values: list[str]) -> list[str]:
    members = [f"{sign}{index}" for index in indices for sign in ("", "NOT ")]
    constants = {
        "vol": [1000, 50000],
        "vol * price": [1e4, 1e6],
        "abs(price - cp) / cp": [0.01, 0.05],
    }
    return [
        " AND ".join([*([member] if member else []), f"{value} {operator} {constant}"])
        for member in members or [""]
        for value in values
        for operator in "<>"
        for constant in constants[value]
    ]


def test_table_8_without_joined_columns_has_one_shape_per_value() -> None:
    texts = table_8([], ["vol", "vol * price"])
    analysis = analyze([bind_text(text, TRADES) for text in texts])
    assert len(analysis.predicates) == len(texts) == 8
    assert [shape.places for shape in analysis.shapes] == [(0,), (1,)]
    vol, value = analysis.dimensions
    assert (vol.bound.key, vol.cuts) == ("vol", (1000, 1001, 50000, 50001))
    assert not value.can_fail
    # Every threshold is a run of ranks from one end.
    assert [analysis.shapes[0].box(i) for i in range(4)] == [
        (((0, 1),),),
        (((0, 3),),),
        (((2, 5),),),
        (((4, 5),),),
    ]


def test_table_8_with_joined_columns_has_nine_shapes() -> None:
    texts = table_8(INDICES, ["vol", "vol * price", "abs(price - cp) / cp"])
    analysis = analyze([bind_text(text, JOINED) for text in texts])
    assert len(analysis.predicates) == len(texts) == 72
    assert len(analysis.shapes) == 9
    assert {len(shape.members) for shape in analysis.shapes} == {8}
    assert [dimension.bound.key for dimension in analysis.dimensions] == [
        "abs(price - cp) / cp",
        "r1000",
        "r2000",
        "r3000",
        "vol",
        "vol * price",
    ]
    # A closing price of 0 makes the change fail: that is a rank too, and no row by row predicate.
    assert [dimension.can_fail for dimension in analysis.dimensions] == [True] + [False] * 5
    for shape in analysis.shapes:
        assert all(shape.box(i) is not None for i in range(8))
        assert shape.size == shape.dimensions[0].size * shape.dimensions[1].size


def test_table_8_failures_are_those_of_the_rows() -> None:
    texts = table_8(["r3000"], ["abs(price - cp) / cp"])
    bounds = [bind_text(text, JOINED) for text in texts]
    rows = list(product([True, False, None], [0.0, 10.0, None], [9.0, 10.05, None]))
    table = pa.table(
        {
            "symbol": ["x"] * len(rows),
            "price": pa.array([row[2] for row in rows], pa.float64()),
            "vol": [1] * len(rows),
            "cp": pa.array([row[1] for row in rows], pa.float64()),
            **{index: pa.array([row[0] for row in rows], pa.bool_()) for index in INDICES},
        }
    )
    analysis = analyze(bounds)
    [shape] = analysis.shapes
    columns = ranks(analysis, table)
    assert shape.can_fail
    for number, evaluated in enumerate(Evaluator(bounds)(table)):
        truth = evaluated.values.fill_null(False).to_pylist()
        assert shape.truth(columns)[:, number].tolist() == truth
        assert evaluated.errors is not None
        assert shape.failures(columns)[:, number].tolist() == evaluated.errors.to_pylist()
