"""A technique over many groups at once: one call advances all that have a new partial."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.aggregates import ResolvedAggregate
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregators.banks.answers import Answers
from muntin.aggregators.card import Card
from muntin.aggregators.inputs import arrow_values, sized, whole_number
from muntin.aggregators.snapshots import lengths_of, metadata_of, require_whole
from muntin.display import count
from muntin.errors import DataError


class Bank(ABC):
    """The windows of many groups, which move at their own pace. State is a few large arrays.

    Groups are known by number: 0 up to the first number of groups, then what `add` gives.

    Attributes:
        card: The technique's card.
        aggregate: What is computed.
        ranges: The windows, in partials, in the order of the answers.
        operations: Combines, inverses and comparisons so far.
    """

    def __init__(
        self, card: Card, aggregate: ResolvedAggregate, ranges: tuple[int, ...], groups: int
    ) -> None:
        self.card = card
        self.aggregate = aggregate
        self.ranges = ranges
        self.operations = 0
        # Kernels answer each range once, the largest first, and put answers in their places.
        distinct = list(dict.fromkeys(ranges))
        self.distinct: Ints = np.array(distinct, np.int64)
        self.places: Ints = np.argsort(-self.distinct)
        self.falling: Ints = self.distinct[self.places]
        self.capacity = max(ranges)
        self._order = [distinct.index(size) for size in ranges]
        groups = group_count(groups)
        self._slots = Slots(groups)
        self._reset(groups)

    def __repr__(self) -> str:
        ranges = ", ".join(map(str, self.ranges))
        algebra = self.aggregate.algebra
        return (
            f"Bank({self.card.name}, {algebra!r}, ranges=[{ranges}], {count(len(self), 'group')})"
        )

    def __len__(self) -> int:
        """How many groups there are."""
        return len(self._slots)

    @property
    def groups(self) -> Ints:
        """The numbers of the groups, rising."""
        return self._slots.all()

    @property
    def nbytes(self) -> int:
        """Bytes of the state's arrays."""
        return sum(array.nbytes for array in self._arrays().values())

    def add(self, count: int = 1) -> Ints:
        """Let groups join, with windows that hold nothing; returns their numbers."""
        slots = self._slots.add(group_count(count))
        self._resize(len(self._slots.marks))
        return slots

    def remove(self, groups: Iterable[int]) -> None:
        """Let groups leave; their numbers will be given out again."""
        slots = _as_slots(groups)
        self._slots.remove(slots)
        self._clear(slots)

    def advance(self, values: Any, groups: Iterable[int] | None = None) -> Answers:
        """Take in one row for each of the groups and answer all ranges.

        Args:
            values: Arrow or numpy array (or a sequence) with one value a group; NULL moves the
                window and adds no row.
            groups: The groups that advance, in any order; all of them, rising, if left out.
        """
        slots, packed = self._which(groups)
        array = self._as_arrow(values)
        self._check_length(len(array), len(slots))
        return self._advance(array, slots, packed).take_ranges(self._order)

    def advance_partials(
        self, columns: Sequence[PartColumn], groups: Iterable[int] | None = None
    ) -> Answers:
        """Take in one partial, of any number of rows, for each of the groups.

        Args:
            columns: A column for each of the aggregate's parts, with one cell a group.
            groups: As for `advance`.
        """
        slots, packed = self._which(groups)
        parts = tuple(column.part for column in columns)
        if parts != self.aggregate.parts:
            wanted = ", ".join(map(str, self.aggregate.parts))
            raise DataError(
                f"partials of {', '.join(map(str, parts))}", hint=f"{self!r} takes {wanted}"
            )
        for column in columns:
            self._check_length(len(column), len(slots))
        return self._advance_columns(columns, slots, packed).take_ranges(self._order)

    def snapshot(self) -> pa.RecordBatch:
        """The whole state as one row, a list for each array."""
        arrays = {"held": self._slots.marks, **self._arrays()}
        batch = pa.RecordBatch.from_pydict(
            {name: _as_list(array) for name, array in arrays.items()}
        )
        bank = json.dumps([*self._identity(), self.operations, self._layout()])
        return batch.replace_schema_metadata({"bank": bank, "lengths": lengths_of(batch)})

    def restore(self, batch: pa.RecordBatch) -> None:
        """Continue from a snapshot of a bank of the same technique, aggregate and ranges."""
        said = metadata_of(batch)
        if "bank" not in said:
            raise DataError(
                "this is not a snapshot of a bank", hint="restore what `snapshot` returned"
            )
        *identity, operations, layout = json.loads(said["bank"])
        if identity != self._identity():
            raise DataError(
                f"a snapshot of {identity[0]} for {identity[1]}, ranges {identity[2]}",
                hint=f"restore it into a bank made alike, not into {self!r}",
            )
        require_whole(batch, said)
        arrays = {
            name: batch.column(name).flatten().to_numpy().copy() for name in batch.schema.names
        }
        self._slots.restore(arrays.pop("held"))
        self.operations = operations
        self._take_over(arrays, layout)

    def _identity(self) -> list[Any]:
        return [self.card.name, repr(self.aggregate), list(self.ranges)]

    def _which(self, groups: Iterable[int] | None) -> tuple[Ints, bool]:
        if groups is None:
            return self._slots.all(), self._slots.packed
        slots = _as_slots(groups)
        self._slots.check(slots)
        return slots, False

    def _as_arrow(self, values: Any) -> pa.Array:
        if self.aggregate.types:
            return arrow_values(values, self.aggregate.types[0])
        # Rows are only counted.
        return pa.nulls(len(sized(values)))

    def _check_length(self, given: int, wanted: int) -> None:
        if given != wanted:
            raise DataError(
                f"{given} partials for {wanted} groups", hint="give one partial per group"
            )

    @abstractmethod
    def _reset(self, slots: int) -> None:
        """Make the state of `slots` groups that have seen nothing."""

    @abstractmethod
    def _resize(self, slots: int) -> None:
        """Make room for as many slots."""

    @abstractmethod
    def _clear(self, slots: Ints) -> None:
        """Forget what groups have seen."""

    @abstractmethod
    def _advance(self, values: pa.Array, slots: Ints, packed: bool) -> Answers:
        """Take in rows; `packed` says that the slots are 0, 1, 2 and so on."""

    @abstractmethod
    def _advance_columns(self, columns: Sequence[PartColumn], slots: Ints, packed: bool) -> Answers:
        """Take in partials."""

    @abstractmethod
    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The state."""

    @abstractmethod
    def _layout(self) -> dict[str, Any]:
        """What the arrays' layout depends on."""

    @abstractmethod
    def _take_over(self, arrays: dict[str, npt.NDArray[Any]], layout: dict[str, Any]) -> None:
        """Make flat arrays of such a layout the state."""


def _as_slots(groups: Iterable[int]) -> Ints:
    items = sized(groups)
    given = np.asarray(items if hasattr(items, "__array__") else [*items])
    if given.dtype.kind not in "iu" and len(given):
        raise DataError(f"groups {given[:3].tolist()}", hint="groups are whole numbers from 0 on")
    return np.ascontiguousarray(given, np.int64)


def group_count(count: Any) -> int:
    """A number of groups, from 0 on."""
    groups = whole_number(count, "number of groups")
    if groups < 0:
        raise DataError(f"groups must be 0 or more, not {groups}")
    return groups


def _as_list(array: npt.NDArray[Any]) -> pa.Array:
    flat = pa.array(array.reshape(-1))
    return pa.LargeListArray.from_arrays(np.array([0, len(flat)], np.int64), flat)


FREE = -1


class Slots:
    """Groups by number, from 0 up; the number of a group that left is given out again.

    `marks` holds FREE, or the last check that met the slot: that is how one pass finds a slot
    that is free, unknown, or given twice.

    >>> slots = Slots(3)
    >>> slots.remove(np.array([1]))
    >>> slots.add(2).tolist(), len(slots)
    ([1, 3], 4)
    """

    def __init__(self, count: int) -> None:
        self.marks: Ints = np.zeros(count, np.int64)
        self._checks = 0
        self._free: Ints = np.zeros(0, np.int64)
        self._all: Ints | None = np.arange(count)

    def __len__(self) -> int:
        return len(self.marks) - len(self._free)

    @property
    def packed(self) -> bool:
        """Whether the slots are 0, 1, 2 and so on without a gap."""
        return len(self._free) == 0

    def all(self) -> Ints:
        """The slots that hold a group, rising."""
        if self._all is None:
            self._all = np.flatnonzero(self.marks != FREE)
        return self._all

    def add(self, count: int) -> Ints:
        """Slots for `count` groups: free ones first, the least first."""
        reused = self._free[:count]
        self._free = self._free[count:]
        self.marks[reused] = 0
        fresh = np.arange(len(self.marks), len(self.marks) + count - len(reused))
        self.marks = np.concatenate([self.marks, np.zeros(len(fresh), np.int64)])
        self._all = None
        return np.concatenate([reused, fresh])

    def remove(self, slots: Ints) -> None:
        """Let groups go."""
        self.check(slots)
        self.marks[slots] = FREE
        self._free = np.flatnonzero(self.marks == FREE)
        self._all = None

    def check(self, slots: Ints) -> None:
        """Refuse a slot that holds no group, or comes twice."""
        self._checks += 1
        bad = _first_bad(self.marks, slots, self._checks)
        if bad == len(slots):
            return
        slot = int(slots[bad])
        if 0 <= slot < len(self.marks) and self.marks[slot] == self._checks:
            raise DataError(f"group {slot} comes twice", hint="advance it once per call")
        raise DataError(f"no group has number {slot}", hint="use the numbers that `add` gave")

    def restore(self, held: Ints) -> None:
        """Take over which of the slots hold a group: FREE, or anything else."""
        self.__init__(len(held))  # type: ignore[misc]
        self.remove(np.flatnonzero(held == FREE))


@compiled
def _first_bad(marks: Ints, slots: Ints, check: int) -> int:
    for i in range(len(slots)):
        slot = slots[i]
        if slot < 0 or slot >= len(marks) or marks[slot] == FREE or marks[slot] == check:
            return i
        marks[slot] = check
    return len(slots)
