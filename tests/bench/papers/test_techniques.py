"""The thesis's tables and figures of techniques: counts are exact, sides answer the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from muntin.aggregators.aggregator import Aggregator
from muntin_bench.aggregators.work import workloads
from muntin_bench.papers.thesis import every_range, memory, single_query, single_steps
from muntin_bench.papers.thesis.operation_counts import TABLE_4, Row, count, tables_2_to_4
from muntin_bench.papers.thesis.slicing_counts import table_1


def test_table_1_is_exact() -> None:
    part = table_1(24)
    assert {claim.verdict for claim in part.claims} == {"agrees"}
    assert part.sections[1].rows[1] == ("range 14, slide 8", "7", "3", "2")


@pytest.mark.parametrize("row", TABLE_4, ids=lambda row: row.technique)
def test_operations_of_one_range_are_those_of_table_4(row: Row) -> None:
    found = count(row, 16)
    assert found.amortised <= row.amortised(16)
    assert row.worst(16) - 1 <= found.worst <= row.worst(16)


def test_only_the_stack_of_flatfit_is_above_the_tables() -> None:
    part = tables_2_to_4((64,))
    differing = [claim for claim in part.claims if claim.verdict == "differs"]
    assert [claim.what.split(",")[0] for claim in differing] == ["FlatFIT"]
    assert differing[0].ours.endswith("above: space")


RATES = {
    **{("flatfat", window): 10.0 for window in (1, 16, 64)},
    **{("flatfit", window): float(window) for window in (1, 16, 64)},
    **{(each, w): 5.0 for each in ("panes", "bint", "two_stacks", "daba") for w in (1, 16, 64)},
    **{("slickdeque_noninv", window): 20.0 for window in (1, 16, 64)},
}


def test_single_query_claims_come_from_the_rates() -> None:
    average, most, first = single_query.flatfit_claims(RATES, (1, 16, 64))
    assert (average.ours, most.ours, first.ours) == ("2.7", "6.4", "16")
    assert [each.verdict for each in (average, most, first)] == ["agrees", "differs", "agrees"]
    mean, largest = single_query.slick_claims("max", RATES, (1, 16, 64))
    assert (mean.ours, largest.ours) == ("19%", "100%")
    stay, fall = single_query.group_claims("max", RATES, (1, 16, 64))
    assert (stay.verdict, fall.verdict) == ("agrees", "differs")


def test_rates_are_measured_for_all_techniques() -> None:
    found = single_query.slides_a_second(workloads()["max"], ("panes", "flatfit"), 8, 64, 1)
    assert found.keys() == {("panes", 8), ("flatfit", 8)}
    assert min(found.values()) > 0


def test_every_range_is_answered_alike_or_the_benchmark_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work = workloads()["sum"]
    techniques = ("flatfat", "slickdeque_inv")
    assert len(every_range.slides_a_second(work, techniques, 4, 64, 1)) == 2
    right = Aggregator.run

    def wrong(self: Aggregator, values: Any) -> Any:
        return right(self, values) + (self.card.name == "slickdeque_inv")

    monkeypatch.setattr(Aggregator, "run", wrong)
    with pytest.raises(AssertionError, match="slickdeque_inv of sum, window 4"):
        every_range.slides_a_second(work, techniques, 4, 64, 1)


def test_steps_are_summed_up_without_the_slowest() -> None:
    taken = np.concatenate([np.arange(1.0, 100_000), [1e9] * 6])
    kept = single_steps.kept(taken)
    assert kept.max() == 1e9
    assert len(taken) - len(kept) == 5
    assert single_steps.kept(taken[:-1]).max() < 1e9


def test_memory_is_that_of_the_arrays() -> None:
    part = memory.figures_19_29((5,))
    assert part.sections[0].columns == ("window", "32", "33", "48")
    assert {claim.where for claim in part.claims} == {"Figure 19", "Figure 29"}
