"""Both sides of the benchmark of joins answer alike; what it times is checked on little data."""

from __future__ import annotations

import pytest

from muntin.planner.rows.rewritings.costs import CONSTANTS
from muntin_bench.operators import benchmark
from muntin_bench.operators.constants import measured


@pytest.mark.parametrize("work", benchmark.WORKLOADS, ids=lambda work: work.name)
def test_both_sides_give_the_same_answers(work: benchmark.Workload) -> None:
    tables = benchmark.streams(4000, work)
    window = int(20_000 * work.share)
    ours, theirs = benchmark.ours(tables, window), benchmark.theirs(tables, window)
    assert ours.num_rows > 0
    benchmark.check_same(ours, theirs)


def test_every_constant_by_which_plans_are_weighed_is_measured() -> None:
    assert measured(rows=50, repeats=1).keys() == CONSTANTS.keys()
