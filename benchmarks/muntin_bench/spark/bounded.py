"""Many queries over a Parquet file on Spark: through the JVM, and by workers that read it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from muntin.api import files
from muntin.display import count
from muntin.plan import SharedPlan
from muntin.results import Outcome
from muntin.spark.bounded.source import FrameSource, Source
from muntin.spark.files.source import FilesSource
from muntin_bench.measure import Ratio, Timing, measure
from muntin_bench.progress import step
from muntin_bench.report import Check, Section
from muntin_bench.sharing.data import Market
from muntin_bench.sharing.engine import plan_text
from muntin_bench.sharing.workloads import Workload, workload
from muntin_bench.spark.windows import answer, bare_trip, check_same, register, scan_and_sum

SCAN = "Spark: scan and sum"
# What any way through the JVM takes at least.
TRIP = "Spark: all rows to Python workers, which count them"
WAYS = ("through the JVM", "muntin.files")


@dataclass(frozen=True)
class Input:
    """A session, the file of trades, and the market it was written from."""

    session: Any
    path: str
    market: Market

    def source(self, way: str) -> Source:
        """The trades in one of two ways, from the path on."""
        if way == WAYS[0]:
            return FrameSource(self.session.read.parquet(self.path))
        return FilesSource(files(self.path))


@dataclass(frozen=True)
class Measured:
    """One workload: runs by side, seconds to plan, and seconds of separate Spark queries."""

    name: str
    timings: Mapping[str, Timing]
    planning: Mapping[int, float]
    separate: float
    measured: int
    steps: Mapping[str, Mapping[str, float]]

    def over(self, side: str, base: str) -> Ratio:
        """How many times as long one side took as another."""
        return self.timings[side].over(self.timings[base])

    def separately(self, size: int, side: str) -> Ratio:
        """How many times as long so many of Spark's own queries take as a side."""
        total, timing = self.separate * size, self.timings[side]
        return Ratio(
            total / timing.median, total / max(timing.seconds), total / min(timing.seconds)
        )


def side(way: str, size: int) -> str:
    """What a measured side is called."""
    return f"{way}, {size}"


def measure_workload(
    given: Input, name: str, sizes: tuple[int, ...], separately: int, repeats: int
) -> Measured:
    """Compare all answers, then time all sides in turn."""
    register(given.session, given.market)
    sides: dict[str, Callable[[], Any]] = {
        SCAN: lambda: scan_and_sum(given.session, given.path),
        TRIP: lambda: bare_trip(given.session, given.path),
    }
    assert sides[TRIP]() == given.market.trades.num_rows
    planning: dict[int, float] = {}
    steps: dict[str, Mapping[str, float]] = {}
    for size in sizes:
        step(f"{name}, comparing answers, queries: {size}")
        plan, planning[size] = _plan(given, workload(name, size))
        outcomes = {way: _run(given, way, plan) for way in WAYS}
        _check_equal(outcomes)
        for way in WAYS:
            sides[side(way, size)] = _runner(given, way, plan)
            steps[side(way, size)] = outcomes[way].seconds
    step(f"{name}, queries of Spark's own, one by one: {separately}")
    separate = _separately(given, workload(name, max(sizes)), separately)
    step(f"{name}, timing all sides in turn")
    return Measured(name, measure(sides, repeats=repeats), planning, separate, separately, steps)


def _plan(given: Input, work: Workload) -> tuple[SharedPlan, float]:
    """The plan, and how long it takes to make from SQL text the second time."""
    text, market = work.sql(), given.market
    schema = given.source(WAYS[0]).schema
    seconds = 0.0
    for _ in range(2):
        begin = time.perf_counter()
        plan = plan_text(market, text, schema)
        seconds = time.perf_counter() - begin
    return plan, seconds


def _run(given: Input, way: str, plan: SharedPlan) -> Outcome:
    return given.source(way).run(plan, given.market.tables)


def _runner(given: Input, way: str, plan: SharedPlan) -> Callable[[], Outcome]:
    return lambda: _run(given, way, plan)


def _check_equal(outcomes: Mapping[str, Outcome]) -> None:
    first, second = outcomes.values()
    for name, one in first.answers.items():
        tables = [each.table().sort_by("window_start") for each in (one, second.answers[name])]
        assert tables[0].equals(tables[1]), f"{name}: the two ways differ"


def _separately(given: Input, work: Workload, count: int) -> float:
    """Seconds a query of its own takes Spark, on average over the first ones; answers compared."""
    plan, _ = _plan(given, work)
    ours = _run(given, WAYS[1], plan).answers
    answer(given.session, given.path, work.queries[0])
    total = 0.0
    for query in work.queries[:count]:
        begin = time.perf_counter()
        theirs = answer(given.session, given.path, query)
        total += time.perf_counter() - begin
        check_same(ours[query.name].table(), theirs, query.name)
    return total / min(count, work.size)


def table(found: Measured, sizes: tuple[int, ...]) -> Section:
    """Milliseconds by number of queries, and ratios to the plain scan."""
    scan = found.timings[SCAN]
    rows = [(fixed, *(_shown(found.timings[fixed], scan) for _ in sizes)) for fixed in (SCAN, TRIP)]
    for way in WAYS:
        times = (found.timings[side(way, size)] for size in sizes)
        rows.append((f"Muntin {way}", *(_shown(each, scan) for each in times)))
    separate = (
        f"{'' if size <= found.measured else '≈ '}{found.separate * size * 1e3:,.1f}; "
        f"{found.separate * size / scan.median:,.2f}×"
        for size in sizes
    )
    about = f"Spark: window() queries one by one (≈ extrapolated from {found.measured})"
    rows.append((about, *separate))
    plans = (f"{found.planning[size] * 1e3:,.0f}" for size in sizes)
    rows.append(("Muntin: parse and plan, once", *plans))
    columns = ("side", *(count(size, "query") for size in sizes))
    title = f"workload {found.name}, milliseconds (range); × the scan (range)"
    return Section(title, columns, tuple(rows), (tuple(found.timings.values()),))


def _shown(timing: Timing, scan: Timing) -> str:
    return f"{timing.milliseconds}; {timing.over(scan)}"


def steps(found: Measured, size: int) -> Section:
    """Where the workers' time goes, all of them together."""
    sides = [side(way, size) for way in WAYS]
    names = dict.fromkeys(name for each in sides for name in found.steps[each])
    rows = [
        (name, *(f"{found.steps[each].get(name, 0.0):.3f} s" for each in sides)) for name in names
    ]
    title = f"workload {found.name}, {count(size, 'query')}: CPU seconds of all workers, by step"
    return Section(title, ("step", *WAYS), tuple(rows))


def promises(found: list[Measured], sizes: tuple[int, ...]) -> Iterator[Check]:
    """What is promised at the most queries, each on the workload where it is hardest."""
    one, most = min(sizes), max(sizes)
    limits = {WAYS[0]: (50.0, 5.0, 1.3), WAYS[1]: (200.0, 1.8, 1.8)}
    for way, (faster, scans, growth) in limits.items():
        last, first = side(way, most), side(way, one)
        what = f"{most} queries {way}"
        gain = min((each.separately(most, last) for each in found), key=_value)
        yield Check.of(f"{what}, faster than separate Spark queries", faster, gain, least=True)
        ratio = max((each.over(last, SCAN) for each in found), key=_value)
        yield Check.of(f"{what}, against scan and sum", scans, ratio)
        grown = max((each.over(last, first) for each in found), key=_value)
        yield Check.of(f"{what}, against {one}", growth, grown)


def _value(ratio: Ratio) -> float:
    return ratio.value
