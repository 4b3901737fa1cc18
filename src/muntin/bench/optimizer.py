"""The optimizer: edge counts, plan costs, placement, planning times, and estimates put to test."""

from __future__ import annotations

import os
from dataclasses import dataclass

from muntin.bench.optimizer_edges import edge_sections
from muntin.bench.optimizer_engine import engine_sections
from muntin.bench.optimizer_estimates import estimate_sections
from muntin.bench.optimizer_figures import FIGURES, Figure, figure_sections
from muntin.bench.optimizer_placement import placement_sections
from muntin.bench.optimizer_planning import FULL as LARGE
from muntin.bench.optimizer_planning import SMALL as LESS
from muntin.bench.optimizer_planning import Large, planning_section
from muntin.bench.optimizer_runs import engine_loads
from muntin.bench.report import Report

QUICK_VARIABLE = "MUNTIN_BENCH_QUICK"


@dataclass(frozen=True)
class Scale:
    """How much to measure; `combinations` of Table 8, all if None, and every n-th engine load."""

    slides: tuple[int, ...] = (2, 3, 4, 6, 8, 12, 16)
    seeds: tuple[int, ...] = (0, 1, 2)
    figures: tuple[Figure, ...] = FIGURES
    combinations: int | None = None
    planned: tuple[Large, ...] = LARGE
    rows: int = 100_000
    every: int = 1
    ticks: int = 200_000
    repeats: int = 5


FULL = Scale()
SMALL = Scale((2, 3, 6), (0,), FIGURES[2:3], 2, LESS, 5000, 5, 10_000, 1)


def run(scale: Scale | None = None) -> Report:
    """All parts, on one core each; promises are made for the full scale."""
    if scale is None:
        scale = SMALL if os.environ.get(QUICK_VARIABLE) else FULL
    edges = edge_sections(scale.slides, scale.seeds)
    figures, figure_checks, plots = figure_sections(scale.seeds, scale.figures)
    placed, placement_checks = placement_sections(scale.combinations)
    planned, planning_checks = planning_section(scale.planned)
    estimates, estimate_checks = estimate_sections(scale.ticks, scale.repeats)
    loads = engine_loads()[:: scale.every]
    engine, engine_checks = engine_sections(loads, scale.rows, scale.repeats)
    data = "seeded queries and streams; seconds are of one core's processor time"
    return Report(
        "optimizer",
        data if scale == FULL else f"{data}; promises are made for more",
        sections=(*edges, *figures, *placed, planned, *estimates, *engine),
        checks=(
            *figure_checks,
            *placement_checks,
            *planning_checks,
            *estimate_checks,
            *engine_checks,
        ),
        plots=tuple(plots),
    )
