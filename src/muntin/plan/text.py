"""The plan as a tree of text lines."""

from __future__ import annotations

from muntin.plan.nodes import SharedPlan
from muntin.plan.render import Item, render


def render_text(plan: SharedPlan) -> str:
    """The plan as people read it, one item a line."""
    return "\n".join(_lines(render(plan)))


def _lines(item: Item) -> list[str]:
    lines = ["  ".join((item.label, *item.facts))]
    for child in item.children:
        last = child is item.children[-1]
        first, *rest = _lines(child)
        lines.append(("└─ " if last else "├─ ") + first)
        lines.extend(("   " if last else "│  ") + line for line in rest)
    return lines
