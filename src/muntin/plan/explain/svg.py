"""The plan as a drawing: slices on the left, partials in the middle, queries on the right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muntin.plan.explain.model import Item
from muntin.plan.explain.svg_text import LETTER, LINE, at, document, line, rectangle, text, wrapped

_PAD = 10.0
_GAP = 12.0
_BLOCK = 26.0
_CHANNEL = 64.0
_MARGIN = 20.0
# How many letters a box is wide, and into how many lines one of its texts may be broken.
_WIDE = {"slicing": 30, "partials": 46, "final": 44}
_BROKEN = 3
_BROKEN_BELOW = 6
_COLUMNS = ("slicing", "partials", "final")


@dataclass
class _Box:
    """A box with its lines of text; the first is its label."""

    item: Item
    column: str
    lines: tuple[tuple[str, str], ...]
    y: float = 0.0

    @property
    def height(self) -> float:
        return len(self.lines) * LINE + 2 * _PAD - 4

    @property
    def width(self) -> float:
        return _WIDE[self.column] * LETTER + 2 * _PAD

    @property
    def x(self) -> float:
        before = _COLUMNS[: _COLUMNS.index(self.column)]
        return _MARGIN + sum(_WIDE[name] * LETTER + 2 * _PAD + _CHANNEL for name in before)

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def item_svg(item: Item) -> str:
    """A rendered plan as a self-contained SVG text."""
    slicings = [_box(child, "slicing") for child in item.children if _column(child) == "slicing"]
    blocks = [
        (
            _box(child, "partials"),
            [_box(each, "final") for each in child.children if each.kind != "accumulators"],
        )
        for child in item.children
        if _column(child) == "partials"
    ]
    width = 2 * _MARGIN + 2 * _CHANNEL + sum(wide * LETTER + 2 * _PAD for wide in _WIDE.values())
    heading = _heading(item, int((width - 2 * _MARGIN) / LETTER))
    top = _MARGIN + len(heading) * LINE + 14
    bottom = _place(slicings, blocks, top)
    boxes = [*slicings, *(each for block, finals in blocks for each in (block, *finals))]
    drawn = [_heading_line(number, *each) for number, each in enumerate(heading)]
    drawn += _arrows(boxes)
    for box in boxes:
        drawn += _drawn(box)
    return document(f"{item.label}: {', '.join(item.beside)}", width, bottom + _MARGIN, drawn)


def _column(item: Item) -> str:
    """Where an item stands; the count of what is left out stands below its likes."""
    return "slicing" if item.id.startswith("slicing") else "partials"


def _heading(item: Item, width: int) -> list[tuple[str, str]]:
    lines = [(item.label, "ink")]
    for each in (*item.beside, *item.below):
        lines += [(part, "faint") for part in wrapped(each, width, 2)]
    return lines


def _heading_line(number: int, content: str, kind: str) -> str:
    extra = ' font-weight="bold"' if number == 0 else ""
    return text(_MARGIN, _MARGIN + (number + 1) * LINE - 4, content, kind, extra=extra)


def _box(item: Item, column: str) -> _Box:
    width = _WIDE[column]
    lines = [(part, "ink") for part in wrapped(item.label, width, _BROKEN)]
    for each in item.beside:
        lines += [(part, "ink") for part in wrapped(each, width, _BROKEN)]
    for child in item.children:
        if child.kind == "accumulators":
            lines += _indented(child.label, "ink", width, "· ")
            for each in child.beside:
                lines += _indented(each, "faint", width)
    for each in item.below:
        lines += [(part, "faint") for part in wrapped(each, width, _BROKEN_BELOW)]
    return _Box(item, column, tuple(lines))


def _indented(content: str, shade: str, width: int, mark: str = "  ") -> list[tuple[str, str]]:
    first, *rest = wrapped(content, width - 2, _BROKEN)
    return [(mark + first, shade), *((f"  {part}", shade) for part in rest)]


def _place(
    slicings: Sequence[_Box], blocks: Sequence[tuple[_Box, list[_Box]]], top: float
) -> float:
    """Puts every box beside what it feeds, none over another; gives the lowest foot."""
    foot = top
    for block, finals in blocks:
        own = sum(each.height for each in finals) + _GAP * max(len(finals) - 1, 0)
        tall = max(own, block.height)
        block.y = foot + (tall - block.height) / 2
        at_ = foot + (tall - own) / 2
        for each in finals:
            each.y = at_
            at_ += each.height + _GAP
        foot += tall + _BLOCK
    lowest = foot - _BLOCK if blocks else top
    free = top
    for box in slicings:
        fed = [block.middle for block, _ in blocks if box.item.id in block.item.sources]
        wanted = sum(fed) / len(fed) - box.height / 2 if fed else free
        box.y = max(free, wanted)
        free = box.y + box.height + _GAP
    return max([lowest, *(box.y + box.height for box in slicings)])


def _arrows(boxes: Sequence[_Box]) -> list[str]:
    """From each box to those it feeds; dashed where partials are made of the entries of others."""
    known = {box.item.id: box for box in boxes}
    drawn = []
    for box in boxes:
        for source in (known[each] for each in box.item.sources if each in known):
            if source.column == box.column:
                drawn.append(_rolled_up(source, box))
            else:
                x, y = source.x + source.width, source.middle
                half = (box.x - x) / 2
                curve = at(x + half, y, box.x - half, box.middle, box.x - 1, box.middle)
                drawn.append(line(f"M {at(x, y)} C {curve}"))
            drawn.append(_head(box, 0 if source.column != box.column else -10))
    return drawn


def _rolled_up(source: _Box, box: _Box) -> str:
    begin, end = source.middle + 10, box.middle - 10
    x = box.x
    curve = at(x - 44, begin, x - 44, end, x - 1, end)
    return line(f"M {at(x, begin)} C {curve}", dashed=True)


def _head(box: _Box, shift: float) -> str:
    x, y = box.x, box.middle + shift
    return f'<path class="faint" d="M {at(x, y)} L {at(x - 7, y - 4)} L {at(x - 7, y + 4)} Z"/>'


def _drawn(box: _Box) -> list[str]:
    kind = "more" if box.item.kind == "more" else box.column
    drawn = [rectangle(box.x, box.y, box.width, box.height, f"box {kind}", 5)]
    for number, (content, shade) in enumerate(box.lines):
        extra = ' font-weight="bold"' if number == 0 else ""
        foot = box.y + _PAD + (number + 1) * LINE - 6
        drawn.append(text(box.x + _PAD, foot, content, shade, extra=extra))
    return drawn
