"""Queries over rows with lifetimes, bound to the streams they read."""

from muntin.planner.rows.bind import bind_rows, row_plan
from muntin.planner.rows.routes import refuse_on_spark, routed

__all__ = ["bind_rows", "refuse_on_spark", "routed", "row_plan"]
