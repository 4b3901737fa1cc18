"""Queries bound to a schema, what they share, and how that is shown."""

from muntin.plan.explain.formats import render_text
from muntin.plan.explain.render import Item, render
from muntin.plan.nodes import (
    STRATEGIES,
    Accumulator,
    Final,
    Lowering,
    Move,
    OutputColumn,
    Partials,
    SharedPlan,
    Slicing,
    Strategy,
    Technique,
    Weighed,
)
from muntin.plan.timeline import Timeline

__all__ = [
    "STRATEGIES",
    "Accumulator",
    "Final",
    "Item",
    "Lowering",
    "Move",
    "OutputColumn",
    "Partials",
    "SharedPlan",
    "Slicing",
    "Strategy",
    "Technique",
    "Timeline",
    "Weighed",
    "render",
    "render_text",
]
