"""Values that are shown by how many rows have them: DISTINCT counted, EXCEPT and INTERSECT."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.operators.rows import NEVER, Changes, Rows
from muntin.operators.state.keys import KeyTable, check_alike, check_keys, grown, moved
from muntin.operators.state.members import Members
from muntin.operators.state.pending import Pending
from muntin.plan.operators import Difference, Distinct

# When a value is shown: while the left holds it and the right anything, nothing, or it too.
_KINDS = {"distinct": 0, "except": 1, "intersect": 2}


class Counts:
    """Values shown from the instant a condition on their numbers of rows holds until it does not.

    The end of what is shown is not known before it comes, so each lifetime is maximal. What
    happens at one instant is netted.
    """

    STATE = ("_pending", "_members", "_table", "_next", "_counts", "_shown")

    def __init__(
        self,
        node: Distinct | Difference,
        lifetimes: Sequence[int],
        strict: Sequence[bool],
    ) -> None:
        kind = node.kind if isinstance(node, Difference) else "distinct"
        types = [field.type for field in node.schema]
        check_keys(types, kind.upper())
        if isinstance(node, Difference):
            check_alike(types, [field.type for field in node.right.schema])
        self._kind = _KINDS[kind]
        self._pending = [Pending() for _ in lifetimes]
        self._members = [
            Members(lifetime, strict=each) for lifetime, each in zip(lifetimes, strict, strict=True)
        ]
        self._table = KeyTable(types)
        self._next = 0
        # By value: how many rows each side holds, and the id that it is shown as.
        self._counts = np.zeros(0, np.int64)
        self._shown = np.zeros(0, np.int64)

    @property
    def kept(self) -> int:
        """How many rows are kept."""
        return sum(map(len, self._members)) + sum(map(len, self._pending))

    def step(self, inputs: Sequence[Changes], bounds: Sequence[int]) -> Changes:
        """What appears and disappears below the watermark."""
        watermark = min(bounds)
        parts: list[tuple[Ints, Ints, Ints]] = []
        over = []
        for side, members in enumerate(self._members):
            changes = self._pending[side].release(inputs[side], watermark)
            codes = self._table.codes(changes.born.columns, len(changes.born))
            members.add(changes, codes)
            ends = members.ends(changes, watermark)
            # The right side is counted in the upper half of a number.
            unit = 1 << (32 * side)
            parts.append((codes, changes.born.start, np.full(codes.size, unit)))
            parts.append((members.code[ends.slots], ends.at, np.full(ends.slots.size, -unit)))
            over.append(ends.slots)
        if self._table.size > self._counts.size:
            self._counts = grown(self._counts, self._table.size, 0)
            self._shown = grown(self._shown, self._table.size, -1)
        codes, times, units = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.lexsort((times, codes))
        changes = self._sweep(codes[order], times[order], units[order])
        for members, slots in zip(self._members, over, strict=True):
            members.free(slots)
        touched = np.unique(codes)
        self._table.release(touched[self._counts[touched] == 0])
        self._pack()
        return changes

    def _pack(self) -> None:
        """Take no more room than rows and values need once a large batch is over."""
        held = self._table.packed()
        if held is not None:
            self._counts, self._shown = self._counts[held], self._shown[held]
        for members in self._members:
            if held is not None:
                members.code = moved(members.code, held)
            members.packed()

    def _sweep(self, codes: Ints, times: Ints, units: Ints) -> Changes:
        values, starts, ended, at = sweep_counts(
            codes, times, units, self._counts, self._shown, self._kind, self._next
        )
        ids = np.arange(self._next, self._next + values.size)
        self._next += values.size
        ends = np.full(values.size, NEVER)
        return Changes(Rows(self._table.values(values), ids, starts, ends), ended, at)


@compiled
def sweep_counts(
    codes: Ints, times: Ints, units: Ints, counts: Ints, shown: Ints, kind: int, next_id: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """Apply events in order of value and time: values that appear, when; ids that end, when."""
    values = np.empty(codes.size, np.int64)
    starts = np.empty(codes.size, np.int64)
    ended = np.empty(codes.size, np.int64)
    at = np.empty(codes.size, np.int64)
    born = gone = i = 0
    while i < codes.size:
        code, now = codes[i], times[i]
        while i < codes.size and codes[i] == code and times[i] == now:
            counts[code] += units[i]
            i += 1
        left, right = counts[code] & 0xFFFFFFFF, counts[code] >> 32
        wanted = left > 0 and (kind == 0 or (right > 0) == (kind == 2))
        if wanted and shown[code] < 0:
            values[born], starts[born] = code, now
            shown[code] = next_id
            next_id += 1
            born += 1
        elif not wanted and shown[code] >= 0:
            ended[gone], at[gone] = shown[code], now
            shown[code] = -1
            gone += 1
    return values[:born].copy(), starts[:born].copy(), ended[:gone].copy(), at[:gone].copy()
