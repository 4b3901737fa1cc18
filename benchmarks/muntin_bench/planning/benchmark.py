"""Seconds from SQL text to a plan, for sets of queries that are large or all different."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median

import pyarrow as pa

import muntin
from muntin.plan import SharedPlan
from muntin.planner import build_plan
from muntin.planner.sharing import Optimizer
from muntin.queries import queries
from muntin.streams import LiveEngine
from muntin_bench.planning import workloads
from muntin_bench.planning.cold import STARTS, Start, seconds_of
from muntin_bench.progress import step
from muntin_bench.report import Check, Report, Section

ROWS = 20_000
# Rows per microsecond that sharing is weighed by: those of the rows.
RATE = ROWS / workloads.HOUR
# Those of `muntin bench peers`: 2,000,000 rows in an hour.
PEERS = 2_000_000 / workloads.HOUR


@dataclass(frozen=True)
class Load:
    """A workload by its size, and the seconds in which it is to be planned.

    Sharing is weighed by its rate, in rows per microsecond.
    """

    name: str
    text: Callable[[int], str]
    size: int
    limit: float
    rate: float = RATE


@dataclass(frozen=True)
class Scale:
    """How much to measure: sets to plan, queries that another one joins, and first calls."""

    loads: tuple[Load, ...]
    running: int
    limit: float
    repeats: int
    starts: tuple[Start, ...]


FULL = Scale(
    (
        Load("different predicates, as bench peers asks", workloads.unlike, 256, 0.15, PEERS),
        Load("queries that differ in window and constant", workloads.thresholds, 10_000, 5),
        Load("queries that differ in all but their stream", workloads.combinations, 10_000, 5),
        Load("different windows", workloads.windows, 3_000, 2),
        Load("comparisons with OR in one condition", workloads.alternatives, 5_000, 1),
    ),
    running=256,
    limit=0.2,
    repeats=5,
    starts=STARTS,
)
QUICK = Scale(
    tuple(replace(each, size=each.size // 8) for each in FULL.loads),
    running=64,
    limit=0.2,
    repeats=1,
    starts=STARTS[:1],
)
_COMPARED = 24


def run(quick: bool = False) -> Report:
    """All parts."""
    return run_at(QUICK if quick else FULL)


def run_at(scale: Scale) -> Report:
    """Measure as much as the scale says."""
    rows = []
    checks = []
    for load in scale.loads:
        step(f"{load.size:,} {load.name}")
        check_answers(load)
        read, planned, plan = planning(load, scale.repeats)
        rows.append(_row(f"{load.size:,} {load.name}", read, planned, plan))
        promise = f"planning {load.size:,} {load.name}, from SQL text"
        checks.append(Check(promise, load.limit, read + planned, " s"))
    step(f"a query that joins {scale.running:,}")
    for name, taken in joining(scale.running, scale.repeats).items():
        checks.append(Check(f"{name} on a run of {scale.running:,}", scale.limit, taken, " s"))
    columns = ("queries", "reading, s", "planning, s", "sets of partials", "slicings")
    planned_section = Section("from SQL text to a plan", columns, tuple(rows))
    cold, cold_checks = cold_section(scale.starts)
    return Report(
        "planning",
        "seeded queries; seconds are of processor time, those of first calls of the clock",
        sections=(planned_section, cold),
        checks=(*checks, *cold_checks),
    )


def _row(name: str, read: float, planned: float, plan: SharedPlan) -> tuple[str, ...]:
    parts = f"{len(plan.partials):,}", f"{len(plan.slicings):,}"
    return (name, f"{read:.3f}", f"{planned:.3f}", *parts)


def planning(load: Load, repeats: int) -> tuple[float, float, SharedPlan]:
    """Median processor seconds to read and to plan, and the plan; compiled loops are warm.

    Each repeat has a column of its own: conditions that are known were bound to another schema.
    """
    table = workloads.rows(ROWS)
    text = load.text(load.size)
    _planned(load.text(min(load.size, 64)), table, load.rate)
    tables = [table.append_column(f"column{each}", table["vol"]) for each in range(repeats)]
    taken = [_planned(text, each, load.rate) for each in tables]
    return median(each[0] for each in taken), median(each[1] for each in taken), taken[0][2]


def _planned(text: str, table: pa.Table, rate: float) -> tuple[float, float, SharedPlan]:
    begin = time.process_time()
    read = queries(text)
    middle = time.process_time()
    sharer = Optimizer("auto", rate)
    plan = build_plan(read, table.schema, "ts", sample=table, sharer=sharer)
    return middle - begin, time.process_time() - middle, plan


def joining(size: int, repeats: int) -> dict[str, float]:
    """Median processor seconds of a query that joins a stream of so many, and leaves it.

    It is another query each time.
    """
    table = workloads.rows(ROWS)
    asked = queries(workloads.unlike(size + repeats))
    members, others = asked[:size], asked[size:]
    optimizer = Optimizer("auto")
    plan = build_plan(members, table.schema, "ts", sharer=optimizer)
    engine = LiveEngine(plan, 0, optimizer=optimizer)
    for begin in range(0, ROWS // 2, ROWS // 8):
        engine.feed(table.slice(begin, ROWS // 8))
    taken: dict[str, list[float]] = {"add": [], "remove": []}
    for other in others:
        begins = time.process_time()
        engine.add(other)
        taken["add"].append(time.process_time() - begins)
        begins = time.process_time()
        engine.remove(other.name)
        taken["remove"].append(time.process_time() - begins)
    return {name: median(each) for name, each in taken.items()}


def check_answers(load: Load) -> None:
    """Refuse answers that differ by a bit from those of queries that share nothing."""
    table, text = workloads.rows(2_000), load.text(_COMPARED)
    shared = muntin.aggregate(table, text, time="ts")
    alone = muntin.aggregate(table, text, time="ts", strategy="unshared")
    for name, answer in shared.items():
        assert answer.equals(alone[name]), f"{load.name}: {name} is {answer}, not {alone[name]}"


def cold_section(starts: tuple[Start, ...]) -> tuple[Section, list[Check]]:
    """First calls of fresh processes, by the clock."""
    rows, checks = [], []
    for start in starts:
        step(start.name)
        taken, compiled = seconds_of(start)
        rows.append((start.name, f"{taken:.2f}", f"{compiled:,}"))
        checks.append(Check(start.name, start.limit, taken, " s"))
    columns = ("until it has answered", "seconds", "kernels compiled before")
    return Section("a fresh process", columns, tuple(rows)), checks
