"""SlickDeque(Non-Inv) over many groups: the least and the greatest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates import Lowered
from muntin.aggregates.arrow_views import valid_mask
from muntin.aggregates.coders import coder
from muntin.aggregates.column import PartColumn
from muntin.aggregators import bank_deques as kernels
from muntin.aggregators.bank_answers import Answers, from_lowered
from muntin.aggregators.bank_base import Bank

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_ALL_VALID: Bools = np.zeros(0, np.bool_)
_SMALLEST = 8


class ExtremeBank(Bank):
    """A deque a group, in rings of one size that grow together.

    A deque holds few of a window's partials unless they keep falling (for a maximum), so rings
    start small. Codes compare like the values; those of a maximum are complemented.
    """

    def _reset(self, slots: int) -> None:
        (part,) = self.aggregate.parts
        self._coder = coder(part.types[0])
        self._flip = -1 if part.kind == "max" else 0
        room = min(1 << (self.capacity - 1).bit_length(), _SMALLEST)
        self.nodes: Ints = np.zeros((slots, room, 2), np.int64)
        self.heads: Ints = np.zeros((slots, 3), np.int64)
        self._totals: Ints = np.zeros(3, np.int64)

    @property
    def steps(self) -> int:
        """Moves along the deques to find answers."""
        return int(self._totals[kernels.MOVED])

    def _resize(self, slots: int) -> None:
        if slots > len(self.heads):
            count = max(slots, 2 * len(self.heads))
            nodes = np.zeros((count, *self.nodes.shape[1:]), np.int64)
            heads = np.zeros((count, 3), np.int64)
            nodes[: len(self.nodes)], heads[: len(self.heads)] = self.nodes, self.heads
            self.nodes, self.heads = nodes, heads

    def _clear(self, slots: Ints) -> None:
        self.heads[slots] = 0

    def _advance(self, values: pa.Array, slots: Ints, packed: bool) -> Answers:
        valid = valid_mask(values)
        codes = self._coder.encode(values).codes ^ self._flip
        return self._take(codes, _ALL_VALID if valid is None else valid, slots)

    def _advance_columns(self, columns: Sequence[PartColumn], slots: Ints, packed: bool) -> Answers:
        column: Any = columns[0]
        return self._take(column.least, column.seen(), slots)

    def _take(self, codes: Ints, valid: Bools, slots: Ints) -> Answers:
        shape = (len(self.falling), len(slots))
        answers, nulls = np.empty(shape, np.int64), np.zeros(shape, np.bool_)
        empty = self._totals[kernels.EMPTY]
        compared = self._totals[kernels.COMPARED]
        row = 0
        while True:
            row = kernels.advance_deques(
                self.nodes, self.heads, slots, codes, valid, self.falling, self.places,
                answers, nulls, self._totals, row,
            )  # fmt: skip
            if row == len(slots):
                break
            self._grow()
        self.operations += int(self._totals[kernels.COMPARED] - compared)
        seen = ~nulls if self._totals[kernels.EMPTY] > empty else np.ones(shape, np.bool_)
        values = self._coder.decode((answers ^ self._flip).ravel(), seen.ravel())
        return from_lowered(Lowered(values), *shape)

    def _grow(self) -> None:
        slots, room, _ = self.nodes.shape
        wider = np.zeros((slots, 2 * room, 2), np.int64)
        kernels.widen_rings(self.nodes, self.heads, wider)
        self.nodes = wider

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {"nodes": self.nodes, "heads": self.heads, "totals": self._totals}

    def _layout(self) -> dict[str, Any]:
        return {"room": self.nodes.shape[1]}

    def _take_over(self, arrays: dict[str, npt.NDArray[Any]], layout: dict[str, Any]) -> None:
        self.nodes = arrays["nodes"].reshape(-1, layout["room"], 2)
        self.heads = arrays["heads"].reshape(-1, 3)
        self._totals = arrays["totals"]
