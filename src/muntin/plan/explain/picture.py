"""The slices of a composite period on a time axis, as the papers draw them.

Each window's own slices are on a line, and below them the slices that all of them share. After
"On-the-Fly Sharing for Streamed Aggregation", where sliced windows are composed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import gcd, lcm
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from muntin.display import count
from muntin.errors import WindowError
from muntin.plan.explain.costs import COUNTED_EDGES, edge_rate, own_classes
from muntin.plan.explain.formats import check_format
from muntin.plan.explain.partials import slices_label, slicing_column
from muntin.plan.explain.picture_model import Axis, Line
from muntin.plan.explain.picture_svg import axes_svg
from muntin.plan.explain.picture_text import axes_text
from muntin.plan.explain.words import length, names
from muntin.plan.nodes import SharedPlan, Slicing
from muntin.windows import TIME_LIMIT, DurationLike, EdgeClass, Window, duration, edges_between
from muntin.windows.duration import is_plain
from muntin.windows.units import SHOWN_UNITS

PictureFormat: TypeAlias = Literal["svg", "text"]
PICTURES: Mapping[str, Callable[[Sequence[Axis]], str]] = {"svg": axes_svg, "text": axes_text}

_SHORT = {
    "day": "d",
    "hour": "h",
    "minute": "min",
    "second": "s",
    "millisecond": "ms",
    "microsecond": "us",
    "row": "rows",
}
# What people can still tell apart.
SHOWN_EDGES = 48
SHOWN_LINES = 12
SHOWN_AXES = 4
# What is drawn at most when a span is asked for.
MOST_EDGES = 2_000


def picture(
    plan: SharedPlan,
    format: PictureFormat = "svg",  # noqa: A002
    span: DurationLike | None = None,
) -> str:
    """The slices of a plan's windows, from a common edge on.

    Args:
        plan: What to draw.
        format: "svg" or "text".
        span: How much to draw: a duration for timestamps, a number for rows and plain integers.
            If not given, the composite period, or the first edges of a long one.
    """
    check_format(format, PICTURES)
    if span is not None and duration(span) <= 0:
        raise WindowError(f"span {span!r} is not positive", hint="give a span above zero")
    axes = [_axis(plan, place, span) for place in range(min(len(plan.slicings), SHOWN_AXES))]
    if len(plan.slicings) > SHOWN_AXES:
        left = count(len(plan.slicings) - SHOWN_AXES, "slicing")
        axes[-1] = axes[-1].noted(f"{left} more not shown")
    return PICTURES[format](axes)


def _axis(plan: SharedPlan, place: int, asked: DurationLike | None) -> Axis:
    slicing = plan.slicings[place]
    period = lcm(*(window.period for window in slicing.windows))
    rate = edge_rate(slicing.classes)
    edges = int(rate.rate * period) if rate.exact and period < TIME_LIMIT else None
    span = _span(slicing, period, edges, asked)
    shared = edges_between(slicing.classes, 0, span + 1)
    own = [own_classes(window, plan.slicing) for window in slicing.windows]
    several = _shares(own, shared) > 1
    queries: dict[Window, list[str]] = {window: [] for window in slicing.windows}
    for final in plan.finals:
        if plan.partials[final.partials].slicing == place:
            queries[final.window].append(final.name)
    lines = tuple(
        Line(_label(window), names(queries[window]), _listed(edges_between(own[at], 0, span + 1)))
        for at, window in enumerate(slicing.windows[:SHOWN_LINES])
    )
    unit, step = _unit(slicing, [*_listed(shared), span])
    return Axis(
        f"{slices_label(plan, place)} of {slicing_column(slicing)}",
        _notes(slicing, (period, edges), (span, len(shared))),
        span,
        unit,
        step,
        lines,
        _listed(shared),
        frozenset(_listed(shared[several])),
    )


def _span(slicing: Slicing, period: int, edges: int | None, asked: DurationLike | None) -> int:
    timed = slicing.windows[0].unit == "duration"
    if asked is not None and timed == (not is_plain(asked)):
        span = duration(asked)
        if span * sum(1 / each for each, _ in slicing.classes) > MOST_EDGES:
            raise WindowError(
                f"span {asked!r} holds more than {MOST_EDGES:,} edges", hint="draw a shorter one"
            )
        return span
    if edges is not None and edges <= SHOWN_EDGES:
        return period
    return _first_edges(slicing.classes, SHOWN_EDGES)


def _first_edges(classes: Sequence[EdgeClass], wanted: int) -> int:
    """The last of the first so many edges after 0, found without the common period."""
    periods, phases = np.array(classes, np.int64).T
    place = 0
    for _ in range(wanted):
        place = int(np.min(place + periods - (place - phases) % periods))
    return place


def _shares(
    own: Sequence[Sequence[EdgeClass]], edges: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """How many windows cut at each edge."""
    counts = np.zeros(len(edges), np.int64)
    for classes in own:
        counts += np.any([(edges - phase) % period == 0 for period, phase in classes], axis=0)
    return counts


def _notes(
    slicing: Slicing, whole: tuple[int, int | None], drawn: tuple[int, int]
) -> tuple[str, ...]:
    """What is drawn of the whole, each as a length and its number of edges."""
    windows = slicing.windows
    period, edges = whole
    held = f"over {COUNTED_EDGES:,} edges" if edges is None else count(edges, "edge")
    if period < TIME_LIMIT:
        told = f"a composite period of {length(windows[0], period)} with {held}"
    else:
        told = "a composite period beyond all times"
    notes = [f"{count(len(windows), 'window')}, {told}"]
    if drawn[0] != period:
        span, number = length(windows[0], drawn[0]), count(drawn[1], "edge")
        notes.append(f"drawn: the first {span}, {number}")
    if len(windows) > SHOWN_LINES:
        left = count(len(windows) - SHOWN_LINES, "window").replace(" ", " more ", 1)
        notes.append(f"not drawn by themselves: {left}")
    return tuple(notes)


def _label(window: Window) -> str:
    return f"{_short(window, window.range)} / {_short(window, window.period)}"


def _short(window: Window, value: int) -> str:
    number, _, unit = length(window, value).partition(" ")
    return f"{number} {_SHORT[unit.removesuffix('s')]}" if unit else number


def _unit(slicing: Slicing, edges: Sequence[int]) -> tuple[str, int]:
    """The largest unit in which every edge is a whole number."""
    if slicing.windows[0].unit != "duration":
        return slicing_column(slicing), 1
    step = gcd(*edges)
    name, ticks = next(unit for unit in SHOWN_UNITS if step % unit[1] == 0)
    return f"{name}s", ticks


def _listed(edges: npt.NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(edges.tolist())
