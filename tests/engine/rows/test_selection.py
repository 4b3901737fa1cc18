"""Which rows partials take in, and by which codes: what the predicates say, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.rows.scopes import planned, scope_of, table
from muntin.engine.rows.selection import Selector
from muntin.plan.selection import Cells, Mask, Signatures

ROWS = table(5, 120)


def holds(threshold: int) -> list[bool]:
    return [value is not None and value > threshold for value in ROWS["v"].to_pylist()]


def test_a_plain_predicate_masks_rows_and_null_is_not_true() -> None:
    plan = planned("SELECT sum(v) {window} WHERE v > 3", strategy="slices")
    (node,) = plan.partials
    assert isinstance(node.selection, Mask)
    selector, scope = Selector(node.selection), scope_of(plan, ROWS)
    where = selector.where(scope)
    assert where is not None
    assert where.tolist() == holds(3)
    assert selector.codes(scope) is None


def test_without_a_predicate_all_rows_are_taken() -> None:
    plan = planned("SELECT sum(v) {window}")
    selector, scope = Selector(plan.partials[0].selection), scope_of(plan, ROWS)
    assert selector.where(scope) is None
    assert selector.codes(scope) is None


def test_a_predicate_that_is_never_true_takes_none() -> None:
    plan = planned("SELECT sum(v) {window} WHERE 1 = 0")
    where = Selector(plan.partials[0].selection).where(scope_of(plan, ROWS))
    assert where is not None
    assert not where.any()


@pytest.mark.parametrize(
    ("options", "kind"), [({}, Cells), ({"strategy": "fragments"}, Signatures)]
)
@pytest.mark.parametrize("count", [2, 70])
def test_codes_tell_which_predicates_hold(options: Any, kind: type, count: int) -> None:
    """70 predicates need two words of a bitmap."""
    thresholds = [(n % 7, n // 7) for n in range(count)]
    plan = planned(
        *(
            f"CREATE QUERY q{n} AS SELECT sum(v) {{window}} WHERE v > {low} AND w >= {least}"
            for n, (low, least) in enumerate(thresholds)
        ),
        **options,
    )
    (node,) = plan.partials
    assert isinstance(node.selection, kind)
    scope = scope_of(plan, ROWS)
    selected = Selector(node.selection).codes(scope)
    assert selected is not None
    assert selected.codes.max() < selected.size
    if isinstance(node.selection, Cells):
        shape = node.selection.shape
        known = shape.truth(shape.ranks_of(np.maximum(selected.codes, 0)))
    else:
        assert selected.signatures is not None
        bits = np.unpackbits(selected.signatures, axis=1, bitorder="little")
        known = bits[np.maximum(selected.codes, 0)]
    pairs = list(zip(ROWS["v"].to_pylist(), ROWS["w"].to_pylist(), strict=True))
    for number, (low, least) in enumerate(thresholds):
        member = plan.finals[number].member
        for row, (v, w) in enumerate(pairs):
            true = v is not None and v > low and w is not None and w >= least
            assert (selected.codes[row] >= 0 and bool(known[row, member])) == true


def test_what_is_derived_is_derived_once() -> None:
    plan = planned("SELECT k, sum(v) {window} WHERE v > 3 GROUP BY k")
    (node,) = plan.partials
    scope = scope_of(plan, ROWS)
    assert scope.groups(node.grouping) is scope.groups(node.grouping)
    groups = scope.groups(node.grouping)
    keys = [groups.keys[0][int(code)].as_py() for code in groups.codes]
    assert keys == ROWS["k"].to_pylist()
