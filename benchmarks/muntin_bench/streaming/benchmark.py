"""What a batch costs where much is kept: slides, checkpoints, and windows that all differ."""

from __future__ import annotations

from dataclasses import dataclass

from muntin_bench.conditions import JAVA
from muntin_bench.report import Check, Report, Section
from muntin_bench.streaming.checkpoints import KEPT_FULL, KEPT_QUICK, Kept, kept_sections
from muntin_bench.streaming.own import registered
from muntin_bench.streaming.predicates import (
    ASKED_FULL,
    ASKED_QUICK,
    Asked,
    load,
    predicates_section,
)
from muntin_bench.streaming.slides import KINDS, Windows, ranges_section, slides_section


@dataclass(frozen=True)
class Scale:
    """How much to measure: slides in this process, checkpoints on Spark, predicates.

    ``kept`` may be None: then no Spark is started.
    """

    grouped: Windows
    alone: Windows
    ranges: int
    asked: Asked
    kept: Kept | None


FULL = Scale(
    Windows(1_000, 10, 1_000),
    Windows(1, 100, 100_000, ticks=10),
    ranges=256,
    asked=ASKED_FULL,
    kept=KEPT_FULL,
)
QUICK = Scale(
    Windows(200, 10, 200),
    Windows(1, 100, 5_000, ticks=10),
    ranges=64,
    asked=ASKED_QUICK,
    kept=KEPT_QUICK,
)


def run(quick: bool = False) -> Report:
    """All parts."""
    return run_at(QUICK if quick else FULL)


def run_at(scale: Scale) -> Report:
    """Measure as much as the scale says."""
    sections: list[Section] = []
    checks: list[Check] = []
    with registered():
        for section, promised in (
            slides_section(KINDS, scale.grouped, scale.alone),
            ranges_section(KINDS, scale.ranges, groups=4, slides=scale.ranges),
        ):
            sections.append(section)
            checks += promised
    about, rows = load(scale.asked)
    section, promised = predicates_section(rows, scale.asked)
    sections.append(section)
    checks += promised
    if scale.kept is not None:
        found, promised = kept_sections(scale.kept)
        sections += found
        checks += promised
    return Report(
        "streaming",
        f"{about}, {rows.num_rows:,} rows; slides and checkpoints over seeded rows",
        sections=tuple(sections),
        checks=tuple(checks),
        seeds=(0,),
        uses=("duckdb", "pyspark", JAVA) if scale.kept else ("duckdb",),
    )
