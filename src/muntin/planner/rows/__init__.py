"""Queries over rows with lifetimes, bound to the streams they read."""

from muntin.planner.rows.bind import bind_rows, row_plan
from muntin.planner.rows.routes import routed
from muntin.planner.rows.shares import with_sides

__all__ = ["bind_rows", "routed", "row_plan", "with_sides"]
