"""SVG elements with escaped text, and how wide text is: what every drawing is made of."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from html import escape

from muntin.plan.explain.model import printable

FONT = 12.0
# Of a fixed-width font, whichever the reader's machine has.
LETTER = 7.3
LINE = 16.0
FAMILY = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

_LIGHT = {
    "back": "#ffffff",
    "ink": "#1f2328",
    "faint": "#59636e",
    "rule": "#8c959f",
    "slicing": "#ddf4ff",
    "partials": "#fff1d6",
    "final": "#dafbe1",
    "more": "#eff2f5",
}
_DARK = {
    "back": "#0d1117",
    "ink": "#e6edf3",
    "faint": "#b1bac4",
    "rule": "#6e7681",
    "slicing": "#10304f",
    "partials": "#3f2e0c",
    "final": "#12331f",
    "more": "#212830",
}


def document(title: str, width: float, height: float, body: Sequence[str]) -> str:
    """A whole drawing: it needs nothing from elsewhere and reads in light and in dark."""
    size = f'width="{_number(width)}" height="{_number(height)}"'
    box = f'viewBox="0 0 {_number(width)} {_number(height)}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="muntin" {size} {box} role="img" '
        f'font-family="{escape(FAMILY)}" font-size="{_number(FONT)}">'
    )
    dark = f"@media (prefers-color-scheme: dark) {{\n{_styles(_DARK)}\n}}"
    return "\n".join(
        (
            head,
            f"<title>{_escaped(title)}</title>",
            f"<style>\n{_styles(_LIGHT)}\n{dark}\n</style>",
            rectangle(0, 0, width, height, "back"),
            *body,
            "</svg>",
            "",
        )
    )


def _styles(colours: dict[str, str]) -> str:
    """Fills and strokes by class, only inside this drawing: a page may hold it among others."""
    rules = [f"svg.muntin .{name} {{ fill: {colour}; }}" for name, colour in colours.items()]
    rules.append(
        f"svg.muntin .line {{ fill: none; stroke: {colours['rule']}; stroke-width: 1.2; }}"
    )
    rules.append(f"svg.muntin .box {{ stroke: {colours['rule']}; }}")
    return "\n".join(rules)


def rectangle(x: float, y: float, width: float, height: float, kind: str, round_: float = 0) -> str:
    """A filled rectangle of a class or two."""
    corner = f' rx="{_number(round_)}"' if round_ else ""
    return (
        f'<rect class="{kind}" x="{_number(x)}" y="{_number(y)}" '
        f'width="{_number(width)}" height="{_number(height)}"{corner}/>'
    )


def line(points: str, *, dashed: bool = False) -> str:
    """A path without a fill."""
    dash = ' stroke-dasharray="4 3"' if dashed else ""
    return f'<path class="line" d="{points}"{dash}/>'


def text(x: float, y: float, content: str, kind: str = "ink", *, extra: str = "") -> str:
    """One line of text with its foot at y."""
    return (
        f'<text class="{kind}" x="{_number(x)}" y="{_number(y)}"{extra} '
        f'xml:space="preserve">{_escaped(content)}</text>'
    )


def at(*numbers: float) -> str:
    """Coordinates of a path."""
    return " ".join(map(_number, numbers))


def cells(content: str) -> int:
    """How many letters wide a text is: East Asian letters take two places, marks none."""
    return sum(map(_cells, content))


def _cells(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def wrapped(content: str, width: int, most: int) -> list[str]:
    """The text in lines of at most ``width`` letters, cut at spaces; an ellipsis ends the last.

    >>> wrapped("sum(price * vol), count(vol)", 12, 2)
    ['sum(price *', 'vol),…']
    """
    lines = [""]
    for word in printable(content).split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if cells(joined) <= width:
            lines[-1] = joined
            continue
        if lines[-1]:
            lines.append("")
        for letter in word:
            if cells(lines[-1]) + _cells(letter) > width:
                lines.append("")
            lines[-1] += letter
        if len(lines) > most:
            break
    if len(lines) <= most:
        return lines
    last = lines[most - 1]
    while cells(last) >= width:
        last = last[:-1]
    return [*lines[: most - 1], f"{last}…"]


def _escaped(content: str) -> str:
    return escape(printable(content))


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
