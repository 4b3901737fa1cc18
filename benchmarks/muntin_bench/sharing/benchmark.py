"""Hundreds of queries for little more than the price of one: what sharing costs and saves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from muntin_bench.measure import Timing
from muntin_bench.progress import step
from muntin_bench.report import Check, Plot, Report, Section
from muntin_bench.sharing.counts import PAPERS, count
from muntin_bench.sharing.data import ROWS, SYMBOLS, hour, week
from muntin_bench.sharing.grid import Found, grid
from muntin_bench.sharing.growth import growth
from muntin_bench.sharing.memory import memory
from muntin_bench.sharing.paper import analysis, counts_beside_paper, times_beside_paper
from muntin_bench.sharing.peers import beside_peers
from muntin_bench.sharing.process import one_core
from muntin_bench.sharing.workloads import DRAWN, NAMES

# Figures 13 to 16 of "On-the-Fly Sharing for Streamed Aggregation".
_FIGURES = dict(zip(NAMES, (13, 14, 15, 16), strict=True))


@dataclass(frozen=True)
class Scale:
    """How much to measure; ``peer_rows`` is the size of a synthetic hour instead of real trades."""

    rows: int = ROWS
    symbols: int = SYMBOLS
    sizes: tuple[int, ...] = (16, 32, 64, 128, 256)
    squares: tuple[int, ...] = (16, 36, 64, 144, 256)
    large: int = 4096
    # Operations are counted, and growth is timed, with sets of queries of several seeds.
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    # The size of the sets that run over the trades of a week too, if any.
    over_week: int | None = 256
    repeats: int = 3
    patience: float = 0.5
    peer_rows: int | None = None
    peer_sizes: tuple[int, ...] = (1, 256)
    peer_repeats: int = 3
    groups: tuple[int, ...] = (1, 10, 100, 1000, 10_000, 100_000, 1_000_000)


FULL = Scale()
# As many rows, so that times mean the same; fewer sets of queries, none of them the largest.
QUICK = Scale(
    sizes=(16, 256),
    squares=(16, 256),
    large=1024,
    seeds=(0, 1, 2),
    over_week=None,
    patience=0.25,
    groups=(1, 100, 10_000, 100_000),
)

Measured = tuple[tuple[Section, ...], tuple[Check, ...], tuple[Plot, ...]]


def run(quick: bool = False) -> Report:
    """Compare all answers, then time them: ours on one core, other engines on all."""
    return run_at(QUICK if quick else FULL)


def run_at(scale: Scale) -> Report:
    """Measure as much as the scale says."""
    with one_core() as process:
        sections, checks, plots = process.call(measured, scale)
        peers, peer_checks = beside_peers(
            process, scale.peer_rows, scale.peer_sizes, scale.peer_repeats
        )
    return Report(
        "sharing",
        hour(scale.rows, scale.symbols).about,
        sections=(*sections, peers),
        checks=(*checks, *peer_checks),
        plots=plots,
        seeds=scale.seeds,
        uses=("duckdb",),
    )


def measured(scale: Scale) -> Measured:
    """All that needs no other engine; meant for a process with one core."""
    market = hour(scale.rows, scale.symbols)
    largest = scale.sizes[-1]
    found = list(grid(market, scale.sizes, scale.squares, scale.repeats, scale.patience))
    counts = list(count(market, largest, scale.seeds))
    counted, promises = counts_beside_paper(counts, largest)
    grown, timed = growth(market, (scale.sizes[0], largest, scale.large), scale.seeds)
    step("state by number of groups")
    state, state_plot = memory(scale.groups)
    sections = (
        Section("how queries are drawn", ("what", "how"), DRAWN),
        *(table for name in NAMES for table in tables(name, found)),
        *counted,
        times_beside_paper(found, largest),
        analysis(counts, largest),
        grown,
        state,
        *_over_week(scale),
    )
    return sections, (*promises, *timed), (*(figure(name, found) for name in NAMES), state_plot)


def _over_week(scale: Scale) -> Iterator[Section]:
    if scale.over_week is None:
        return
    size = scale.over_week
    step(f"{size} queries over the trades of a week, counts")
    rows = tuple(
        (
            f"{each.workload}, {PAPERS[each.workload]}",
            f"{each.unshared:,}",
            f"{each.shared:,}",
            f"{each.cells:,}",
            *(f"{ratio:,.1f}" for ratio in each.fewer),
        )
        for each in count(week(), size, scale.seeds[:1])
    )
    columns = ("workload, the paper's strategy", "unshared", "shared", "cells", "× fewer", "cells")
    yield Section(f"aggregations of {size} queries over {week().about}", columns, rows)


def tables(name: str, found: Iterable[Found]) -> list[Section]:
    """A workload's times and operations: one row a strategy, one column a number of queries."""
    own = [each for each in found if each.workload == name]
    sizes = list(dict.fromkeys(each.size for each in own))
    columns = ("strategy", *(f"{size} queries" for size in sizes))
    shown: tuple[tuple[str, Callable[[Found], str]], ...] = (
        ("milliseconds (range)", lambda each: each.timing.milliseconds),
        ("partial + final aggregations", _aggregations),
        ("milliseconds to parse and plan", lambda each: f"{each.planning * 1e3:,.0f}"),
    )
    timed = tuple(filter(None, (_timed(own, size) for size in sizes)))
    return [
        Section(f"{name}, {title}", columns, _pivot(own, sizes, show), timed if i == 0 else ())
        for i, (title, show) in enumerate(shown)
    ]


def _timed(found: Sequence[Found], size: int) -> tuple[Timing, ...]:
    """The runs of those that took turns; slow sides ran but once, by themselves."""
    turns = (each for each in found if each.size == size and len(each.timing.seconds) > 1)
    return tuple(replace(each.timing, side=f"{each.side}, {size} queries") for each in turns)


def _pivot(
    found: Sequence[Found], sizes: Sequence[int], show: Callable[[Found], str]
) -> tuple[tuple[str, ...], ...]:
    cells = {(each.side, each.size): show(each) for each in found}
    sides = dict.fromkeys(each.side for each in found)
    return tuple((side, *(cells[side, size] for size in sizes)) for side in sides)


def _aggregations(found: Found) -> str:
    progress = found.progress
    finals = progress.final_aggregations + progress.cell_aggregations
    return f"{progress.partial_aggregations:,} + {finals:,}"


def figure(name: str, found: Iterable[Found]) -> Plot:
    """Times over the number of queries, as the paper's figure for the workload shows them."""
    lines: dict[str, tuple[tuple[float, float], ...]] = {}
    for each in found:
        if each.workload == name:
            points = lines.get(each.side, ())
            lines[each.side] = (*points, (float(each.size), each.seconds))
    label = f"figure-{_FIGURES[name]}"
    return Plot(label, f"{name}: time by strategy", "queries", "seconds", lines)
