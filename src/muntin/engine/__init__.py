"""The local engine: runs a plan on columnar batches in one process."""

from muntin.engine.local import LocalEngine, Statistics
from muntin.engine.ordering import in_time_order

__all__ = ["LocalEngine", "Statistics", "in_time_order"]
