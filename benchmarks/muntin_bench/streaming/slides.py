"""Slides of a stream in this process, by the number of slices that the window covers."""

from __future__ import annotations

import inspect
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.engine import LocalEngine
from muntin.plan import SharedPlan
from muntin.planner import build_plan
from muntin.queries import queries
from muntin.testing.oracle import answer
from muntin_bench.measure import Ratio
from muntin_bench.progress import step
from muntin_bench.report import Check, Section
from muntin_bench.streaming.own import GCD, THIRD

SCHEMA = pa.schema([("t", pa.int64()), ("g", pa.int64()), ("v", pa.int64())])
# How often sides take turns, and slides before the first one, which compile and settle.
_TURNS = 10
_WARM = 24
_SLOWER = 1.5
# How many means a slide in a hundred may take where latency is preferred.
_LATEST = 3.0
# The preference becomes an option of plans; where it is one, latency is bounded as well.
LATENCY = "prefer" in inspect.signature(build_plan).parameters


@dataclass(frozen=True)
class Kind:
    """Aggregates of one query; ``most`` aggregations along time per entry and answer."""

    name: str
    select: str
    most: int = 3


KINDS = (
    Kind("sum", "sum(v) AS a"),
    Kind("max", "max(v) AS a"),
    Kind("avg, stddev_pop, min", "avg(v) AS a, stddev_pop(v) AS b, min(v) AS c"),
    Kind("own: greatest common divisor", f"{GCD}(v) AS a", most=4),
    Kind("own: three largest", f"{THIRD}(v) AS a", most=4),
)


@dataclass(frozen=True)
class Windows:
    """Two numbers of slices in the window, for so many groups.

    A batch brings ``ticks`` slides. Both sides slide as often as the larger window has slices, so
    that means are over whole windows.
    """

    groups: int
    few: int
    many: int
    ticks: int = 1


@dataclass
class Cost:
    """What slides took: seconds of each batch, and what was sealed, answered and aggregated."""

    batches: list[float] = field(default_factory=list)
    slides: int = 0
    entries: int = 0
    answers: int = 0
    aggregations: int = 0
    along_cells: int = 0

    @property
    def mean(self) -> float:
        """Seconds of a slide."""
        return sum(self.batches) / self.slides

    @property
    def p99(self) -> float:
        """Seconds that one batch in a hundred takes at least, for each of its slides."""
        slides = self.slides / len(self.batches)
        return float(np.quantile(self.batches, 0.99)) / slides

    def share(self, accumulators: int) -> float:
        """Aggregations along time for an entry or answer, and accumulator."""
        return self.aggregations / accumulators / (self.entries + self.answers)


class Stream:
    """A stream whose windows are full, and slide on with a row per group and tick."""

    def __init__(
        self, select: str, ranges: Sequence[int], groups: int, ticks: int = 1, **how: Any
    ) -> None:
        text = ";".join(
            f"CREATE QUERY q{size} AS SELECT g, {select} FROM s [RANGE {size} SLIDE 1] GROUP BY g"
            for size in ranges
        )
        self.plan = _planned(text, **how)
        self._engine = LocalEngine(self.plan, 0)
        self._groups, self._ticks, self._at = groups, ticks, 0
        self._random = np.random.default_rng(len(text))
        self._engine.feed(self._rows(max(ranges) + 1))
        self.slide(_WARM * ticks)

    @property
    def accumulators(self) -> int:
        """How many columns of partials are kept."""
        return max(len(node.accumulators) for node in self.plan.partials)

    def _rows(self, ticks: int) -> pa.Table:
        times = np.repeat(np.arange(self._at, self._at + ticks), self._groups)
        groups = np.tile(np.arange(self._groups), ticks)
        values = 12 * self._random.integers(1, 100_000, times.size)
        self._at += ticks
        return pa.table([times, groups, values], schema=SCHEMA)

    def slide(self, slides: int, cost: Cost | None = None) -> Cost:
        """Slide on; what that took is added to ``cost``."""
        cost = cost or Cost()
        before = self._counts()
        for _ in range(max(slides // self._ticks, 1)):
            rows = self._rows(self._ticks)
            begin = time.process_time()
            due = self._engine.feed(rows)
            cost.batches.append(time.process_time() - begin)
            cost.slides += self._ticks
            cost.entries += rows.num_rows
            cost.answers += sum(table.num_rows for table in due.values())
        after = self._counts()
        cost.aggregations += after[0] - before[0]
        cost.along_cells += after[1] - before[1]
        return cost

    def _counts(self) -> tuple[int, int]:
        """Aggregations so far along time, and along cells where these are counted apart."""
        counted = self._engine.statistics
        return counted.final_aggregations, getattr(counted, "cell_aggregations", 0)


def _planned(text: str, **how: Any) -> SharedPlan:
    return build_plan(queries(text), SCHEMA, "t", **how)


def check_answers(kind: Kind) -> None:
    """Refuse slides whose answers differ from what recomputation gives."""
    plan = _planned(
        f"CREATE QUERY q AS SELECT g, {kind.select} FROM s [RANGE 7 SLIDE 1] GROUP BY g"
    )
    engine = LocalEngine(plan, 0)
    random = np.random.default_rng(5)
    times = np.repeat(np.arange(60), 5)
    rows = pa.table([times, np.tile(np.arange(5), 60), random.integers(1, 999, 300)], schema=SCHEMA)
    # The first batch fills the window, the others slide on.
    bounds = [0, *range(100, 305, 5)]
    parts = [rows.slice(low, high - low) for low, high in pairwise(bounds)]
    found = [due["q"] for due in map(engine.feed, parts) if "q" in due]
    answered = pa.concat_tables([*found, engine.close()["q"]])
    wanted = answer(plan, "q", rows)
    order = [("window_start", "ascending"), ("g", "ascending")]
    assert answered.sort_by(order).equals(wanted.sort_by(order)), f"{kind.name}: answers differ"


def slide_costs(kind: Kind, windows: Windows, **how: Any) -> tuple[list[Cost], Ratio, int]:
    """What slides of both windows cost in turn, their ratio, and the number of accumulators."""
    streams = [
        Stream(kind.select, [size], windows.groups, windows.ticks, **how)
        for size in (windows.few, windows.many)
    ]
    turns: list[list[Cost]] = [[], []]
    for turn in range(_TURNS):
        for place in (0, 1) if turn % 2 == 0 else (1, 0):
            slides = (turn + 1) * windows.many // _TURNS - turn * windows.many // _TURNS
            turns[place].append(streams[place].slide(slides))
    costs = [_total(each) for each in turns]
    ratios = [many.mean / few.mean for few, many in zip(*turns, strict=True)]
    ratio = Ratio(costs[1].mean / costs[0].mean, min(ratios), max(ratios))
    return costs, ratio, streams[0].accumulators


def _total(turns: list[Cost]) -> Cost:
    total = replace(turns[0], batches=list(turns[0].batches))
    for each in turns[1:]:
        total.batches += each.batches
        total.slides += each.slides
        total.entries += each.entries
        total.answers += each.answers
        total.aggregations += each.aggregations
        total.along_cells += each.along_cells
    return total


def slides_section(kinds: Sequence[Kind], windows: Windows) -> tuple[list[Section], list[Check]]:
    """Slides for every kind."""
    rows: list[tuple[str, ...]] = []
    checks: list[Check] = []
    groups = "1 group" if windows.groups == 1 else f"{windows.groups:,} groups"
    for kind in kinds:
        check_answers(kind)
        for prefer in ("throughput", "latency") if LATENCY else ("throughput",):
            about = f"{kind.name}, {groups}"
            about += ', prefer="latency"' if prefer == "latency" else ""
            step(about)
            how = {"prefer": prefer} if LATENCY else {}
            costs, ratio, accumulators = slide_costs(kind, windows, **how)
            sizes = (windows.few, windows.many)
            rows += [
                _row(f"{about}, {size:,} slices", cost, accumulators)
                for size, cost in zip(sizes, costs, strict=True)
            ]
            promise = f"{about}: a slide with {sizes[1]:,} slices against {sizes[0]:,}"
            checks.append(Check.of(promise, _SLOWER, ratio))
            worst = max(cost.share(accumulators) for cost in costs)
            checks.append(_bounded(about, kind, worst))
            if prefer == "latency":
                late = max(cost.p99 / cost.mean for cost in costs)
                checks.append(Check(f"{about}: p99 in means", _LATEST, late))
    columns = (
        "slides",
        "mean, ms",
        "median, ms",
        "p99, ms",
        "aggregations along time per entry and answer",
        "along cells",
    )
    title = f"local engine: a slide of {groups}, by the slices in its window (processor time)"
    return [Section(title, columns, tuple(rows))], checks


def _row(name: str, cost: Cost, accumulators: int) -> tuple[str, ...]:
    median = statistics.median(cost.batches) * len(cost.batches) / cost.slides
    share = cost.along_cells / accumulators / (cost.entries + cost.answers)
    return (
        name,
        *(f"{seconds * 1e3:.3f}" for seconds in (cost.mean, median, cost.p99)),
        f"{cost.share(accumulators):.2f}",
        f"{share:.2f}",
    )


def _bounded(about: str, kind: Kind, share: float) -> Check:
    promise = f"{about}: aggregations along time per entry, answer and accumulator"
    return Check(promise, kind.most, share, "")


def ranges_section(
    kinds: Sequence[Kind], ranges: int, groups: int, slides: int
) -> tuple[list[Section], list[Check]]:
    """Aggregations of many ranges over one stream."""
    rows, checks = [], []
    for kind in kinds:
        about = f"{kind.name}, {ranges} ranges, {groups} groups"
        step(about)
        stream = Stream(kind.select, range(1, ranges + 1), groups)
        cost = stream.slide(slides)
        rows.append(_row(about, cost, stream.accumulators))
        checks.append(_bounded(about, kind, cost.share(stream.accumulators)))
    columns = ("queries", "mean, ms", "median, ms", "p99, ms", "aggregations along time", "cells")
    return [Section("local engine: many ranges at once", columns, tuple(rows))], checks
