"""How long planning takes for the largest sets of queries, and how many trees come of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from muntin.planner.trees.weave_share import weave_share
from muntin.testing.workload import generate
from muntin_bench.report import Check, Section


@dataclass(frozen=True)
class Large:
    """A set of queries that has to be planned in a minute, by its parameters."""

    queries: int
    max_slide: int

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.queries:,} queries with slides up to {self.max_slide:,}"


FULL = (Large(1_000_000, 1000), Large(10_000, 100_000))
QUICK = (Large(100_000, 1000), Large(2_000, 100_000))
RATE, OVERLAP = 0.002, 10
# Trees that the thesis counts at the end of WeaveShare, by rate: section 5.4.2.3.
THESIS_TREES = {100: 71, 400: 29, 900: 15, 10_000: 4, 100_000: 1, 1_000_000: 1}


def planning_section(sets: tuple[Large, ...]) -> tuple[Section, list[Check]]:
    """Processor seconds from queries to trees, once loops are compiled."""
    weave_share(generate(2000, 1000, RATE, 0.5, OVERLAP).queries, RATE, "panes")
    rows, checks = [], []
    for each in sets:
        # The thesis's skew; slides from a wide range are drawn evenly.
        skew = 0.5 if each.max_slide == 1000 else 0.0
        load = generate(each.queries, each.max_slide, RATE, skew, OVERLAP)
        begin = time.process_time()
        plan = weave_share(load.queries, load.rate, "panes")
        taken = time.process_time() - begin
        trees = f"{len(plan.trees):,}"
        rows.append((each.name, f"{taken:.2f}", trees, f"{plan.unshared / plan.total:.3g}"))
        checks.append(Check(f"planning {each.name} on one core", 60, taken, " s"))
    columns = ("queries", "seconds", "trees", "times cheaper than unshared")
    return Section(
        f"planning at a rate of {RATE} with overlaps up to {OVERLAP}", columns, tuple(rows)
    ), checks


def trees_section(seeds: Sequence[int]) -> Section:
    """Trees of WeaveShare as the rate grows, for the third row of the thesis's Table 5.

    Workloads and costs alone decide them, so they tell whether ours are those of the thesis.
    """
    rows = []
    for rate, thesis in THESIS_TREES.items():
        loads = [generate(1000, 100, rate, 1, 1000, seed=seed) for seed in seeds]
        trees = fmean(len(weave_share(load.queries, rate, "panes").trees) for load in loads)
        rows.append((f"{rate:,}", f"{trees:.1f}", str(thesis)))
    title = "trees that WeaveShare forms of 1,000 queries with slides up to 100, by rate"
    return Section(title, ("rate", "ours", "thesis"), tuple(rows))
