"""Queries bound to a schema, what they share, and how that is shown."""

from muntin.plan.build import build_plan
from muntin.plan.explain.render import Item, render
from muntin.plan.explain.text import render_text
from muntin.plan.moves import Move, Weighed
from muntin.plan.nodes import (
    STRATEGIES,
    Accumulator,
    Final,
    Lowering,
    OutputColumn,
    Partials,
    SharedPlan,
    Slicing,
    Strategy,
    Technique,
)
from muntin.plan.techniques import Preferences
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
    "Preferences",
    "SharedPlan",
    "Slicing",
    "Strategy",
    "Technique",
    "Timeline",
    "Weighed",
    "build_plan",
    "render",
    "render_text",
]
