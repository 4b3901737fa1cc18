"""What a batch costs where much is kept: slides, checkpoints, and windows that all differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from muntin_bench.conditions import JAVA
from muntin_bench.report import Check, Report, Section
from muntin_bench.streaming.carriers import (
    CARRIED_FULL,
    CARRIED_QUICK,
    Carried,
    carriers_section,
)
from muntin_bench.streaming.checkpoints import (
    KEPT_FULL,
    KEPT_QUICK,
    Kept,
    by_groups,
    by_range,
    spark,
)
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
    carried: Carried


FULL = Scale(
    Windows(1_000, 10, 1_000),
    Windows(1, 100, 100_000, ticks=10),
    ranges=256,
    asked=ASKED_FULL,
    kept=KEPT_FULL,
    carried=CARRIED_FULL,
)
QUICK = Scale(
    Windows(200, 10, 200),
    Windows(1, 100, 5_000, ticks=10),
    ranges=64,
    asked=ASKED_QUICK,
    kept=KEPT_QUICK,
    carried=CARRIED_QUICK,
)


Found = tuple[list[Section], list[Check]]


def run(quick: bool = False, part: str | None = None) -> Report:
    """All parts, or one of them."""
    return run_at(QUICK if quick else FULL, part)


def run_at(scale: Scale, part: str | None = None) -> Report:
    """Measure as much as the scale says."""
    sections: list[Section] = []
    checks: list[Check] = []
    parts = [part] if part is not None else list(PARTS)
    if scale.kept is None:
        parts = [each for each in parts if each not in ON_SPARK]
    with registered(), spark(any(each in ON_SPARK for each in parts)) as running:
        for each in parts:
            found, promised = PARTS[each](scale, running)
            sections += found
            checks += promised
    return Report(
        "streaming",
        "seeded rows; trades for predicates",
        sections=tuple(sections),
        checks=tuple(checks),
        seeds=(0,),
        uses=("duckdb", "pyspark", JAVA) if running is not None else ("duckdb",),
    )


def _slides(scale: Scale, _: Any) -> Found:
    return slides_section(KINDS, scale.grouped)


def _alone(scale: Scale, _: Any) -> Found:
    return slides_section(KINDS[:1], scale.alone)


def _ranges(scale: Scale, _: Any) -> Found:
    return ranges_section(KINDS, scale.ranges, groups=4, slides=scale.ranges)


def _predicates(scale: Scale, _: Any) -> Found:
    return predicates_section(*load(scale.asked), scale.asked)


def _checkpoints(scale: Scale, running: Any) -> Found:
    return by_range(running, _kept(scale), cached=True)


def _uncached(scale: Scale, running: Any) -> Found:
    return by_range(running, _kept(scale), cached=False)


def _groups(scale: Scale, running: Any) -> Found:
    return by_groups(running, _kept(scale))


def _carriers(scale: Scale, running: Any) -> Found:
    return [carriers_section(running, scale.carried)], []


def _kept(scale: Scale) -> Kept:
    assert scale.kept is not None
    return scale.kept


PARTS: dict[str, Callable[[Scale, Any], Found]] = {
    "slides": _slides,
    "alone": _alone,
    "ranges": _ranges,
    "predicates": _predicates,
    "checkpoints": _checkpoints,
    "uncached": _uncached,
    "groups": _groups,
    "carriers": _carriers,
}
ON_SPARK = ("checkpoints", "uncached", "groups", "carriers")
