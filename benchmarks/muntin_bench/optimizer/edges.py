"""Runtimes of counting edges: the bit set, Formula F1 and ours, as in the thesis's Table 6.

Section 5.4 of "Algorithms and Optimizations for Incremental Window-Based Aggregations". There an
optimizer is timed with either; here one count of a tree's edges is, which is what differs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from muntin.errors import WindowError
from muntin.planner.edges.counts import BITSET_LIMIT, EDGE_METHODS, EdgeMethod, edge_count
from muntin.planner.edges.f1 import F1_LIMIT
from muntin.testing.workload import Slides, generate
from muntin.windows.edges import EdgeClass
from muntin_bench.report import Section

# A count is repeated until it has taken so long; one is enough where it takes longer.
_PATIENCE = 0.002


@dataclass(frozen=True)
class Experiment:
    """One line of the thesis's Table 5, with what its Table 6 found.

    `thesis` has the mean and the largest ratio of the bit set's time to F1's.
    """

    title: str
    max_slide: int
    skew: float
    slides: Slides
    thesis: str


# Rate and overlap, which the other two lines vary, change what is merged, not how it is counted.
EXPERIMENTS = (
    Experiment("1, any slides up to 1,000", 1000, 0.5, "normal", "350, 790"),
    Experiment("2, primes up to 800", 800, 3.0, "prime", "2,200, 10,000"),
    Experiment("3, any slides up to 100", 100, 1.0, "normal", "3,800, 16,000"),
    Experiment("4, any slides up to 500", 500, 2.25, "normal", "14,000, 60,000"),
)


def edge_sections(sizes: Sequence[int], seeds: Sequence[int]) -> list[Section]:
    """Seconds by number of slides, and the ratios."""
    columns = ("slides of a tree", "bit set", "F1", "auto", "bit set / F1", "F1 / auto")
    sections, summary = [], []
    for experiment in EXPERIMENTS:
        ratios: list[float] = []
        rows = []
        for size in sizes:
            found = [_timed(each) for each in trees(experiment, size, seeds)]
            ratios += [each["bitset"] / each["f1"] for each in found if each.keys() == _ALL]
            rows.append((str(size), *_cells(found)))
        sections.append(Section(f"Table 6, experiment {experiment.title}", columns, tuple(rows)))
        mean, most = (f"{of(ratios):,.0f}" for of in (fmean, max)) if ratios else ("-", "-")
        summary.append((experiment.title, mean, most, experiment.thesis))
    sections.append(
        Section(
            f"Table 6: bit set / F1 where the bit set ends; it takes at most {BITSET_LIMIT:,} "
            f"positions here, F1 {F1_LIMIT:,} terms, and - is what they refuse",
            ("experiment", "on average", "at most", "thesis: average, most"),
            tuple(summary),
        )
    )
    return sections


_ALL = set(EDGE_METHODS)


def trees(experiment: Experiment, size: int, seeds: Iterable[int]) -> Iterator[list[EdgeClass]]:
    """Sets of so many different slides, drawn as the experiment draws them."""
    for seed in seeds:
        load = generate(
            200 * size, experiment.max_slide, 1.0, experiment.skew, 10, experiment.slides, seed=seed
        )
        slides = list(dict.fromkeys(query.slide for query in load.queries if query.slide > 1))
        yield [(slide, 0) for slide in slides[:size]]


def _timed(classes: list[EdgeClass]) -> dict[str, float]:
    """Processor seconds of the methods that do not refuse; all counts are equal."""
    seconds: dict[str, float] = {}
    counts = set()
    for method in EDGE_METHODS:
        try:
            seconds[method], count = _seconds(classes, method)
        except WindowError:
            continue
        counts.add(count)
    assert len(counts) == 1, f"{classes} have {counts} edges"
    return seconds


def _seconds(classes: list[EdgeClass], method: EdgeMethod) -> tuple[float, int]:
    begin = time.process_time()
    runs = 0
    while True:
        count = edge_count(classes, method)
        runs += 1
        taken = time.process_time() - begin
        if taken > _PATIENCE:
            return taken / runs, count


def _cells(found: Sequence[dict[str, float]]) -> Iterator[str]:
    """Mean seconds, and mean ratios, where all sets could be counted."""
    for method in ("bitset", "f1", "auto"):
        every = all(method in each for each in found)
        yield f"{fmean(each[method] for each in found):.2g} s" if every else "-"
    for over, under in (("bitset", "f1"), ("f1", "auto")):
        every = all(over in each and under in each for each in found)
        yield f"{fmean(each[over] / each[under] for each in found):,.3g}" if every else "-"
