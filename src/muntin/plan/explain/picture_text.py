"""The picture of slices in letters, within 80 columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from muntin.plan.explain.picture_model import Axis
from muntin.plan.explain.words import clipped, printable

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
