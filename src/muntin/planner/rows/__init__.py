"""Queries over rows with lifetimes, bound to the streams they read."""

from muntin.planner.rows.bind import bind_rows, row_plan
from muntin.planner.rows.rewritings import SAMPLE, StreamRate, is_undecided, rates_of, weighed
from muntin.planner.rows.routes import routed
from muntin.planner.rows.shares import with_sides

__all__ = [
    "SAMPLE",
    "StreamRate",
    "bind_rows",
    "is_undecided",
    "rates_of",
    "routed",
    "row_plan",
    "weighed",
    "with_sides",
]
