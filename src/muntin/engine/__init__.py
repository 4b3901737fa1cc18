"""The local engine: runs a plan on columnar batches in one process."""

from muntin.engine.batches import gathered
from muntin.engine.blocks import ENOUGH
from muntin.engine.local import LocalEngine
from muntin.engine.ordering import in_time_order
from muntin.engine.progress import Progress, Statistics
from muntin.engine.reading import sampler

__all__ = [
    "ENOUGH",
    "LocalEngine",
    "Progress",
    "Statistics",
    "gathered",
    "in_time_order",
    "sampler",
]
