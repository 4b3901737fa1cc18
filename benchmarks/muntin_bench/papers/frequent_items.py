"""Frequent addresses by lists of panes: Figure 6.3 of the 2006 thesis.

The thesis has a trace of TCP packets from 1,647 addresses. Ours is drawn by Zipf's law and bursty:
three packets in five come from the address of the one before. Lists and bounds are those of
`approx_frequent`, whose bound is the count of the first address that is on no list; the thesis
takes that of the last one that is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregates.algebra import Part as Accumulator
from muntin.aggregates.columns.holistic.frequent import FrequentColumn
from muntin_bench.papers.claims import Claim, Part, at_least, at_most
from muntin_bench.report import Plot, Section

ADDRESSES, WINDOW = 1647, 100_000
PANES = (20, 100, 500)
TRACKED = tuple(range(1, 11))


@dataclass(frozen=True)
class Found:
    """What lists of so many addresses say of a window, as means over its starts.

    Shares are of the window's rows, or of the addresses that are more frequent than the bound.
    """

    bound: float
    above: float
    reported: float
    error: float
    entries: float


def trace(rows: int) -> Ints:
    """Addresses of packets in order."""
    rng = np.random.default_rng(6)
    chances = 1 / np.arange(1, ADDRESSES + 1) ** 1.1
    drawn = rng.choice(ADDRESSES, rows, p=chances / chances.sum())
    fresh = np.where(rng.random(rows) < 0.6, 0, np.arange(rows))
    return drawn[np.maximum.accumulate(fresh)]


def figure_6_3(starts: int) -> Part:
    """Bound, addresses found, space and error by length of lists, for panes of several sizes."""
    rows = trace(WINDOW * 4)
    places = np.random.default_rng(3).integers(0, rows.size - WINDOW, starts).tolist()
    found = {pane: _measured(rows, places, pane) for pane in PANES}
    shown = {
        "Figure 6.3: bound, % of the window": ("bound", "bound in %", 100.0),
        "Figure 6.3: addresses found, % of those above the bound": ("reported", "found in %", 100),
        "Figure 6.3: entries kept": ("entries", "entries", 1.0),
        "Figure 6.3: mean error of counts, %": ("error", "error in %", 100.0),
    }
    sections, plots = [], []
    for number, (title, (field, label, scale)) in enumerate(shown.items()):
        lines = {
            f"panes of {pane}": [scale * getattr(each, field) for each in found[pane]]
            for pane in PANES
        }
        rows_shown = tuple(
            (str(k), *(f"{line[at]:,.2f}" for line in lines.values()))
            for at, k in enumerate(TRACKED)
        )
        sections.append(Section(title, ("addresses on a list", *lines), rows_shown))
        points = {
            name: tuple(zip(map(float, TRACKED), line, strict=True)) for name, line in lines.items()
        }
        name = f"figure-6-3-{'abcd'[number]}"
        plots.append(Plot(name, title, "addresses on a list", label, points))
    return Part(tuple(sections), _claims(found), tuple(plots))


def _measured(rows: Ints, places: Sequence[int], pane: int) -> list[Found]:
    """What lists of each length say, over all starts."""
    each = [_window(rows[place : place + WINDOW], pane) for place in places]
    return [Found(*(float(mean) for mean in np.mean(kept, axis=0))) for kept in zip(*each)]  # noqa: B905


def _window(rows: Ints, pane: int) -> list[tuple[float, ...]]:
    """What lists of each length say of one window."""
    exact = np.bincount(rows, minlength=ADDRESSES)
    size = rows.size // pane
    counted = FrequentColumn.empty(Accumulator("frequent:1", (pa.int64(),)), size)
    counted.update(np.arange(rows.size) // pane, (pa.array(rows),))
    found: list[tuple[float, ...]] = []
    for tracked in TRACKED:
        column = FrequentColumn.empty(Accumulator(f"frequent:{tracked}", (pa.int64(),)), size)
        column.merge(np.arange(size), counted)
        column.seal()
        entries = len(column.lows.rows.codes)
        whole = column.slide(np.array([0]), np.array([size]))
        addresses, lows = whole.lows.rows.codes[:, 0], whole.lows.rows.weights
        bound = int(whole.slack[0])
        over = lows > bound
        # No address is reported that is not as frequent as that.
        assert (exact[addresses[over]] > bound).all()
        assert (lows <= exact[addresses]).all()
        above = int(np.count_nonzero(exact > bound))
        error = 1 - (lows[over] / exact[addresses[over]]).mean() if over.any() else 1.0
        found.append((
            bound / rows.size, above, np.count_nonzero(over) / above if above else 1.0, error,
            entries,
        ))  # fmt: skip
    return found


def _claims(found: Mapping[int, Sequence[Found]]) -> tuple[Claim, ...]:
    bounds = {pane: [each.bound for each in lines] for pane, lines in found.items()}
    falls = all(np.all(np.diff(line) < 0) for line in bounds.values())
    grows = all(bounds[20][k] > bounds[100][k] > bounds[500][k] for k in range(5))
    middle = found[100][4]
    errors = {pane: [each.error for each in lines] for pane, lines in found.items()}
    where = "Figure 6.3"
    return (
        Claim(where, "the bound falls with longer lists", "yes", _yes(falls), falls),
        Claim(where, "the bound grows as panes shrink, up to 5 on a list", "yes", _yes(grows),
              grows),
        Claim(where, "bound with 5 on a list", "about 5%", f"{100 * middle.bound:.1f}%",
              0.025 < middle.bound < 0.1),
        Claim(where, "addresses above it", "3 to 4", f"{middle.above:.1f}",
              2 <= middle.above <= 5),
        at_least(where, "found of these, panes of 100, 3 or more on a list, %", 80,
                 100 * min(each.reported for each in found[100][2:])),
        at_least(where, "found, panes of 20, 8 or more on a list, %", 95,
                 100 * min(each.reported for each in found[20][7:])),
        at_most(where, "error, panes of 20, 7 or more on a list, %", 2,
                100 * max(errors[20][6:])),
        Claim(where, "the error falls with smaller panes, 5 on a list", "yes",
              _yes(errors[20][4] < errors[500][4]), errors[20][4] < errors[500][4]),
        at_least(where, "space of panes of 20 over panes of 500, 5 on a list", 15,
                 found[20][4].entries / found[500][4].entries),
    )  # fmt: skip


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"
