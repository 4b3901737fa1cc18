"""Sorted values with how often each occurs, as a column: sets, runs, pairs and lists.

A cell holds *occurrences*: rows of codes in ascending order, each once, and a weight for each. All
cells lie behind one another, so that a column is three arrays whatever its number of cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.arrow_views import integers, live_cells, valid_mask
from muntin.aggregates.columns.codes import Coder, DictionaryCoder, coder
from muntin.aggregates.columns.column import PartColumn, Slide
from muntin.aggregates.columns.holistic.rows import (
    NO_WEIGHTS,
    Rows,
    gathered,
    merge_rows,
    rank_rows,
    sorted_rows,
    spread,
)

# What orders occurrences: the value alone; another argument, or the time, and then the value.
_VALUES = ("set", "runs")
_TIMES = ("list", "list_nulls")


class RunColumn(PartColumn):
    """The values of every cell, sorted, each with how often it occurs.

    Four kinds of parts: a ``set`` has values and no weights, ``runs`` have both. ``pairs`` order
    values by another argument and ``list`` by time; ``list_nulls`` keeps NULL as well. Of numbers
    that compare as equal, 0.0 stands for -0.0 in sets and runs.

    >>> column = RunColumn.empty(Part("runs", (pa.string(),)), 2)
    >>> column.update(np.array([0, 1, 0, 0]), (pa.array(["b", "z", "a", "b"]),))
    >>> column.to_arrow().to_pydict()
    {'value': [['a', 'b'], ['z']], 'weight': [[1, 2], [1]]}
    """

    def __init__(self, part: Part, rows: Rows, values: Coder, keys: Coder | None) -> None:
        super().__init__(part)
        self.rows = rows
        self.values = values
        self.keys = keys
        self._ranked: tuple[Rows, tuple[Ints, Ints]] | None = None
        self._weighed: tuple[Rows, tuple[Ints, int]] | None = None
        self._labelled: tuple[Rows, tuple[npt.NDArray[np.int32], Ints]] | None = None

    @classmethod
    def empty(cls, part: Part, size: int) -> Self:
        """No values."""
        width = 1 if part.kind in _VALUES else 3
        rows = Rows(np.zeros(size + 1, np.int64), np.empty((0, width), np.int64), NO_WEIGHTS)
        return cls(part, rows, coder(part.types[0]), _key_coder(part))

    def __len__(self) -> int:
        return len(self.rows.offsets) - 1

    @property
    def weighted(self) -> bool:
        """Whether it matters how often a value occurs."""
        return self.part.kind != "set"

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, and of dictionaries."""
        coders = self.values.nbytes + (0 if self.keys is None else self.keys.nbytes)
        return sum(each.nbytes for each in self.rows) + coders

    def update(self, cells: Ints, args: tuple[pa.Array, ...], times: Ints | None = None) -> None:
        """Add the rows whose arguments are not NULL; those of pairs and some lists may be."""
        needed = {"pairs": args[1:], "list_nulls": ()}.get(self.part.kind, args)
        cells = live_cells(cells, *needed)
        codes = self.codes_of(args, times)
        if cells.size and cells.min() < 0:
            kept = np.flatnonzero(cells >= 0)
            cells, codes = cells[kept], codes[kept]
        if cells.size:
            weights = np.ones(cells.size, np.int64) if self.weighted else NO_WEIGHTS
            self._add(sorted_rows(cells, codes, weights, len(self)))

    def codes_of(self, args: tuple[pa.Array, ...], times: Ints | None) -> Ints:
        """The codes of every row, as a row each."""
        values, moved = self.values.encode(args[0])
        self._move(-1, moved)
        if self.part.kind in _VALUES:
            if pa.types.is_floating(args[0].type):
                # The code of -0.0 lies right below that of 0.0.
                values = np.where(values == -1, 0, values)
            return values.reshape(-1, 1)
        if self.keys is None:
            assert times is not None
            keys = times
        else:
            keys, moved = self.keys.encode(args[1])
            self._move(0, moved)
        valid = valid_mask(args[0])
        codes = np.ones((values.size, 3), np.int64)
        codes[:, 0] = keys
        codes[:, 2] = values
        if valid is not None:
            codes[:, 1] = valid
            codes[~valid, 2] = 0
        return codes

    def _move(self, place: int, moved: Ints | None) -> None:
        """Follow a dictionary whose codes have moved, which keeps their order."""
        if moved is None or not len(self.rows.codes):
            return
        codes = self.rows.codes.copy()
        kept = slice(None) if self.rows.codes.shape[1] == 1 or place == 0 else codes[:, 1] == 1
        codes[kept, place] = moved[codes[kept, place]]
        self.rows = self.rows._replace(codes=codes)

    def _add(self, other: Rows) -> None:
        """Merge other occurrences, cell by cell."""
        if not len(other.codes):
            return
        if not len(self.rows.codes):
            self.rows = other
            return
        self.rows = Rows(*merge_rows(*self.rows, *other, self.weighted))

    def merge(self, cells: Ints, other: Self) -> None:
        """Add the other's occurrences to own cells."""
        self.merge_all((cells,), (other,))

    def merge_all(self, cells: Sequence[Ints], others: Sequence[Self]) -> None:
        """Add the occurrences of other columns to own cells, all at once."""
        rows = self._behind_one_another(others)
        lows, highs = rows.offsets[:-1], rows.offsets[1:]
        self._add(gathered(rows, lows, highs, np.concatenate(cells), len(self)))

    def _behind_one_another(self, others: Sequence[Self]) -> Rows:
        """The cells of other columns, one column behind the other, in own codes."""
        # A dictionary that takes in what others know moves the codes of those before.
        if len(others) == 1:
            return others[0].rows._replace(codes=self.translated(others[0]))
        for each in others:
            self.translated(each)
        rows = [each.rows._replace(codes=self.translated(each)) for each in others]
        ends = np.cumsum([0, *(each.offsets[-1] for each in rows)])
        offsets = [each.offsets[1:] + end for each, end in zip(rows, ends[:-1], strict=True)]
        return Rows(
            np.concatenate((ends[:1], *offsets)),
            np.concatenate([each.codes for each in rows]),
            np.concatenate([each.weights for each in rows]),
        )

    def translated(self, other: Self) -> Ints:
        """The other's codes as own coders have them."""
        codes = other.rows.codes
        for place, own, theirs in ((-1, self.values, other.values), (0, self.keys, other.keys)):
            if not isinstance(own, DictionaryCoder) or own is theirs:
                continue
            assert isinstance(theirs, DictionaryCoder)
            if own.dictionary is theirs.dictionary or not len(codes):
                continue
            found, moved = own.encode(theirs.dictionary)
            self._move(place, moved)
            codes = codes.copy()
            valid = slice(None) if codes.shape[1] == 1 or place == 0 else codes[:, 1] == 1
            codes[valid, place] = found[codes[valid, place]]
        return codes

    def take(self, indices: Ints) -> Self:
        """The cells at `indices`."""
        lows, highs = self.rows.offsets[indices], self.rows.offsets[1:][indices]
        offsets = np.concatenate(([0], np.cumsum(highs - lows)))
        at = spread(lows, offsets)
        weights = self.rows.weights[at] if self.weighted else NO_WEIGHTS
        return self.holding(Rows(offsets, self.rows.codes[at], weights))

    def extend(self, others: Sequence[Self]) -> None:
        """Add the cells of other columns behind own ones."""
        self.rows = self._behind_one_another((self, *others))

    def without_zeros(self) -> Self:
        """The occurrences whose weight is not zero."""
        kept = np.flatnonzero(self.rows.weights)
        if kept.size == self.rows.weights.size:
            return self
        cells = np.repeat(np.arange(len(self)), self.rows.sizes)[kept]
        sizes = np.bincount(cells, minlength=len(self))
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        return self.holding(Rows(offsets, self.rows.codes[kept], self.rows.weights[kept]))

    def holding(self, rows: Rows) -> Self:
        """A column of other occurrences, with the same codes."""
        keys = None if self.keys is None else self.keys.copy()
        column = type(self)(self.part, rows, self.values.copy(), keys)
        column.forget()
        return column

    def forget(self) -> None:
        """Let go of values of dictionaries that no cell has, once most are such."""
        valid = slice(None)
        if self.rows.codes.shape[1] > 1:
            valid = self.rows.codes[:, 1] == 1
        for place, each in ((-1, self.values), (0, self.keys)):
            if isinstance(each, DictionaryCoder):
                held = self.rows.codes[valid if place else slice(None), place]
                if len(each.dictionary) > 2 * held.size + 1000:
                    self._move(place, each.drop_unused(held))

    def slide(self, starts: Ints, ends: Ints) -> Self:
        """The occurrences of runs of cells, written out."""
        lows, highs = self.rows.offsets[starts], self.rows.offsets[np.maximum(ends, starts)]
        cells = np.arange(starts.size)
        return self.holding(gathered(self.rows, lows, highs, cells, starts.size))

    def roll_up(self, starts: Ints, ends: Ints, cells: Ints, size: int) -> Self:
        """A column of `size` cells: cell `cells[i]` takes own cells from `starts[i]` on."""
        lows, highs = self.rows.offsets[starts], self.rows.offsets[np.maximum(ends, starts)]
        in_order = not cells.size or bool(cells[0] >= 0 and np.all(cells[1:] >= cells[:-1]))
        if self.rows.codes.shape[1] == 1 and in_order:
            # Deferred: what is rolled up is a column of runs itself.
            from muntin.aggregates.columns.holistic.rolled_runs import (  # noqa: PLC0415
                RolledRuns,
            )

            firsts = np.searchsorted(cells, np.arange(size + 1))
            return RolledRuns(self, lows, highs, firsts)  # type: ignore[return-value]
        return self.holding(gathered(self.rows, lows, highs, cells, size))

    def sliding(self, longest: int) -> Slide:
        """Windows over these cells, which are looked through when they are lowered."""
        return lambda starts, ends: RunWindows(self, starts, ends)

    def resize(self, size: int) -> None:
        """Grow with cells that have no values."""
        offsets = np.full(size + 1, self.rows.offsets[-1])
        offsets[: len(self.rows.offsets)] = self.rows.offsets
        self.rows = self.rows._replace(offsets=offsets)

    def ranked(self) -> tuple[Ints, Ints]:
        """The rank of each occurrence among all different ones, and the codes of each rank."""
        if self._ranked is None or self._ranked[0] is not self.rows:
            self._ranked = self.rows, rank_rows(self.rows.codes)
        return self._ranked[1]

    def weighed(self) -> tuple[Ints, int]:
        """How often each occurrence is, and all of them together."""
        if self._weighed is None or self._weighed[0] is not self.rows:
            ones = np.ones(len(self.rows.codes), np.int64)
            weights = self.rows.weights if self.weighted else ones
            self._weighed = self.rows, (weights, int(weights.sum()))
        return self._weighed[1]

    def labelled(self) -> tuple[npt.NDArray[np.int32], Ints]:
        """The label of each occurrence's value, the most frequent ones first, and labels' ranks."""
        if self._labelled is None or self._labelled[0] is not self.rows:
            ranks, distinct = self.ranked()
            counts = np.bincount(ranks, self.weighed()[0], len(distinct))
            order = np.argsort(-counts, kind="stable")
            labels = np.empty(order.size, np.int32)
            labels[order] = np.arange(order.size)
            self._labelled = self.rows, (labels[ranks], order)
        return self._labelled[1]

    def decoded(self, codes: Ints) -> pa.Array:
        """The values of rows of codes."""
        valid = np.ones(len(codes), np.bool_) if codes.shape[1] == 1 else codes[:, 1] == 1
        return self.values.decode(np.ascontiguousarray(codes[:, -1]), valid)

    def to_arrow(self) -> pa.RecordBatch:
        """The values of each cell as a list, and what else there is beside them."""
        codes = self.rows.codes
        columns = {"value": self.decoded(codes)}
        if codes.shape[1] > 1:
            keys = np.ascontiguousarray(codes[:, 0])
            every = np.ones(len(keys), np.bool_)
            columns["key"] = pa.array(keys) if self.keys is None else self.keys.decode(keys, every)
        if self.weighted:
            columns["weight"] = pa.array(self.rows.weights)
        offsets = pa.array(self.rows.offsets)
        lists = [pa.LargeListArray.from_arrays(offsets, each) for each in columns.values()]
        return pa.RecordBatch.from_arrays(lists, names=list(columns))

    @classmethod
    def from_arrow(cls, part: Part, batch: pa.RecordBatch) -> Self:
        """The occurrences of a snapshot."""
        column = cls.empty(part, batch.num_rows)
        lists = batch.column("value")
        values = lists.flatten()
        sizes = np.diff(lists.offsets.to_numpy())
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        args: tuple[pa.Array, ...] = (values,)
        times = None
        if "key" in batch.schema.names:
            keys = batch.column("key").flatten()
            args, times = ((values, keys), None) if column.keys else (args, integers(keys))
        codes = column.codes_of(args, times)
        weights = NO_WEIGHTS
        if column.weighted:
            weights = integers(batch.column("weight").flatten()).copy()
        column.rows = Rows(offsets, codes, weights)
        return column


def _key_coder(part: Part) -> Coder | None:
    return coder(part.types[1]) if part.kind == "pairs" else None


class RunWindows(RunColumn):
    """Windows over the cells of a column: window i has its cells `lows[i]` to `highs[i] - 1`.

    Neighbouring windows share most of their values, so these are not written out before somebody
    asks for more than lowering does.
    """

    def __init__(self, base: RunColumn, lows: Ints, highs: Ints) -> None:
        PartColumn.__init__(self, base.part)
        self.base, self.lows, self.highs = base, lows, np.maximum(highs, lows)
        self.values, self.keys = base.values, base.keys
        self._ranked = self._weighed = self._labelled = None
        self._written: Rows | None = None

    def __len__(self) -> int:
        return len(self.lows)

    @property
    def is_written(self) -> bool:
        """Whether the values of each window are written out."""
        return self._written is not None

    @property
    def rows(self) -> Rows:
        """The occurrences of each window, written out."""
        if self._written is None:
            whole = self.base.slide(self.lows, self.highs)
            self.values, self.keys, self._written = whole.values, whole.keys, whole.rows
        return self._written

    @rows.setter
    def rows(self, rows: Rows) -> None:
        self._written = rows

    def holding(self, rows: Rows) -> RunColumn:  # type: ignore[override]
        """A column that is written out."""
        return RunColumn(self.part, rows, self.values, self.keys).holding(rows)
