"""Aggregations that strategies do for several sets of queries, each drawn with another seed.

Counts do not depend on the machine, but they do on the queries: sixteen predicates of one seed may
let through twice as many trades as those of another. So they are given as a mean and a range.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from muntin.engine import Progress
from muntin.plan.nodes import Strategy
from muntin_bench.progress import step
from muntin_bench.sharing.data import Market
from muntin_bench.sharing.engine import check_equal, check_rows, prepare
from muntin_bench.sharing.rows import Columns, columns_of, fragments, satisfied
from muntin_bench.sharing.workloads import NAMES, Workload, workload

# What the paper compares with sharing nothing.
PAPERS: dict[str, Strategy] = {
    "A": "slices",
    "B": "fragments",
    "C regular": "shards",
    "C low sharing": "shards",
}


@dataclass(frozen=True)
class Counts:
    """What one set of queries takes; of `unshared` the partial aggregations only.

    The final ones of `unshared` are a few thousand among a hundred million. ``fragments`` are
    those of ten minutes, on average, and of all trades.
    """

    workload: str
    seed: int
    trades: int
    unshared: int
    shared: int
    cells: int
    # Final aggregations of shared panes and of shared pairs.
    paned: int = 0
    paired: int = 0
    fragments: tuple[float, int] = (0.0, 0)

    @property
    def fewer(self) -> tuple[float, float]:
        """How many times fewer the paper's strategy does than `unshared`, and `cells`."""
        return self.unshared / self.shared, self.unshared / self.cells


def count(market: Market, size: int, seeds: Sequence[int]) -> Iterator[Counts]:
    """Run the paper's strategy and `cells` once for each workload and seed, comparing answers."""
    columns = columns_of(market)
    for name in NAMES:
        for seed in seeds:
            step(f"{name}, {size} queries of seed {seed}, counts")
            yield _count(market, workload(name, size, seed), seed, columns)


def _count(market: Market, work: Workload, seed: int, columns: Columns) -> Counts:
    results, cells = prepare(market, work).run()
    check_rows(results, work, columns)
    others, shared = prepare(market, work, PAPERS[work.name]).run()
    check_equal(results, others, f"{work.name}, seed {seed}")
    counts = Counts(
        work.name,
        seed,
        market.trades.num_rows,
        satisfied(work, columns),
        aggregations(shared),
        aggregations(cells),
    )
    if work.name == "A":
        others, paned = prepare(market, work, "slices", "panes").run()
        check_equal(results, others, f"{work.name}, panes, seed {seed}")
        finals = paned.final_aggregations, shared.final_aggregations
        return replace(counts, paned=finals[0], paired=finals[1])
    if work.name == "B":
        each, altogether = fragments(work, columns)
        return replace(counts, fragments=(sum(each) / len(each), altogether))
    return counts


def aggregations(progress: Progress) -> int:
    """Partial and final aggregations together, along cells and along time."""
    return progress.aggregations


def spread(values: Iterable[float], form: str = ",.0f") -> str:
    """The mean, and the range.

    >>> spread([1000, 2000, 6000])
    '3,000 (1,000 to 6,000)'
    """
    found = list(values)
    mean = sum(found) / len(found)
    return f"{mean:{form}} ({min(found):{form}} to {max(found):{form}})"
