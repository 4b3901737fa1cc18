"""What the paper reports for 256 queries, and what was found here beside it.

The figures are those of the performance study in "On-the-Fly Sharing for Streamed Aggregation".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muntin_bench.report import Check, Section
from muntin_bench.sharing.counts import PAPERS, Counts, spread
from muntin_bench.sharing.grid import Found


@dataclass(frozen=True)
class Reported:
    """Aggregations and seconds of queries that share nothing, and with the paper's strategy."""

    unshared: int
    shared: int
    seconds: tuple[float, float]
    # How many times fewer aggregations `cells` must do than `unshared`.
    target: float


REPORTED = {
    "A": Reported(291_490_816 + 6_813, 1_138_636 + 1_462_391, (50.48, 2.63), 100),
    "B": Reported(116_101_112, 1_094_947 + 6_677_009, (27.25, 3.01), 15),
    "C regular": Reported(100_902_960 + 6_955, 1_138_636 + 2_256_496, (31.19, 3.67), 28),
    "C low sharing": Reported(120_672_210 + 6_812, 1_294_064 + 63_984_043, (34.56, 17.73), 8),
}
_PANED_OVER_PAIRED = 2_340_842 / 1_462_391


def counts_beside_paper(counts: Sequence[Counts], size: int) -> tuple[list[Section], list[Check]]:
    """Aggregations over all seeds, and how many times fewer than those of sharing nothing.

    A promise is held against the seed that does worst.
    """
    ratios: list[tuple[str, ...]] = []
    totals: list[tuple[str, ...]] = []
    checks: list[Check] = []
    for name, reported in REPORTED.items():
        own = [each for each in counts if each.workload == name]
        label = f"{name}, {PAPERS[name]}"
        fewer = [[each.fewer[side] for each in own] for side in (0, 1)]
        paper = f"{reported.unshared / reported.shared:.3g}"
        ratios.append((label, paper, *(spread(side, ".1f") for side in fewer)))
        totals.append(
            (
                label,
                f"{reported.unshared:,}",
                spread(each.unshared for each in own),
                f"{reported.shared:,}",
                spread(each.shared for each in own),
                spread(each.cells for each in own),
            )
        )
        promise = f"{name}, {size} queries, times fewer aggregations than unshared, worst seed"
        checks.append(Check(promise, reported.target, min(fewer[1]), least=True))
    seeds = len({each.seed for each in counts})
    about = f"{size} queries, mean (range) of {seeds} seeds"
    first = "workload, the paper's strategy"
    sections = [
        Section(
            f"times fewer aggregations than unshared: {about}",
            (first, "paper", "here", "cells"),
            tuple(ratios),
        ),
        Section(
            f"aggregations: {about}",
            (first, "unshared: paper", "here", "shared: paper", "here", "cells"),
            tuple(totals),
        ),
    ]
    return sections, checks


def times_beside_paper(found: Sequence[Found], size: int) -> Section:
    """How many times faster than sharing nothing."""
    seconds = {(each.workload, each.side): each.seconds for each in found if each.size == size}
    rows = tuple(
        (
            f"{name}, {PAPERS[name]}",
            f"{reported.seconds[0] / reported.seconds[1]:.3g}",
            f"{seconds[name, 'unshared'] / seconds[name, PAPERS[name]]:.3g}",
            f"{seconds[name, 'unshared'] / seconds[name, 'cells']:.3g}",
        )
        for name, reported in REPORTED.items()
    )
    columns = ("workload, the paper's strategy", "paper", "here", "cells")
    return Section(f"times faster than unshared: {size} queries of one seed", columns, rows)


def analysis(counts: Sequence[Counts], size: int) -> Section:
    """Figures of the paper's analysis, which the rows and the counted operations must bear out."""
    sliced = [each for each in counts if each.workload == "A"]
    picked = [each for each in counts if each.workload == "B"]
    trades = picked[0].trades
    partials = {each.shared - each.paired for each in sliced}
    rows = (
        ("trades", "1,138,636", f"{trades:,}"),
        ("A, partial aggregations of shared pairs", "1,138,636", spread(partials)),
        (
            "A, final aggregations of shared pairs",
            "1,462,391",
            spread(each.paired for each in sliced),
        ),
        (
            "A, final aggregations of panes over pairs",
            f"{_PANED_OVER_PAIRED:.2f}",
            spread((each.paned / each.paired for each in sliced), ".2f"),
        ),
        (
            f"B, predicates of {size} that a trade satisfies",
            "76 to 102",
            spread(each.unshared / trades for each in picked),
        ),
        ("B, trades in 10 minutes", "192,945", f"{trades / 6:,.0f}"),
        (
            "B, fragments in 10 minutes",
            "11,407",
            spread(each.fragments[0] for each in picked),
        ),
        ("B, fragments in the hour", "34,327", spread(each.fragments[1] for each in picked)),
    )
    return Section("the paper's analysis", ("figure", "paper, 256 queries", "here"), rows)
