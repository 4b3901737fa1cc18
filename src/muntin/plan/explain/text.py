"""The plan as a tree of text lines."""

from __future__ import annotations

from muntin.plan.explain.render import SHOWN, Item, render
from muntin.plan.explain.words import printable
from muntin.plan.nodes import SharedPlan


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
