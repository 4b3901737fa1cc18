"""Ranges of a key: rows of a large bounded batch by their groups, where groups are many.

Blocks of rows as they come share few groups with one another where a group has few rows: each
block numbers most of the groups anew, and all entries are brought together afterwards. Rows that
are told apart by ranges of the key first fall into parts of which none knows the groups of
another. So every part numbers its groups once, for itself, on any core, from rows to answers; and
answers of the parts, one after the other, are in the order of keys.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.engine.rows.dictionary import encode, is_whole
from muntin.expressions.evaluation.evaluator import single
from muntin.expressions.tree import Column
from muntin.plan.nodes import SharedPlan

# So many rows of the first batch are looked at to find ranges with about as many rows each.
_SAMPLE = 1 << 14


class KeyRanges:
    """Splits batches by ranges of the first key that all groupings of a plan have.

    Ranges are decided once, by the first large batch, whatever the number of threads.
    """

    def __init__(self, plan: SharedPlan) -> None:
        self._column = _key_column(plan)
        self._bounds: Ints | None = None

    def rows(self, batch: pa.Table, block: int) -> list[Ints] | None:
        """The places of the rows in each range, in order; None where groups are few.

        ``block`` is how many rows a range should have.
        """
        if self._column is None or batch.num_rows < 2 * block:
            return None
        keys = single(batch[self._column])
        if not is_whole(keys):
            return None
        if self._bounds is None and 2 * len(encode(keys.slice(0, block))[1]) < block:
            # Most rows of a block find their group there.
            self._column = None
            return None
        numbers = keys.view(pa.int64()).to_numpy()
        if self._bounds is None:
            self._bounds = _bounds(numbers, batch.num_rows // block)
        parts = np.zeros(numbers.size, np.uint8)
        for bound in self._bounds:
            parts += numbers >= bound
        order = np.argsort(parts, kind="stable")
        ends = np.cumsum(np.bincount(parts, minlength=self._bounds.size + 1))
        return np.split(order, ends[:-1])


def _key_column(plan: SharedPlan) -> str | None:
    """The column that rows are grouped by first, wherever they are."""
    joined = any(relation.joins for relation in plan.relations)
    if joined or not plan.partials or not all(node.grouping for node in plan.partials):
        return None
    firsts = {node.grouping[0] for node in plan.partials}
    root = next(iter(firsts)).root
    return root.name if len(firsts) == 1 and isinstance(root, Column) else None


def _bounds(numbers: Ints, parts: int) -> Ints:
    """Where parts with about as many rows each begin, without the first."""
    some = np.sort(numbers[:: max(numbers.size // _SAMPLE, 1)])
    count = min(parts, np.iinfo(np.uint8).max)
    return np.unique(some[np.arange(1, count) * some.size // count])
