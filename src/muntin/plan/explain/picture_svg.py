"""The picture of slices as a drawing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from muntin.plan.explain.model import Axis
from muntin.plan.explain.svg_text import (
    LETTER,
    LINE,
    at,
    cells,
    document,
    line,
    rectangle,
    text,
    wrapped,
)

_MARGIN = 20.0
_LABEL = 34
_LEFT = _MARGIN + _LABEL * LETTER + 12
_WIDE = 720.0
_ROW = 24.0
_STEP = 42.0


def axes_svg(axes: Sequence[Axis]) -> str:
    """All axes, one below the other."""
    drawn: list[str] = []
    top = _MARGIN
    for axis in axes:
        lines, top = _axis(axis, top)
        drawn += lines
    width = _LEFT + _WIDE + 2 * _MARGIN
    return document(", ".join(axis.title for axis in axes), width, top, drawn)


def _axis(axis: Axis, top: float) -> tuple[list[str], float]:
    drawn = [text(_MARGIN, top + 12, axis.title, extra=' font-weight="bold"')]
    for number, note in enumerate(axis.notes, start=1):
        drawn.append(text(_MARGIN, top + 12 + number * LINE, note, "faint"))
    first = top + 12 + len(axis.notes) * LINE + 18
    foot = first + len(axis.lines) * _STEP + _ROW + 8
    drawn += _guides(axis, first, foot)
    for number, each in enumerate(axis.lines):
        y = first + number * _STEP
        drawn.append(text(_MARGIN, y + 11, each.label))
        drawn.append(text(_MARGIN, y + 11 + LINE, wrapped(each.queries, _LABEL, 1)[0], "faint"))
        drawn += _slices(axis, each.edges, y, "slicing")
    y = foot - _ROW
    drawn.append(text(_MARGIN, y + 16, "shared", extra=' font-weight="bold"'))
    drawn += _slices(axis, axis.shared, y, "partials")
    drawn += [
        f'<circle class="ink" cx="{at(_x(axis, edge))}" cy="{at(y + _ROW / 2)}" r="3"/>'
        for edge in axis.shared
        if edge in axis.common
    ]
    drawn += _scale(axis, foot)
    if not axis.common:
        return drawn, foot + 2 * LINE + _MARGIN
    drawn.append(text(_LEFT, foot + 2 * LINE + 8, "● an edge of several windows", "faint"))
    return drawn, foot + 3 * LINE + _MARGIN


def _x(axis: Axis, place: int) -> float:
    return _LEFT + place / axis.span * _WIDE


def _slices(axis: Axis, edges: Sequence[int], y: float, kind: str) -> list[str]:
    """Slices side by side; the first and the last may go on beyond the picture."""
    drawn = [rectangle(_LEFT, y, _WIDE, _ROW, kind)]
    drawn += [line(f"M {at(_LEFT, y)} H {at(_LEFT + _WIDE)}")]
    drawn += [line(f"M {at(_LEFT, y + _ROW)} H {at(_LEFT + _WIDE)}")]
    drawn += [line(f"M {at(_x(axis, edge), y)} V {at(y + _ROW)}") for edge in edges]
    for low, high in pairwise(edges):
        number = axis.number(high - low)
        room = _x(axis, high) - _x(axis, low) - (13 if kind == "partials" else 4)
        if cells(number) * LETTER <= room:
            middle = (_x(axis, low) + _x(axis, high)) / 2
            drawn.append(text(middle, y + 16, number, extra=' text-anchor="middle"'))
    return drawn


def _guides(axis: Axis, top: float, foot: float) -> list[str]:
    """Where windows agree, a line through all of them."""
    return [
        line(f"M {at(_x(axis, edge), top - 6)} V {at(foot)}", dashed=True)
        for edge in axis.shared
        if edge in axis.common
    ]


def _scale(axis: Axis, foot: float) -> list[str]:
    """Numbers below the edges, as many as there is room for."""
    drawn: list[str] = []
    end = f"{axis.number(axis.span)} {axis.unit}"
    last = _LEFT + _WIDE
    free, limit = _LEFT - 40, last - (cells(end) + 1) * LETTER
    for edge in axis.shared:
        number = axis.number(edge)
        half = cells(number) * LETTER / 2
        x = _x(axis, edge)
        if x - half >= free and x + half <= limit:
            drawn.append(text(x, foot + LINE, number, "faint", extra=' text-anchor="middle"'))
            free = x + half + LETTER
    return [*drawn, text(last, foot + LINE, end, "faint", extra=' text-anchor="end"')]
