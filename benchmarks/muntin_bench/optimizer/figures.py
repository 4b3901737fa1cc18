"""Plan costs by technique over the thesis's parameters: Figures 42 to 46.

Section 7.3 of "Algorithms and Optimizations for Incremental Window-Based Aggregations".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from muntin.planner.costs.formula import TECHNIQUES
from muntin.planner.trees.tri_weave import tri_weave
from muntin.planner.trees.weave_share import weave_share
from muntin.testing.workload import Workload, generate
from muntin_bench.report import Check, Plot, Section

OPTIMIZERS = {"WeaveShare": weave_share, "TriWeave": tri_weave}
# The middle of all experiments (Table 12); slides are the divisors of the longest.
_MIDDLE: dict[str, Any] = {
    "queries": 100, "max_slide": 1000, "overlap": 10_000, "rate": 1.0, "skew": 0.0
}  # fmt: skip


@dataclass(frozen=True)
class Figure:
    """What a figure varies, and how many times as much Panes cost as SlickDeque in the thesis."""

    number: int
    varied: str
    values: tuple[float, ...]
    thesis: float

    @property
    def name(self) -> str:
        """What is varied, in words."""
        return self.varied.replace("_", " ")


FIGURES = (
    Figure(42, "queries", (1, 10, 100, 1000, 10_000), 5000),
    Figure(43, "max_slide", (10, 100, 1000, 10_000, 100_000), 4300),
    Figure(44, "overlap", (100, 1000, 10_000, 100_000, 1_000_000), 270_000),
    Figure(45, "rate", (0.01, 0.1, 1, 10, 100), 3000),
    Figure(46, "skew", (-1, -0.5, 0, 0.5, 1), 4200),
)

Costs = dict[tuple[str, str, float], float]


def figure_sections(
    seeds: Sequence[int], figures: Iterable[Figure] = FIGURES
) -> tuple[list[Section], list[Check], list[Plot]]:
    """Costs in operations per time unit, and how many times Panes cost what SlickDeque does."""
    sections, plots, summary = [], [], []
    largest = 0.0
    for figure in figures:
        costs = costs_of(figure, seeds)
        sections.append(_table(figure, costs))
        plots += [_plot(figure, optimizer, costs) for optimizer in OPTIMIZERS]
        ratio = max(_ratios(figure, costs))
        largest = max(largest, ratio)
        gain = fmean(
            1 - costs["TriWeave", technique, value] / costs["WeaveShare", technique, value]
            for technique in TECHNIQUES
            for value in figure.values
        )
        summary.append(
            (
                f"{figure.number}, {figure.name}",
                f"{ratio:,.0f}",
                f"{figure.thesis:,.0f}",
                f"{gain:.1%}",
            )
        )
    sections.append(
        Section(
            "Figures 42 to 46: Panes over the cheaper SlickDeque, and what TriWeave takes off",
            ("varied", "at most", "thesis", "TriWeave below WeaveShare"),
            tuple(summary),
        )
    )
    promise = "Panes cost up to five orders of magnitude more than SlickDeque"
    return sections, [Check(promise, 1e5, largest, least=True)], plots


def costs_of(figure: Figure, seeds: Sequence[int]) -> Costs:
    """The mean cost over some seeds, by optimizer, technique and value."""
    found: Costs = {}
    for value in figure.values:
        loads = [_load(figure, value, seed) for seed in seeds]
        for name, optimize in OPTIMIZERS.items():
            for technique in TECHNIQUES:
                found[name, technique, value] = fmean(
                    optimize(load.queries, load.rate, technique).total for load in loads
                )
    return found


def _load(figure: Figure, value: float, seed: int) -> Workload:
    whole = figure.varied in ("queries", "max_slide", "overlap")
    varied = {figure.varied: int(value) if whole else value}
    return generate(**{**_MIDDLE, **varied}, slides="factors", seed=seed)


def _ratios(figure: Figure, costs: Costs) -> list[float]:
    return [
        costs[name, "panes", value]
        / min(costs[name, technique, value] for technique in TECHNIQUES if "slick" in technique)
        for name in OPTIMIZERS
        for value in figure.values
    ]


def _table(figure: Figure, costs: Costs) -> Section:
    rows = tuple(
        (
            f"{name}, {technique}",
            *(f"{costs[name, technique, value]:,.4g}" for value in figure.values),
        )
        for name in OPTIMIZERS
        for technique in TECHNIQUES
    )
    columns = ("plan", *(f"{value:,g}" for value in figure.values))
    return Section(
        f"Figure {figure.number}: operations per time unit by {figure.name}", columns, rows
    )


def _plot(figure: Figure, optimizer: str, costs: Costs) -> Plot:
    # Axes are logarithmic: a skew, which may be negative, is drawn as the power of two of itself.
    power = figure.varied == "skew"
    lines: dict[str, tuple[tuple[float, float], ...]] = {
        technique: tuple(
            (2.0**value if power else float(value), costs[optimizer, technique, value])
            for value in figure.values
        )
        for technique in TECHNIQUES
    }
    return Plot(
        f"figure-{figure.number}-{optimizer.lower()}",
        f"Figure {figure.number}, {optimizer}: plan cost by {figure.name}",
        f"2 to the power of the {figure.name}" if power else figure.name,
        "operations per time unit",
        lines,
    )
