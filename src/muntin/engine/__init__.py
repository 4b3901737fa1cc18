"""The local engine: runs a plan on columnar batches in one process."""

from muntin.engine.answers.group_keys import in_time_order
from muntin.engine.local import LocalEngine
from muntin.engine.progress import Progress
from muntin.engine.rows.batches import ENOUGH, gathered
from muntin.engine.rows.columns import SAMPLE_ROWS, sample_rows

__all__ = [
    "ENOUGH",
    "SAMPLE_ROWS",
    "LocalEngine",
    "Progress",
    "gathered",
    "in_time_order",
    "sample_rows",
]
