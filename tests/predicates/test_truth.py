"""Ranks, cells and shapes give every row the answer that evaluating the condition gives it."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from muntin.expressions import BindingError, Bound, Evaluator, bind_text
from muntin.predicates import Analysis, analyze
from predicates.random_predicates import SCHEMA, conditions, tables


def bound_or_none(text: str) -> Bound | None:
    try:
        return bind_text(text, SCHEMA)
    except BindingError:
        return None


def expected(bounds: list[Bound], table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Per row and condition: whether it is true, and whether it failed."""
    truth, failed = [], []
    for found in Evaluator(bounds)(table):
        truth.append(found.values.fill_null(False).to_numpy(zero_copy_only=False))
        no = np.zeros(table.num_rows, bool)
        failed.append(no if found.errors is None else found.errors.to_numpy(zero_copy_only=False))
    return np.array(truth, bool).T, np.array(failed, bool).T


def rank_columns(analysis: Analysis, table: pa.Table) -> list[np.ndarray]:
    found = Evaluator([dimension.bound for dimension in analysis.dimensions])(table)
    pairs = zip(analysis.dimensions, found, strict=True)
    return [dimension.of(evaluated) for dimension, evaluated in pairs]


def by_shapes(analysis: Analysis, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    ranks = rank_columns(analysis, table)
    rows = table.num_rows
    truth = np.zeros((rows, len(analysis.predicates)), bool)
    failed = np.zeros_like(truth)
    for shape in analysis.shapes:
        columns = [ranks[place] for place in shape.places]
        cells = shape.cells(columns, rows)
        count = int(cells.ids.max()) + 1
        truth[:, shape.members] = shape.truth(cells.ranks, count)[cells.ids]
        failed[:, shape.members] = shape.failures(cells.ranks, count)[cells.ids]
    index = list(analysis.index)
    return truth[:, index], failed[:, index]


@settings(max_examples=150)
@given(st.lists(conditions, min_size=1, max_size=8), tables())
def test_cells_answer_as_rows_do(texts: list[str], table: pa.Table) -> None:
    bounds = [bound for bound in map(bound_or_none, texts) if bound is not None]
    analysis = analyze(bounds)
    if not bounds:
        return
    truth, failed = expected(bounds, table)
    found, found_failed = by_shapes(analysis, table)
    for column, bound in enumerate(bounds):
        np.testing.assert_array_equal(found[:, column], truth[:, column], bound.key)
        np.testing.assert_array_equal(found_failed[:, column], failed[:, column], bound.key)


@settings(max_examples=100)
@given(st.lists(conditions, min_size=1, max_size=5), tables(100))
def test_boxes_keys_and_joined_shapes_agree_with_truth(texts: list[str], table: pa.Table) -> None:
    bounds = [bound for bound in map(bound_or_none, texts) if bound is not None]
    analysis = analyze([*bounds, None])
    ranks = rank_columns(analysis, table)
    separate, _ = by_shapes(analysis, table)
    joint = analysis.joined(range(len(analysis.shapes)))
    columns = [ranks[place] for place in joint.places]
    truth = joint.truth(columns, table.num_rows)
    for number, member in enumerate(joint.members):
        place = analysis.index.index(member)
        np.testing.assert_array_equal(truth[:, number], separate[:, place])
        box = joint.box(number)
        if box is not None:
            inside = np.ones(table.num_rows, bool)
            for intervals, column in zip(box, columns, strict=True):
                inside &= np.any([(low <= column) & (column < high) for low, high in intervals], 0)
            np.testing.assert_array_equal(inside, truth[:, number])
    if joint.has_keys and joint.dimensions:
        for column, again in zip(columns, joint.ranks_of(joint.keys(columns)), strict=True):
            np.testing.assert_array_equal(column, again)


@given(st.lists(conditions, min_size=1, max_size=4), tables(10))
def test_pickled_analysis_is_equal_and_works(texts: list[str], table: pa.Table) -> None:
    bounds = [bound for bound in map(bound_or_none, texts) if bound is not None]
    analysis = analyze(bounds)
    by_shapes(analysis, table)
    again = pickle.loads(pickle.dumps(analysis))
    assert again == analysis
    np.testing.assert_array_equal(by_shapes(again, table)[0], by_shapes(analysis, table)[0])
