"""Windows over time or rows, the slices they cut, and the manager that shares those slices."""

from muntin.windows.duration import (
    DurationLike,
    distance_text,
    duration,
    duration_text,
    moment_text,
)
from muntin.windows.edges import (
    SLICINGS,
    TIME_LIMIT,
    EdgeClass,
    Slicing,
    edge_after,
    edge_until,
    edges_between,
    next_edge,
    reduce_classes,
)
from muntin.windows.manager import SliceManager, cut_classes
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
    "cut_classes",
    "cutty",
    "distance_text",
    "duration",
    "duration_text",
    "edge_after",
    "edge_until",
    "edges_between",
    "moment_text",
    "next_edge",
    "pairs",
    "panes",
    "reduce_classes",
]
