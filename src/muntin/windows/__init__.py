"""Windows over time or rows, the slices they cut, and the manager that shares those slices."""

from muntin.windows.duration import DurationLike, duration, duration_text
from muntin.windows.edges import (
    SLICINGS,
    TIME_LIMIT,
    EdgeClass,
    Slicing,
    edges_between,
    next_edge,
    reduce_classes,
)
from muntin.windows.manager import SliceManager
from muntin.windows.sliced import Sliced, compose, cutty, pairs, panes
from muntin.windows.spec import Window

__all__ = [
    "SLICINGS",
    "TIME_LIMIT",
    "DurationLike",
    "EdgeClass",
    "SliceManager",
    "Sliced",
    "Slicing",
    "Window",
    "compose",
    "cutty",
    "duration",
    "duration_text",
    "edges_between",
    "next_edge",
    "pairs",
    "panes",
    "reduce_classes",
]
