"""Columns by part: which class keeps the accumulators of which kind.

Importing this brings the compiled kernels; planning needs only `resolve`.
"""

from __future__ import annotations

import pyarrow as pa

from muntin.aggregates.algebra import FREQUENT, HISTOGRAM, REGISTERS, USER, Part
from muntin.aggregates.columns.bits import BitColumn
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.columns.counts import CountColumn
from muntin.aggregates.columns.extremes import ExtremeColumn
from muntin.aggregates.columns.holistic.frequent import FrequentColumn
from muntin.aggregates.columns.holistic.histograms import HistogramColumn
from muntin.aggregates.columns.holistic.registers import RegisterColumn
from muntin.aggregates.columns.holistic.runs import RunColumn
from muntin.aggregates.columns.objects import ObjectColumn
from muntin.aggregates.columns.picks import PickColumn
from muntin.aggregates.columns.powers import PowerColumn
from muntin.aggregates.columns.sums import LogColumn, SumColumn

_Column = (
    BitColumn
    | CountColumn
    | ExtremeColumn
    | FrequentColumn
    | ObjectColumn
    | PickColumn
    | RunColumn
    | SumColumn
)
_CLASSES: dict[str, type[_Column]] = {
    "count": CountColumn,
    "count_if": CountColumn,
    "sum": SumColumn,
    "sum_squares": SumColumn,
    "sum_given": SumColumn,
    "squares_given": SumColumn,
    "sum_products": PowerColumn,
    "sum_cubes": PowerColumn,
    "sum_fourths": PowerColumn,
    "log_sum": LogColumn,
    "min": ExtremeColumn,
    "max": ExtremeColumn,
    "first": PickColumn,
    "last": PickColumn,
    "first_valid": PickColumn,
    "last_valid": PickColumn,
    "min_by": PickColumn,
    "max_by": PickColumn,
    "bit_and": BitColumn,
    "bit_or": BitColumn,
    "bit_xor": BitColumn,
    "set": RunColumn,
    "runs": RunColumn,
    "pairs": RunColumn,
    "list": RunColumn,
    "list_nulls": RunColumn,
}
_PREFIXES: dict[str, type[_Column]] = {
    USER: ObjectColumn,
    FREQUENT: FrequentColumn,
    HISTOGRAM: HistogramColumn,
    REGISTERS: RegisterColumn,
}


def empty(part: Part, size: int) -> PartColumn:
    """A column of `size` cells that hold the identity.

    >>> import numpy as np
    >>> column = empty(Part("max", (pa.string(),)), 2)
    >>> column.update(np.array([0, 0]), (pa.array(["sash", "muntin"]),))
    >>> column.to_arrow().column("value").to_pylist()
    ['sash', None]
    """
    return class_of(part).empty(part, size)


def fresh(column: PartColumn, size: int) -> PartColumn:
    """A column of `size` cells that hold the identity, with room for numbers like another's."""
    if type(column) is SumColumn:
        return column.blank(size)
    return empty(column.part, size)


def from_arrow(part: Part, batch: pa.RecordBatch) -> PartColumn:
    """The column that `to_arrow` made the snapshot of."""
    return class_of(part).from_arrow(part, batch)


def class_of(part: Part) -> type[_Column]:
    """The class of a part's columns."""
    for prefix, found in _PREFIXES.items():
        if part.kind.startswith(prefix):
            return found
    return _CLASSES[part.kind]
