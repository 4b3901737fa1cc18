"""Hundreds of queries for little more than the price of one: what sharing costs and saves."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from muntin.bench.report import Check, Plot, Report, Section
from muntin.bench.sharing_counts import PAPERS, count
from muntin.bench.sharing_data import ROWS, SYMBOLS, hour, week
from muntin.bench.sharing_grid import Found, grid
from muntin.bench.sharing_growth import growth
from muntin.bench.sharing_memory import memory
from muntin.bench.sharing_paper import analysis, counts_beside_paper, times_beside_paper
from muntin.bench.sharing_peers import beside_peers
from muntin.bench.sharing_process import one_core
from muntin.bench.sharing_workloads import DRAWN, NAMES

QUICK_VARIABLE = "MUNTIN_BENCH_QUICK"
# Figures 13 to 16 of "On-the-Fly Sharing for Streamed Aggregation".
_FIGURES = dict(zip(NAMES, (13, 14, 15, 16), strict=True))


@dataclass(frozen=True)
class Scale:
    """How much to measure; ``peer_rows`` is the size of a made-up hour instead of real trades."""

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
SMALL = Scale(5000, 40, (4, 16), (4, 16), 64, (0, 1), None, 1, 0.0, 3000, (1, 4), 1, (1, 50))

Measured = tuple[tuple[Section, ...], tuple[Check, ...], tuple[Plot, ...]]


def run(scale: Scale | None = None) -> Report:
    """Compare all answers, then time them: ours on one core, other engines on all."""
    if scale is None:
        scale = SMALL if os.environ.get(QUICK_VARIABLE) else FULL
    with one_core() as process:
        sections, checks, plots = process.call(measured, scale)
        peers, peer_checks = beside_peers(
            process, scale.peer_rows, scale.peer_sizes, scale.peer_repeats
        )
    about = hour(scale.rows, scale.symbols).about
    return Report(
        "sharing",
        about if scale == FULL else f"{about}; promises are made for more",
        sections=(*sections, peers),
        checks=(*checks, *peer_checks),
        plots=plots,
    )


def measured(scale: Scale) -> Measured:
    """All that needs no other engine; meant for a process with one core."""
    market = hour(scale.rows, scale.symbols)
    largest = scale.sizes[-1]
    found = list(grid(market, scale.sizes, scale.squares, scale.repeats, scale.patience))
    counts = list(count(market, largest, scale.seeds))
    counted, promises = counts_beside_paper(counts, largest)
    grown, timed = growth(market, (scale.sizes[0], largest, scale.large), scale.seeds)
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
        ("milliseconds (* one run)", _milliseconds),
        ("partial + final aggregations", _aggregations),
        ("milliseconds to parse and plan", lambda each: f"{each.planning * 1e3:,.0f}"),
    )
    return [Section(f"{name}, {title}", columns, _pivot(own, sizes, show)) for title, show in shown]


def _pivot(
    found: Sequence[Found], sizes: Sequence[int], show: Callable[[Found], str]
) -> tuple[tuple[str, ...], ...]:
    cells = {(each.side, each.size): show(each) for each in found}
    sides = dict.fromkeys(each.side for each in found)
    return tuple((side, *(cells[side, size] for size in sizes)) for side in sides)


def _milliseconds(found: Found) -> str:
    return f"{found.seconds * 1e3:,.1f}{'*' if found.runs == 1 else ''}"


def _aggregations(found: Found) -> str:
    progress = found.progress
    return f"{progress.partial_aggregations:,} + {progress.final_aggregations:,}"


def figure(name: str, found: Iterable[Found]) -> Plot:
    """Times over the number of queries, as the paper's figure for the workload shows them."""
    lines: dict[str, tuple[tuple[float, float], ...]] = {}
    for each in found:
        if each.workload == name:
            points = lines.get(each.side, ())
            lines[each.side] = (*points, (float(each.size), each.seconds))
    label = f"figure-{_FIGURES[name]}"
    return Plot(label, f"{name}: time by strategy", "queries", "seconds", lines)
