"""Techniques without a bank of their own: each group has the state that it has alone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba.extending import overload, register_jitable

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.aggregates import Lowered
from muntin.aggregates.columns import by_part as columns
from muntin.aggregates.columns.codes import NOTHING
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.columns.sums import SumColumn
from muntin.aggregates.exact.limbs import ONE_LIMB
from muntin.aggregators.banks.answers import Answers, from_lowered, lower
from muntin.aggregators.banks.bank import Bank
from muntin.aggregators.kernels import slide_compiled
from muntin.aggregators.registry import state_class
from muntin.aggregators.techniques.contract import OPERATIONS
from muntin.aggregators.techniques.operators import Least, Store, Sums
from muntin.errors import DataError

# Enough for the sum of any number of 64-bit integers, or of their squares.
_LIMBS = {"sum": 3, "sum_squares": 6}


class TechniqueBank(Bank):
    """The arrays of a technique with a dimension more, for the groups.

    A partial is the code of an extreme value, or a row of integers: the limbs of its exact sums,
    and its number of rows. Sums of integers only: those of doubles need a number of limbs that
    depends on the values, and the kernels are compiled for one number of them.
    """

    def _reset(self, slots: int) -> None:
        self.technique = state_class(self.card.name)
        self.extreme = self.aggregate.parts[0].kind in {"min", "max"}
        self._limbs = [_LIMBS[part.kind] for part in self.aggregate.parts if part.kind in _LIMBS]
        self.op: Any = Least() if self.extreme else Sums((0,) * (sum(self._limbs) + 1))
        self._alone = self.technique.create(self.op, self.capacity, len(self.falling), True)
        self._left = 0
        self.states = self._fresh(slots)

    def _fresh(self, slots: int) -> Any:
        return self.technique(*(np.repeat(array[None], slots, axis=0) for array in self._alone))

    def _resize(self, slots: int) -> None:
        held = len(self.states.head)
        if slots > held:
            added = self._fresh(max(slots, 2 * held) - held)
            pairs = zip(self.states, added, strict=True)
            self.states = self.technique(*(np.concatenate(pair) for pair in pairs))

    def _clear(self, slots: Ints) -> None:
        self._left += int(self.states.head[slots, OPERATIONS].sum())
        for array, alone in zip(self.states, self._alone, strict=True):
            array[slots] = alone

    def _advance(self, values: pa.Array, slots: Ints, packed: bool) -> Answers:
        lifted = []
        for part in self.aggregate.parts:
            column = columns.empty(part, len(values))
            column.update(np.arange(len(values)), (values,) if part.types else ())
            lifted.append(column)
        return self._advance_columns(lifted, slots, packed)

    def _advance_columns(self, columns: Sequence[PartColumn], slots: Ints, packed: bool) -> Answers:
        partials = self._codes(columns[0]) if self.extreme else self._lanes(columns, len(slots))
        answers = self.op.empty(len(slots) * len(self.falling))
        advance_states(self.op, self.states, slots, self.falling, partials, answers)
        self.operations = self._left + int(self.states.head[:, OPERATIONS].sum())
        shape = (len(slots), len(self.falling), *answers.shape[1:])
        ordered = np.empty((shape[1], shape[0], *shape[2:]), np.int64)
        ordered[self.places] = answers.reshape(shape).swapaxes(0, 1)
        return self._read(ordered.reshape(answers.shape), columns[0])

    def _codes(self, column: Any) -> Ints:
        if column.marks is not None:
            raise DataError(
                f"{self.card.name} has no code for the last value of {self.aggregate.types[0]}",
                hint="slickdeque_noninv takes all values",
            )
        codes: Ints = column.least
        return codes

    def _lanes(self, columns: Sequence[Any], count: int) -> Ints:
        partials = np.zeros((count, len(self.op.zeros)), np.int64)
        first = 0
        for column in columns:
            if column.part.kind in _LIMBS:
                settled = column.take(np.arange(count))
                settled.settle()
                at = first + settled.base - ONE_LIMB
                partials[:, at : at + settled.limbs.shape[1]] = settled.limbs
                first += _LIMBS[column.part.kind]
            else:
                partials[:, -1] = column.counts
        return partials

    def _read(self, answers: Ints, column: Any) -> Answers:
        ranges, groups = len(self.falling), len(answers) // len(self.falling)
        if self.extreme:
            valid = answers != NOTHING
            values = column.values.decode(np.where(valid, answers ^ column.flip, 0), valid)
            return from_lowered(Lowered(values), ranges, groups)
        sums, first = [], 0
        for part in self.aggregate.parts:
            width = _LIMBS.get(part.kind, 0)
            if width:
                limbs = np.ascontiguousarray(answers[:, first : first + width])
                sums.append(SumColumn(part, limbs, ONE_LIMB, self.capacity, None))
            first += width
        return lower(self.aggregate, sums, np.ascontiguousarray(answers[:, -1]), ranges)

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return dict(self.states._asdict())

    def _layout(self) -> dict[str, Any]:
        return {"left": self._left, "slots": len(self.states.head)}

    def _take_over(self, arrays: dict[str, npt.NDArray[Any]], layout: dict[str, Any]) -> None:
        self._left = layout["left"]
        shapes = {name: array.shape for name, array in self._alone._asdict().items()}
        self.states = self.technique(
            **{name: arrays[name].reshape(-1, *shape) for name, shape in shapes.items()}
        )


def state_of(states: Any, group: int) -> Any:
    """The state of one group, as views."""
    return type(states)(*(array[group] for array in states))


def _rows(count: int) -> Any:
    if count == 1:
        return register_jitable(lambda states, group: (states[0][group],))
    rest, last = _rows(count - 1), count - 1
    return register_jitable(lambda states, group: (*rest(states, group), states[last][group]))


def _state_of(states: Any, group: Any) -> Any:
    technique, rows = states.instance_class, _rows(len(states))
    return lambda states, group: technique(*rows(states, group))


overload(state_of, strict=False)(_state_of)


def _compiled_advance() -> Any:
    # As for the slide of one group: the cache must see all files of the techniques.
    sources = sorted(Path(__file__).parents[1].rglob("*.py"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()

    def advance(
        op: Any, states: Any, slots: Ints, ranges: Ints, partials: Store, answers: Store
    ) -> None:
        _ = digest
        columns = len(ranges)
        for i in range(len(slots)):
            state = state_of(states, slots[i])
            place = answers[i * columns : (i + 1) * columns]
            slide_compiled(op, state, ranges, partials[i : i + 1], place, 0)

    return compiled(advance)


advance_states = _compiled_advance()
