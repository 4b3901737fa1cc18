"""The slices of a composite period on a time axis, as the papers draw them.

Each window's own slices are on a line, and below them the slices that all of them share. After
"On-the-Fly Sharing for Streamed Aggregation", where sliced windows are composed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import gcd, lcm
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from muntin.display import count
from muntin.errors import WindowError
from muntin.plan.explain.costs import COUNTED_EDGES, edge_rate, own_classes
from muntin.plan.explain.formats import check_format
from muntin.plan.explain.model import Axis, Line, clipped, length, names, printable
from muntin.plan.explain.partials import slices_label, slicing_column
from muntin.plan.explain.picture_svg import axes_svg
from muntin.plan.nodes import SharedPlan, Slicing
from muntin.windows import TIME_LIMIT, DurationLike, EdgeClass, Window, duration, edges_between
from muntin.windows.duration import SHOWN_UNITS, is_plain

_LABEL = 18
_WIDE = 60


def axes_text(axes: Sequence[Axis]) -> str:
    """All axes, one below the other."""
    return "\n\n".join("\n".join(_lines(axis)) for axis in axes)


def _lines(axis: Axis) -> list[str]:
    wide = _width(axis)
    lines = [printable(axis.title), *(f"  {note}" for note in axis.notes), ""]
    for each in axis.lines:
        drawn = _drawn(axis, each.edges, wide)
        lines.append(f"{clipped(each.label, _LABEL):<{_LABEL}} {drawn}")
        lines.append(f"  {printable(each.queries)}")
    drawn = _drawn(axis, axis.shared, wide, axis.common)
    lines += [f"{'shared':<{_LABEL}} {drawn}", f"{'':{_LABEL}} {_scale(axis, wide)}"]
    used = [f"{sign} {meaning}" for sign, meaning in _SIGNS if sign in drawn]
    return [*(line.rstrip() for line in lines), *(f"  {each}" for each in used)]


_SIGNS = (
    ("●", "an edge of several windows"),
    ("▒", "edges closer than one column"),
)


def _width(axis: Axis) -> int:
    """Columns of the axis: a whole number for each step, if all steps fit."""
    steps = axis.span // axis.ticks
    return steps * (_WIDE // steps) if 0 < steps <= _WIDE else _WIDE


def _drawn(axis: Axis, edges: Sequence[int], wide: int, common: Collection[int] = ()) -> str:
    drawn = ["─"] * (wide + 1)
    held: dict[int, list[int]] = {}
    for edge in edges:
        held.setdefault(edge * wide // axis.span, []).append(edge)
    for column, listed in held.items():
        sign = {0: "├", wide: "┤"}.get(column, "┼")
        if len(listed) > 1:
            sign = "▒"
        elif listed[0] in common:
            sign = "●"
        drawn[column] = sign
    return "".join(drawn)


def _scale(axis: Axis, wide: int) -> str:
    """Numbers below the edges, as many as there is room for, and the unit."""
    end = f"{axis.number(axis.span)} {printable(axis.unit)}"
    scale = [" "] * wide
    free = 0
    for edge in axis.shared:
        number, column = axis.number(edge), edge * wide // axis.span
        if column >= free and column + len(number) < wide - 1:
            scale[column : column + len(number)] = number
            free = column + len(number) + 2
    return f"{''.join(scale)}{end}" if len(end) <= 1 else _ended(scale, end)


def _ended(scale: list[str], end: str) -> str:
    """The last number ends where the axis ends, and takes the room it needs."""
    room = len(scale) + 1 - len(end)
    kept = "".join(scale)[: max(room - 1, 0)]
    if room > 0 and scale[room - 1] != " " and scale[room - 2] != " ":
        kept = kept.rstrip("0123456789,")
    return f"{kept:<{max(room, 0)}}{end}"


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
