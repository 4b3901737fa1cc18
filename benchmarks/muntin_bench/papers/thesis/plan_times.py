"""How long WeaveShare takes by the way edges are counted: Figures 35 to 39.

Section 5.4 of "Algorithms and Optimizations for Incremental Window-Based Aggregations". WeaveShare
as the thesis has it (weave the pair that saves most, on one node) runs with edges counted by the
Bit Set and by F1; ours reads them off a sample. A plan that takes longer than it is given, or
whose bit set would not fit, is not made: that stands for the thesis's lack of memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import Any

from muntin.errors import MuntinError, WindowError
from muntin.planner.edges.counts import EdgeMethod, edge_rate
from muntin.planner.placement.optimizers import place
from muntin.planner.trees.weave_share import weave_share
from muntin.testing.workload import Workload, generate
from muntin.windows.edges import EdgeClass
from muntin_bench.papers.claims import Claim, Part, at_least, near
from muntin_bench.report import Plot, Section


@dataclass(frozen=True)
class Experiment:
    """A line of Table 5, and what Table 6 says of it: Bit Set over F1, mean and most.

    Where values are `harder` from one to the next, a method that has no plan for one is not tried
    on those after it.
    """

    figure: int
    varied: str
    values: tuple[float, ...]
    fixed: dict[str, Any]
    thesis: tuple[float, float]
    harder: bool = True


EXPERIMENTS = (
    Experiment(
        35, "queries", (50, 100, 200, 550, 10_000, 1_000_000),
        {"max_slide": 1000, "rate": 0.002, "skew": 0.5, "overlap": 10}, (350, 790),
    ),
    Experiment(
        36, "max_slide", (20, 50, 100, 800, 10_000),
        {"queries": 1000, "rate": 1.0, "skew": 3.0, "overlap": 100, "slides": "prime"},
        (2200, 10_000),
    ),
    Experiment(
        37, "rate", (1, 100, 900, 10_000, 1_000_000),
        {"queries": 1000, "max_slide": 100, "skew": 1.0, "overlap": 1000}, (3800, 16_000),
    ),
    Experiment(
        38, "skew", (0, 1, 2.25, 10, 100),
        {"queries": 50, "max_slide": 500, "rate": 0.1, "overlap": 100}, (14_000, 60_000),
        harder=False,
    ),
    Experiment(
        39, "overlap", (100, 70, 40, 10, 1),
        {"queries": 1000, "max_slide": 600, "rate": 1.0, "skew": 3.0, "slides": "prime"},
        (5600, 16_000),
    ),
)  # fmt: skip
METHODS: dict[str, EdgeMethod] = {"Bit Set": "bitset", "F1": "f1"}
SIDES = (*METHODS, "ours")

# Seconds of processor time by side and value; None where there is no plan.
Times = dict[tuple[str, float], float | None]


class OutOfTimeError(MuntinError):
    """Planning has used up what it was given."""


def up_to(queries: int) -> tuple[Experiment, ...]:
    """The experiments without sets of more queries.

    >>> [max(each.values) for each in up_to(10_000) if each.varied == "queries"]
    [10000]
    """
    return tuple(
        replace(each, values=tuple(value for value in each.values if value <= queries))
        if each.varied == "queries"
        else each
        for each in EXPERIMENTS
    )


def figures_35_to_39(budget: float, experiments: Sequence[Experiment] = EXPERIMENTS) -> Part:
    """All experiments; plans by the Bit Set and F1 get so many seconds each."""
    sections, claims, plots = [], [], []
    for each in experiments:
        times = planned(each, budget)
        columns = (each.varied.replace("_", " "), *(f"{value:,g}" for value in each.values))
        rows = tuple(
            (side, *(_shown(times[side, value], budget) for value in each.values)) for side in SIDES
        )
        title = f"Figure {each.figure}: seconds to plan by {columns[0]}"
        sections.append(Section(title, columns, rows))
        claims += _claims(each, times)
        plots.append(_plot(each, times))
    return Part(tuple(sections), tuple(claims), tuple(plots))


def planned(experiment: Experiment, budget: float) -> Times:
    """Seconds for every value, by the three."""
    first = _load(experiment, experiment.values[0])
    # Loops are compiled, or loaded, before anything is timed.
    weave_share(first.queries, first.rate, "panes")
    times: Times = {}
    beyond: set[str] = set()
    for value in experiment.values:
        load = _load(experiment, value)
        for side, method in METHODS.items():
            times[side, value] = None if side in beyond else _counted(load, method, budget)
            if experiment.harder and times[side, value] is None:
                beyond.add(side)
        times["ours", value] = _seconds(partial(weave_share, load.queries, load.rate, "panes"))
    return times


def _load(experiment: Experiment, value: float) -> Workload:
    whole = experiment.varied in ("queries", "max_slide", "overlap")
    varied = {experiment.varied: int(value) if whole else float(value)}
    return generate(**{**experiment.fixed, **varied})


def _counted(load: Workload, method: EdgeMethod, budget: float) -> float | None:
    """Seconds of WeaveShare with edges counted by a method, or None if it does not end."""
    deadline = time.process_time() + budget

    def edges(classes: tuple[EdgeClass, ...]) -> float:
        if time.process_time() > deadline:
            raise OutOfTimeError("planning takes too long", hint="give it more seconds")
        return float(edge_rate(classes, method))

    def plan() -> object:
        return place(load.queries, 1, load.rate, "panes", "WG_TN", edges=edges)

    try:
        return _seconds(plan)
    except (OutOfTimeError, WindowError):
        return None


def _seconds(plan: Callable[[], object]) -> float:
    begin = time.process_time()
    plan()
    return time.process_time() - begin


def _shown(seconds: float | None, budget: float) -> str:
    return f"none in {budget:g} s" if seconds is None else f"{seconds:.3g}"


def _claims(experiment: Experiment, times: Times) -> list[Claim]:
    where = f"Figure {experiment.figure}"
    ended = {
        side: sum(times[side, value] is not None for value in experiment.values) for side in SIDES
    }
    ratios = [
        bits / by_f1
        for value in experiment.values
        if (bits := times["Bit Set", value]) is not None and (by_f1 := times["F1", value])
    ]
    of = f"of {len(experiment.values)} values of {experiment.varied.replace('_', ' ')}"
    claims = [
        Claim(
            where, f"F1 plans for more {of} than the Bit Set", "more",
            f"{ended['F1']}, Bit Set {ended['Bit Set']}", ended["F1"] > ended["Bit Set"],
        ),
        at_least(where, f"plans {of}: theirs F1, here ours", len(experiment.values), ended["ours"]),
    ]  # fmt: skip
    if ratios:
        mean, _ = experiment.thesis
        claims.append(near(where, "Bit Set / F1 time, on average", mean, fmean(ratios), 2.0))
    return claims


def _plot(experiment: Experiment, times: Times) -> Plot:
    # Axes are logarithmic: a skew of zero is drawn as the power of two of itself.
    power = experiment.varied == "skew"
    lines = {
        side: points
        for side in SIDES
        if (
            points := tuple(
                (2.0 ** min(value, 20) if power else float(value), seconds)
                for value in experiment.values
                if (seconds := times[side, value]) is not None
            )
        )
    }
    name = experiment.varied.replace("_", " ")
    return Plot(
        f"figure-{experiment.figure}",
        f"Figure {experiment.figure}: seconds to plan by {name}",
        f"2 to the power of the {name}, at most 20" if power else name,
        "seconds",
        lines,
    )
