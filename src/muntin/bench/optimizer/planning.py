"""How long planning takes for the largest sets of queries."""

from __future__ import annotations

import time
from dataclasses import dataclass

from muntin.bench.report import Check, Section
from muntin.optimizer.weave_share import weave_share
from muntin.optimizer.workload import generate


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
