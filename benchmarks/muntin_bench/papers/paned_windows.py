"""Time with panes over time without: Figure 3 of "No Pane, No Gain".

A sliding max over one row per tick. With panes the engine slices the stream and puts windows
together from slices. Without, every window is evaluated from its own rows: the same engine gets a
copy of each row for each of its windows. The copies are made beforehand and not timed, which
favours the side without panes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.engine import LocalEngine, Progress
from muntin.plan import SharedPlan
from muntin.planner import build_plan
from muntin.queries import queries
from muntin_bench.papers.claims import Claim, Part, at_least, near
from muntin_bench.report import Plot, Section

# The one point that the paper's text gives.
POINT, RATIO = (20, 5), 0.30


@dataclass(frozen=True)
class Ratio:
    """Paned over windowed: processor time, aggregations counted, and the formulas 3.1 over 3.3."""

    rows_per_pane: int
    panes: int
    seconds: float
    aggregations: float

    @property
    def formula(self) -> float:
        """Every row once and P panes a window, over all rows of a window, at equal costs."""
        return 1 / self.panes + 1 / self.rows_per_pane


def figure_3(rows: int, per_pane: Sequence[int], panes: Sequence[int], repeats: int) -> Part:
    """Ratios by rows per pane and panes per window."""
    found = list(ratios(rows, per_pane, panes, repeats))
    shown: tuple[tuple[str, Callable[[Ratio], float]], ...] = (
        ("time with panes over time without", lambda each: each.seconds),
        ("aggregations with panes over those without", lambda each: each.aggregations),
        ("the same by formulas 3.1 and 3.3", lambda each: each.formula),
    )
    columns = ("rows per pane", *(f"{count} panes per window" for count in panes))
    sections = tuple(
        Section(f"Figure 3: {title}, {rows:,} rows", columns, _pivot(found, panes, value))
        for title, value in shown
    )
    lines = {
        f"{count} panes per window": tuple(
            (float(each.rows_per_pane), each.seconds) for each in found if each.panes == count
        )
        for count in panes
    }
    title = "No Pane, No Gain, Figure 3: paned over windowed time"
    plot = Plot("panes-figure-3", title, "rows per pane", "ratio", lines)
    return Part(sections, _claims(found), (plot,))


def ratios(
    rows: int, per_pane: Sequence[int], panes: Sequence[int], repeats: int
) -> Iterator[Ratio]:
    """Both sides for every pair, answers compared before they are timed."""
    from muntin_bench.optimizer.fit import processor_seconds  # noqa: PLC0415

    values = np.random.default_rng(0).random(rows)
    for size in per_pane:
        for count in panes:
            paned, windowed = sides(values, size, count)
            (answers, with_panes), (others, without) = paned(), windowed()
            assert answers.equals(others), f"{size} rows per pane, {count} panes per window"
            timed = processor_seconds({"paned": paned, "windowed": windowed}, repeats)
            yield Ratio(
                size,
                count,
                timed["paned"] / timed["windowed"],
                _aggregations(with_panes) / _aggregations(without),
            )


Side = Callable[[], tuple[pa.ChunkedArray, Progress]]


def sides(values: Any, rows_per_pane: int, panes: int) -> tuple[Side, Side]:
    """The query with panes, and over copies of the rows of every window."""
    stream = pa.table({"t": np.arange(len(values)), "v": values})
    sql = f"SELECT max(v) AS a FROM s [RANGE {panes * rows_per_pane} SLIDE {rows_per_pane}]"
    window, row = copies(len(values), rows_per_pane, panes)
    copied = pa.table({"t": window, "v": values[row]})
    every = "SELECT max(v) AS a FROM s [RANGE 1 SLIDE 1]"
    return partial(_answers, _plan(sql, stream), stream), partial(
        _answers, _plan(every, copied), copied
    )


def copies(rows: int, rows_per_pane: int, panes: int) -> tuple[Any, Any]:
    """The number of each window and a row of it, window by window; row i is at time i.

    >>> window, row = copies(4, rows_per_pane=2, panes=2)
    >>> window.tolist(), row.tolist()
    ([0, 0, 1, 1, 1, 1, 2, 2], [0, 1, 0, 1, 2, 3, 2, 3])
    """
    windows = -(-rows // rows_per_pane) + panes - 1
    window = np.repeat(np.arange(windows), panes * rows_per_pane)
    first = (np.arange(windows) + 1 - panes) * rows_per_pane
    row = (first[:, None] + np.arange(panes * rows_per_pane)).ravel()
    held = (row >= 0) & (row < rows)
    return window[held], row[held]


def _plan(sql: str, table: pa.Table) -> SharedPlan:
    return build_plan(queries(sql), table.schema, "t", strategy="slices", slicing="panes")


def _answers(plan: SharedPlan, table: pa.Table) -> tuple[pa.ChunkedArray, Progress]:
    engine = LocalEngine(plan)
    engine.feed(table)
    (result,) = engine.close().values()
    return result.column("a"), engine.progress()


def _aggregations(progress: Progress) -> int:
    return progress.aggregations


def _pivot(
    found: Sequence[Ratio], panes: Sequence[int], value: Callable[[Ratio], float]
) -> tuple[tuple[str, ...], ...]:
    cells = {(each.rows_per_pane, each.panes): f"{value(each):.3f}" for each in found}
    sizes = dict.fromkeys(each.rows_per_pane for each in found)
    return tuple((str(size), *(cells[size, count] for count in panes)) for size in sizes)


def _claims(found: Sequence[Ratio]) -> tuple[Claim, ...]:
    claims = [
        near("Figure 3", "time ratio at 20 rows per pane, 5 panes", RATIO, each.seconds, 1.5)
        for each in found
        if (each.rows_per_pane, each.panes) == POINT
    ]
    gains = [each.seconds < 1 for each in found]
    few, many = (of(each.rows_per_pane for each in found) for of in (min, max))
    means = [
        fmean(each.seconds for each in found if each.rows_per_pane == size) for size in (few, many)
    ]
    return (
        *claims,
        at_least("Figure 3", "share of points where panes are faster: most", 0.5, fmean(gains)),
        Claim(
            "Figure 3",
            "panes gain more the more rows a pane holds",
            "falls",
            f"{means[0]:.2f} at {few}, {means[1]:.2f} at {many}",
            means[1] < means[0],
        ),
    )
