"""All figures and tables that only this benchmark repeats, with the papers' numbers beside ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from muntin_bench import progress
from muntin_bench.papers.claims import Claim, Part, claims_table
from muntin_bench.report import Check, Plot, Report, Section

PAPERS = {
    "sharing": "On-the-Fly Sharing for Streamed Aggregation",
    "panes": "No Pane, No Gain",
    "operators": "Sliding Window Query Processing over Data Streams",
    "report": "Aggregate Sharing in Stream Databases",
    "thesis": "Algorithms and Optimizations for Incremental Window-Based Aggregations",
}


@dataclass(frozen=True)
class Scale:
    """How much to measure; windows are powers of two, budgets are seconds."""

    queries: int = 256
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    trades: int = 1_138_636
    rows: int = 500_000
    rows_per_pane: tuple[int, ...] = (1, 5, 10, 20, 50, 100)
    panes: tuple[int, ...] = (2, 5, 10, 20)
    repeats: int = 3
    longest: int = 120
    counted: tuple[int, ...] = (64, 256)
    windows: tuple[int, ...] = tuple(range(0, 23, 2))
    taken: int = 1 << 20
    ranges: tuple[int, ...] = tuple(range(11))
    answers: int = 1 << 18
    steps: int = 1_000_000
    powers: tuple[int, ...] = (10, 14, 18, 22)
    slides: tuple[int, ...] = (2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 25, 30, 40, 50)
    planned: int = 1_000_000
    planning: float = 3.0
    overlap: int = 10_000
    running: float = 2.0
    spans: tuple[int, ...] = (500, 2000, 8000)
    joined: int = 20_000
    intervals: tuple[int, ...] = (1, 5, 10, 20, 50, 100)
    scanned: tuple[int, ...] = (10, 25, 50, 75, 100)
    movements: int = 60
    tuples: int = 1000
    registered: int = 1000
    starts: int = 10


FULL = Scale()
QUICK = Scale(
    queries=128, seeds=(0,), trades=100_000, rows=50_000, rows_per_pane=(1, 5, 20, 50),
    panes=(2, 5, 10), repeats=3, longest=40, counted=(64,), windows=tuple(range(0, 17, 4)),
    taken=1 << 17, ranges=(0, 1, 2, 4, 6, 8), answers=1 << 16, steps=100_000, powers=(10, 14),
    slides=(2, 6, 10, 14, 18, 30), planning=0.5, overlap=1000, running=0.3, spans=(250, 1000),
    joined=4000, intervals=(1, 5, 20, 100),
    scanned=(10, 50, 100), movements=20, registered=64,
    starts=1,
)  # fmt: skip


def run(quick: bool = False) -> Report:
    """Repeat them, in full or in two minutes; the papers' numbers are for the full sizes."""
    return report(QUICK if quick else FULL)


def report(scale: Scale) -> Report:
    """All parts, paper by paper, each followed by what agrees."""
    sections: list[Section] = []
    checks: list[Check] = []
    plots: list[Plot] = []
    for paper, named in parts(scale).items():
        claims: list[Claim] = []
        for name, make in named.items():
            progress.step(f"{PAPERS[paper]}: {name}")
            part = make()
            sections += part.sections
            claims += part.claims
            plots += part.plots
        sections.append(claims_table(f"{PAPERS[paper]}: what agrees", claims))
        share = sum(claim.holds for claim in claims) / len(claims)
        checks.append(
            Check(f"{PAPERS[paper]}: claims that agree", 50, 100 * share, "%", least=True)
        )
    return Report(
        "papers",
        "seeded queries and rows" + ("" if scale == FULL else "; the papers' sizes are larger"),
        sections=tuple(sections),
        checks=tuple(checks),
        plots=tuple(plots),
        seeds=scale.seeds,
    )


def parts(scale: Scale) -> dict[str, dict[str, Callable[[], Part]]]:
    """What is repeated, by paper and name; modules with kernels are imported when they run."""
    from muntin_bench.papers import (  # noqa: PLC0415
        frequent_items,
        isolation,
        join_orders,
        paned_windows,
        shared_answers,
        shared_fragments,
        shared_slices,
        update_patterns,
    )
    from muntin_bench.papers.thesis import (  # noqa: PLC0415
        edge_operations,
        estimated_rates,
        every_range,
        memory,
        node_costs,
        operation_counts,
        plan_times,
        single_query,
        single_steps,
        slicing_counts,
    )

    windows, ranges = ([1 << k for k in powers] for powers in (scale.windows, scale.ranges))
    return {
        "sharing": {
            "Figure 4": lambda: shared_slices.figure_4(scale.queries, scale.seeds),
            "Figure 10": lambda: shared_fragments.figure_10(scale.trades, scale.queries),
        },
        "panes": {
            "Figure 3": lambda: paned_windows.figure_3(
                scale.rows, scale.rows_per_pane, scale.panes, scale.repeats
            ),
        },
        "operators": {
            "Figures 3.8 to 3.15": lambda: update_patterns.figures(scale.spans, scale.repeats),
            "Figures 5.2 to 5.4": lambda: join_orders.figures(scale.joined, scale.intervals),
            "Figure 6.3": lambda: frequent_items.figure_6_3(scale.starts),
            "Figures 7.8 to 7.14": lambda: isolation.figures(scale.scanned, scale.movements),
        },
        "report": {
            "Figures 3 to 6, 9, 10": lambda: shared_answers.figures(
                scale.tuples, scale.registered, scale.repeats
            ),
        },
        "thesis": {
            "Table 1": lambda: slicing_counts.table_1(scale.longest),
            "Tables 2 to 4": lambda: operation_counts.tables_2_to_4(scale.counted),
            "Figures 16, 23, 24": lambda: single_query.figures_16_23_24(
                windows, scale.taken, scale.repeats
            ),
            "Figures 17, 18, 25, 26": lambda: every_range.figures_17_18_25_26(
                ranges, scale.answers, scale.repeats
            ),
            "Figures 27, 28": lambda: single_steps.figures_27_28(scale.steps),
            "Figures 19, 29": lambda: memory.figures_19_29(scale.powers),
            "Figure 34": lambda: edge_operations.figure_34(scale.slides),
            "Figures 35 to 39": lambda: plan_times.figures_35_to_39(
                scale.planning, plan_times.up_to(scale.planned)
            ),
            "Figure 41": lambda: node_costs.figure_41(scale.seeds),
            "Figures 47, 48": lambda: estimated_rates.figures_47_48(scale.running, scale.overlap),
        },
    }
