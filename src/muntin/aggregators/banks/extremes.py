"""SlickDeque(Non-Inv) over many groups: the least and the greatest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.aggregates import Lowered
from muntin.aggregates.columns.arrow_views import valid_mask
from muntin.aggregates.columns.codes import coder
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregators.banks.answers import Answers, from_lowered
from muntin.aggregators.banks.bank import Bank
from muntin.aggregators.banks.intrinsics import prefetch

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
        return int(self._totals[MOVED])

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
        empty = self._totals[EMPTY]
        compared = self._totals[COMPARED]
        row = 0
        while True:
            row = advance_deques(
                self.nodes, self.heads, slots, codes, valid, self.falling, self.places,
                answers, nulls, self._totals, row,
            )  # fmt: skip
            if row == len(slots):
                break
            self._grow()
        self.operations += int(self._totals[COMPARED] - compared)
        seen = ~nulls if self._totals[EMPTY] > empty else np.ones(shape, np.bool_)
        values = self._coder.decode((answers ^ self._flip).ravel(), seen.ravel())
        return from_lowered(Lowered(values), *shape)

    def _grow(self) -> None:
        slots, room, _ = self.nodes.shape
        wider = np.zeros((slots, 2 * room, 2), np.int64)
        widen_rings(self.nodes, self.heads, wider)
        self.nodes = wider

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {"nodes": self.nodes, "heads": self.heads, "totals": self._totals}

    def _layout(self) -> dict[str, Any]:
        return {"room": self.nodes.shape[1]}

    def _take_over(self, arrays: dict[str, npt.NDArray[Any]], layout: dict[str, Any]) -> None:
        self.nodes = arrays["nodes"].reshape(-1, layout["room"], 2)
        self.heads = arrays["heads"].reshape(-1, 3)
        self._totals = arrays["totals"]


# A group's row of heads: where its deque begins, how many nodes it has, partials so far.
FIRST, LENGTH, NUMBER = range(3)
# A node: a code, and the number of its partial.
CODE, WHEN = range(2)
# Totals of a bank: comparisons at insertion, moves of the answer loop, answers without a value.
COMPARED, MOVED, EMPTY = range(3)
_AHEAD = 8


@compiled
def advance_deques(
    nodes: Ints, heads: Ints, slots: Ints, codes: Ints, valid: Bools, ranges: Ints,
    places: Ints, answers: Ints, nulls: Bools, totals: Ints, row: int,
) -> int:  # fmt: skip
    """Take in the codes from `row` on, one a slot, and answer every range.

    A code that is not valid moves the window and leaves no node; an empty `valid` says that all
    are. Stops at a row whose deque is full and returns it, otherwise the number of rows.
    `nodes` has dimensions (group, 2**k nodes, 2).
    """
    flat, room = nodes.reshape(-1), nodes.shape[1]
    mask, window = room - 1, ranges[0]
    for i in range(row, len(slots)):
        if i + _AHEAD < len(slots):
            ahead = slots[i + _AHEAD]
            prefetch(flat, 2 * (ahead * room + heads[ahead, FIRST]))
        group = slots[i]
        start, length, number = heads[group, FIRST], heads[group, LENGTH], heads[group, NUMBER]
        ring = nodes[group]
        if length > 0 and ring[start, WHEN] == number - window:
            start, length = (start + 1) & mask, length - 1
        if len(valid) == 0 or valid[i]:
            left = _not_beaten(ring, start, length, codes[i])
            if left == room:
                return i
            totals[COMPARED] += min(length - left + 1, length)
            last = (start + left) & mask
            ring[last, CODE], ring[last, WHEN] = codes[i], number
            length = left + 1
        number += 1
        at = 0
        for j in range(len(ranges)):
            while at < length and ring[(start + at) & mask, WHEN] < number - ranges[j]:
                at += 1
                totals[MOVED] += 1
            if at < length:
                answers[places[j], i] = ring[(start + at) & mask, CODE]
            else:
                answers[places[j], i] = 0
                nulls[places[j], i] = True
                totals[EMPTY] += 1
        heads[group, FIRST], heads[group, LENGTH], heads[group, NUMBER] = start, length, number
    return len(slots)


@compiled
def _not_beaten(ring: Ints, start: int, length: int, code: int) -> int:
    """How many nodes stay when a code comes: those of smaller codes."""
    mask = len(ring) - 1
    while length > 0 and ring[(start + length - 1) & mask, CODE] >= code:
        length -= 1
    return length


@compiled
def widen_rings(nodes: Ints, heads: Ints, wider: Ints) -> None:
    """Copy every deque to the start of a larger ring."""
    mask = nodes.shape[1] - 1
    for group in range(len(nodes)):
        start = heads[group, FIRST]
        for k in range(heads[group, LENGTH]):
            wider[group, k, CODE] = nodes[group, (start + k) & mask, CODE]
            wider[group, k, WHEN] = nodes[group, (start + k) & mask, WHEN]
        heads[group, FIRST] = 0
