"""Queries over rows with lifetimes, bound to the streams they read."""

from muntin.planner.rows.bind import bind_rows, row_plan

__all__ = ["bind_rows", "row_plan"]
