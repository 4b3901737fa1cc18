"""What the local engine takes for plans that share all, nothing, or what the optimizer says.

Every workload runs by three plans. Seconds of processor time are then explained by four counts,
which gives what a row, a slice, a step and a window cost; and so how many steps a row is worth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import mul
from statistics import fmean

from muntin.planner.sharing import STEPS_PER_ROW
from muntin_bench.optimizer.fit import deviation, fitted
from muntin_bench.optimizer.runs import SIDES, TRIALS, WORK, EngineLoad, Run, run_loads
from muntin_bench.report import Check, Section


def constants(runs: Sequence[Run]) -> dict[str, dict[str, float]]:
    """Seconds of each kind of work, by aggregate."""
    return {
        aggregate: dict(
            zip(WORK, fitted([r.work for r in own], [r.seconds for r in own]), strict=True)
        )
        for aggregate in dict.fromkeys(run.load.aggregate for run in runs)
        for own in [[run for run in runs if run.load.aggregate == aggregate]]
    }


def estimates(runs: Sequence[Run]) -> list[float]:
    """Seconds foretold for each run, by constants that come from the loads of the other half."""
    loads = list(dict.fromkeys(run.load for run in runs))
    halves = [set(loads[::2]), set(loads[1::2])]
    found = [constants([run for run in runs if run.load not in half]) for half in halves]
    return [
        sum(map(mul, run.work, found[run.load in halves[1]][run.load.aggregate].values()))
        for run in runs
    ]


def engine_sections(
    loads: Sequence[EngineLoad], rows: int, repeats: int
) -> tuple[list[Section], list[Check]]:
    """How fast the plans are, what explains it, and how well it is foretold."""
    found = run_loads(loads, rows, repeats)
    runs = [each[side] for each in found for side in SIDES]
    foretold = estimates(runs)
    off = deviation(foretold, [run.seconds for run in runs])
    columns = chain(*((side, "trees", "foretold") for side in SIDES))
    sections = [
        Section(
            f"three plans in the local engine, up to {rows:,} rows: milliseconds of one core",
            ("workload", "rows per tick", *columns, "auto / best"),
            tuple(_line(each, foretold[3 * n : 3 * n + 3]) for n, each in enumerate(found)),
        ),
        _constants_section(constants(runs)),
        Section(
            f"plans of auto if a row were worth so many steps; it takes {STEPS_PER_ROW:g}",
            ("steps per row", "beside the best, on average", "at worst"),
            tuple(
                (str(steps), *(f"{of(slower(found, str(steps))):.2f}" for of in (fmean, max)))
                for steps in TRIALS
            ),
        ),
    ]
    behind = slower(found, "auto")
    return sections, [
        Check("auto beside the best of the three plans, on the worst workload", 1.15, max(behind)),
        Check("auto beside the best of the three plans, on average", 1.05, fmean(behind)),
        Check("estimated against measured throughput, engine, deviation", 22, 100 * off, "%"),
    ]


def slower(found: Iterable[Mapping[str, Run]], side: str) -> list[float]:
    """How many times as long a side takes as the best of the three plans, load by load."""
    return [each[side].seconds / min(each[other].seconds for other in SIDES) for each in found]


def _constants_section(found: Mapping[str, Mapping[str, float]]) -> Section:
    rows = [(kind, *(f"{costs[kind] * 1e9:,.1f}" for costs in found.values())) for kind in WORK]
    rows += [
        (title, *(_worth(costs, kinds) for costs in found.values()))
        for title, kinds in (
            ("a row in operations of Ω, where slices hold many rows", WORK[2:3]),
            ("a row in operations of Ω, where slices hold one row", WORK[2:4]),
        )
    ]
    return Section("what the engine's work costs, in nanoseconds", ("work", *found), tuple(rows))


def _worth(costs: Mapping[str, float], kinds: Iterable[str]) -> str:
    # Ω counts two operations for a query at an edge.
    step = costs["step over a slice"] / 2
    return f"{sum(costs[kind] for kind in kinds) / step:.1f}" if step else "-"


def _line(runs: Mapping[str, Run], foretold: Sequence[float]) -> tuple[str, ...]:
    load = runs["auto"].load
    cells = [
        (f"{runs[side].seconds * 1e3:.1f}", str(runs[side].trees), f"{estimate * 1e3:.1f}")
        for side, estimate in zip(SIDES, foretold, strict=True)
    ]
    name = f"{load.aggregate}, {load.name}"
    return name, f"{load.rate:g}", *chain(*cells), f"{slower([runs], 'auto')[0]:.2f}"
