"""The optimizer: edge counts, plan costs, placement, planning times, and estimates put to test."""

from __future__ import annotations

from dataclasses import dataclass

from muntin_bench.optimizer.edges import edge_sections
from muntin_bench.optimizer.engine import engine_sections
from muntin_bench.optimizer.estimates import estimate_sections
from muntin_bench.optimizer.figures import FIGURES, Figure, figure_sections
from muntin_bench.optimizer.placement import placement_sections
from muntin_bench.optimizer.planning import FULL as LARGE
from muntin_bench.optimizer.planning import QUICK as LESS
from muntin_bench.optimizer.planning import Large, planning_section, trees_section
from muntin_bench.optimizer.runs import engine_loads
from muntin_bench.progress import step
from muntin_bench.report import Report


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
    ticks: int = 1_000_000
    repeats: int = 5


FULL = Scale()
QUICK = Scale((2, 3, 4, 6, 8), (0,), FIGURES, 32, LESS, 50_000, 5, 500_000, 3)


def run(quick: bool = False) -> Report:
    """All parts, on one core each."""
    return run_at(QUICK if quick else FULL)


def run_at(scale: Scale) -> Report:
    """Measure as much as the scale says."""
    step("edges of trees, counted in three ways")
    edges = edge_sections(scale.slides, scale.seeds)
    step("plan costs by technique")
    figures, figure_checks, plots = figure_sections(scale.seeds, scale.figures)
    step("placement on nodes")
    placed, placement_checks = placement_sections(scale.combinations)
    step("planning large sets of queries")
    planned, planning_checks = planning_section(scale.planned)
    trees = trees_section(scale.seeds)
    step("estimates of the techniques against measurements")
    estimates, estimate_checks = estimate_sections(scale.ticks, scale.repeats)
    step("three plans in the local engine")
    loads = engine_loads()[:: scale.every]
    engine, engine_checks = engine_sections(loads, scale.rows, scale.repeats)
    return Report(
        "optimizer",
        "seeded queries and streams; seconds are of one core's processor time",
        sections=(*edges, *figures, *placed, planned, trees, *estimates, *engine),
        checks=(
            *figure_checks,
            *placement_checks,
            *planning_checks,
            *estimate_checks,
            *engine_checks,
        ),
        plots=tuple(plots),
        seeds=scale.seeds,
    )
