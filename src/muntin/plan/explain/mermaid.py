"""The plan as a Mermaid flowchart, which GitHub and many editors draw."""

from __future__ import annotations

from muntin.plan.explain.model import Item
from muntin.plan.explain.words import clipped, printable

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
