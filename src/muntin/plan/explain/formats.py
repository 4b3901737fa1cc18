"""The formats that a plan is shown in, by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from muntin.errors import MuntinError, did_you_mean
from muntin.plan.explain.model import Item, clipped, printable
from muntin.plan.explain.render import SHOWN, render
from muntin.plan.explain.svg import item_svg
from muntin.plan.nodes import SharedPlan

# Raised when a key changes its meaning or goes; keys may be added.
VERSION = 1


def item_json(item: Item) -> str:
    """A rendered plan as a JSON text.

    Each item is an object with ``id``, ``kind``, ``label``, ``facts``, ``notes``, ``sources`` (the
    ids of what feeds it) and ``children``. The outermost also has the ``version`` of the format.
    """
    return json.dumps({"version": VERSION, **_object(item)}, ensure_ascii=False, indent=2)


def _object(item: Item) -> dict[str, Any]:
    return {
        "id": item.id,
        "kind": item.kind,
        "label": item.label,
        "facts": {fact.key: fact.value for fact in item.facts},
        "notes": item.notes,
        "sources": item.sources,
        "children": [_object(child) for child in item.children],
    }


def render_text(plan: SharedPlan) -> str:
    """The plan in brief, one item a line."""
    return item_text(render(plan, most=SHOWN), brief=True)


def item_text(item: Item, *, brief: bool = False) -> str:
    """A rendered plan as people read it; in brief without what is told below items."""
    return "\n".join(_lines(item, brief))


def _lines(item: Item, brief: bool) -> list[str]:
    lines = [printable("  ".join((item.label, *item.beside)))]
    if not brief:
        bar = "│  " if item.children else "   "
        lines.extend(f"{bar}{printable(each)}" for each in item.below)
    for child in item.children:
        last = child is item.children[-1]
        first, *rest = _lines(child, brief)
        lines.append(("└─ " if last else "├─ ") + first)
        lines.extend(("   " if last else "│  ") + line for line in rest)
    return lines


# Mermaid refuses texts of more than 50,000 characters: labels are cut, and lines left out.
_MOST = 45_000
_LINE = 72
_LINES = (8, 3, 1)
_SHAPES = {"plan": '(["{}"])', "final": '("{}")', "finals": '("{}")'}
_BOX = '["{}"]'
# What stands for itself in a quoted label; everything else that is ASCII is written as its code.
_PLAIN = frozenset(" _-.,()*+/=")


def item_mermaid(item: Item) -> str:
    """A rendered plan as the text of a flowchart, from rows to the answers of queries."""
    shown = ""
    for lines in _LINES:
        shown = _flowchart(item, lines)
        if len(shown) <= _MOST:
            break
    return shown


def _flowchart(item: Item, most: int) -> str:
    nodes = [each for each in item.walk() if each.kind != "accumulators"]
    # Numbered, because a query may be called as a word of Mermaid's own.
    numbers = {each.id: f"n{number}" for number, each in enumerate(nodes)}
    lines = ["flowchart LR"]
    for each in nodes:
        label = "<br/>".join(map(_escaped, _labels(each, most)))
        lines.append(f"  {numbers[each.id]}{_SHAPES.get(each.kind, _BOX).format(label)}")
    lines += [
        f"  {numbers[source]} {_arrow(source, each)} {numbers[each.id]}"
        for each in nodes
        for source in each.sources
    ]
    return "\n".join(lines) + "\n"


def _arrow(source: str, item: Item) -> str:
    """A dashed arrow where partials are made of the entries of others."""
    if item.kind != "partials" or not source.startswith("partials-"):
        return "-->"
    is_fed = any(fact.key == "fed_by" for fact in item.facts)
    return "-. fed .->" if is_fed else "-. rolled up .->"


def _labels(item: Item, most: int) -> list[str]:
    kept = [
        f"{child.label}: {', '.join(child.beside)}" if child.beside else child.label
        for child in item.children
        if child.kind == "accumulators"
    ]
    below = item.below if item.kind in ("plan", "partials") else ()
    lines = [item.label, *item.beside, *kept, *below]
    return [clipped(printable(line), _LINE) for line in lines[:most]]


def _escaped(text: str) -> str:
    """Mermaid's codes for what it would read as its own, as Markdown or as HTML."""
    return "".join(
        letter if letter.isalnum() or letter in _PLAIN or letter > "~" else f"#{ord(letter)};"
        for letter in text
    )


Format: TypeAlias = Literal["text", "json", "mermaid", "svg"]

FORMATS: Mapping[str, Callable[[Item], str]] = {
    "text": item_text,
    "json": item_json,
    "mermaid": item_mermaid,
    "svg": item_svg,
}


def explain(
    plan: SharedPlan,
    format: Format = "text",  # noqa: A002
    *,
    rate: float | None = None,
    notes: Mapping[int, Sequence[str]] | None = None,
) -> str:
    """What a plan shares and why, in one of `FORMATS`; JSON tells of all queries one by one."""
    check_format(format, FORMATS)
    most = None if format == "json" else SHOWN
    return FORMATS[format](render(plan, rate=rate, notes=notes, most=most))


def check_format(name: str, known: Iterable[str]) -> None:
    """Refuses a format that there is no printer for."""
    listed = tuple(known)
    if name not in listed:
        raise MuntinError(
            f"there is no format {name!r}",
            hint=did_you_mean(str(name), listed) or f"use one of {', '.join(listed)}",
        )
