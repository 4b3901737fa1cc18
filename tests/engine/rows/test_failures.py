"""Values that failed: counted for the queries that wanted them, and for no other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from engine.rows.scopes import SCHEMA, planned, scope_of
from muntin.engine.rows.failures import count_errors

# The third row has no w, and 8 / (w - 4) fails in the second and in the last.
ROWS = pa.table(
    {"t": range(5), "k": ["a"] * 5, "v": [1, 2, 3, 4, 5], "w": [1, 4, None, 2, 4]}, SCHEMA
)
STRATEGIES: list[dict[str, Any]] = [{}, {"strategy": "fragments"}, {"strategy": "slices"}]


def counted(*selects: str, placed: list[bool] | None = None, **options: Any) -> dict[str, int]:
    named = [f"CREATE QUERY q{n} AS {select}" for n, select in enumerate(selects)]
    plan = planned(*named, **options)
    rows = np.array([True] * 5 if placed is None else placed)
    return dict(count_errors(plan, 0, [rows] * len(plan.slicings), scope_of(plan, ROWS)))


@pytest.mark.parametrize("options", STRATEGIES)
def test_only_rows_that_a_query_selects_count(options: Any) -> None:
    found = counted(
        "SELECT sum(8 / (w - 4)) {window}",
        "SELECT sum(8 / (w - 4)) {window} WHERE v < 3",
        "SELECT sum(8 / (w - 4)) {window} WHERE v = 1",
        "SELECT sum(v) {window}",
        **options,
    )
    assert found == {"q0": 2, "q1": 1}


@pytest.mark.parametrize("options", STRATEGIES)
def test_a_value_that_several_aggregates_read_fails_once(options: Any) -> None:
    text = "SELECT sum(8 / (w - 4)), max(8 / (w - 4)), count(*) {window}"
    assert counted(text, **options) == {"q0": 2}


@pytest.mark.parametrize("options", STRATEGIES)
def test_predicates_and_groups_fail_too(options: Any) -> None:
    found = counted(
        "SELECT sum(v) {window} WHERE 8 / (w - 4) < 0",
        "SELECT 8 / (w - 4) AS g, sum(v) {window} GROUP BY 8 / (w - 4)",
        "SELECT sum(v) FILTER (WHERE 8 / (w - 4) < 0) {window} WHERE v > 2",
        **options,
    )
    assert found == {"q0": 2, "q1": 2, "q2": 1}


@pytest.mark.parametrize("options", STRATEGIES)
def test_a_filter_guards_its_aggregate(options: Any) -> None:
    text = "SELECT sum(8 / (w - 4)) FILTER (WHERE w <> 4), count(*) {window}"
    assert counted(text, **options) == {}


def test_rows_without_a_slice_do_not_count() -> None:
    text = "SELECT sum(8 / (w - 4)) {window}"
    assert counted(text, placed=[True, False, True, True, True]) == {"q0": 1}
