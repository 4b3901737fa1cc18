"""Sorted values with how often each occurs, as a column: sets, runs, pairs and lists.

A cell holds *occurrences*: rows of codes in ascending order, each once, and a weight for each. All
cells lie behind one another, so that a column is three arrays whatever its number of cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.arrow_views import integers, live_cells, valid_mask
from muntin.aggregates.columns.codes import Coder, DictionaryCoder, coder
from muntin.aggregates.columns.column import PartColumn, Slide

# What orders occurrences: the value alone; another argument, or the time, and then the value.
_VALUES = ("set", "runs")
_TIMES = ("list", "list_nulls")
# Numbers of cells and codes that fit one word together are sorted as one.
_WORD = 1 << 62
# A table of all numbers there can be beats sorting while it is so many times as large.
_DENSE = 4


class Rows(NamedTuple):
    """Occurrences of cells: cell c has those from ``offsets[c]`` to ``offsets[c + 1] - 1``.

    Row i of ``codes`` orders occurrence i in its cell; ``weights`` says how often it occurs, and is
    empty where that does not matter.
    """

    offsets: Ints
    codes: Ints
    weights: Ints

    @property
    def sizes(self) -> Ints:
        """How many occurrences each cell has."""
        return np.diff(self.offsets)


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

    @classmethod
    def empty(cls, part: Part, size: int) -> Self:
        """No values."""
        width = 1 if part.kind in _VALUES else 3
        rows = Rows(np.zeros(size + 1, np.int64), np.empty((0, width), np.int64), _NO_WEIGHTS)
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
            weights = np.ones(cells.size, np.int64) if self.weighted else _NO_WEIGHTS
            self._add(_sorted(cells, codes, weights, len(self)))

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
        codes = self._translated(other)
        lows, highs = other.rows.offsets[:-1], other.rows.offsets[1:]
        self._add(_gathered(other.rows._replace(codes=codes), lows, highs, cells, len(self)))

    def _translated(self, other: Self) -> Ints:
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
        weights = self.rows.weights[at] if self.weighted else _NO_WEIGHTS
        return self.holding(Rows(offsets, self.rows.codes[at], weights))

    def extend(self, others: Sequence[Self]) -> None:
        """Add the cells of other columns behind own ones."""
        # A dictionary that takes in what others know moves the codes of those before.
        for each in others:
            self._translated(each)
        listed = [(self._translated(each), each.rows) for each in others]
        rows = [self.rows, *(each._replace(codes=codes) for codes, each in listed)]
        ends = np.cumsum([0, *(each.offsets[-1] for each in rows)])
        offsets = [each.offsets[1:] + end for each, end in zip(rows, ends[:-1], strict=True)]
        self.rows = Rows(
            np.concatenate(([0], *offsets)),
            np.concatenate([each.codes for each in rows]),
            np.concatenate([each.weights for each in rows]),
        )

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
        return self.roll_up(starts, ends, np.arange(starts.size), starts.size)

    def roll_up(self, starts: Ints, ends: Ints, cells: Ints, size: int) -> Self:
        """A column of `size` cells: cell `cells[i]` takes own cells from `starts[i]` on."""
        lows, highs = self.rows.offsets[starts], self.rows.offsets[np.maximum(ends, starts)]
        return self.holding(_gathered(self.rows, lows, highs, cells, size))

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
            self._ranked = self.rows, _ranks(self.rows.codes)
        return self._ranked[1]

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
        weights = _NO_WEIGHTS
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
        self._ranked = None
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


_NO_WEIGHTS = np.empty(0, np.int64)


def _ranks(codes: Ints) -> tuple[Ints, Ints]:
    """The rank of each row among the different ones, and these in order."""
    numbers, span = np.zeros(len(codes), np.int64), 1
    for column in codes.T:
        ranks, distinct = _column_ranks(column)
        if span * distinct.size >= _WORD:
            numbers, found = _column_ranks(numbers)
            span = found.size
        numbers, span = numbers * distinct.size + ranks, span * distinct.size
    ranks, distinct = _column_ranks(numbers)
    firsts = np.empty(distinct.size, np.int64)
    firsts[ranks] = np.arange(ranks.size)
    return ranks, codes[firsts]


def _column_ranks(numbers: Ints) -> tuple[Ints, Ints]:
    """The rank of each number among the different ones, and these in order."""
    low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    if high - low < _DENSE * numbers.size:
        held = np.zeros(high - low + 1, np.bool_)
        held[numbers - low] = True
        return (np.cumsum(held) - 1)[numbers - low], np.flatnonzero(held) + low
    distinct = np.unique(numbers)
    return np.searchsorted(distinct, numbers), distinct


def spread(lows: Ints, offsets: Ints) -> Ints:
    """The places of ranges one behind the other: range i begins at `lows[i]`.

    >>> spread(np.array([5, 2]), np.array([0, 2, 5])).tolist()
    [5, 6, 2, 3, 4]
    """
    return np.arange(offsets[-1]) + np.repeat(lows - offsets[:-1], np.diff(offsets))


def _gathered(rows: Rows, lows: Ints, highs: Ints, cells: Ints, size: int) -> Rows:
    """Ranges of occurrences as those of cells, several of which may go to one."""
    kept = np.flatnonzero((cells >= 0) & (highs > lows))
    lows, highs, cells = lows[kept], highs[kept], cells[kept]
    offsets = np.concatenate(([0], np.cumsum(highs - lows)))
    at = spread(lows, offsets)
    codes = rows.codes[at]
    weights = rows.weights[at] if len(rows.weights) else _NO_WEIGHTS
    if cells.size and not np.all(cells[1:] > cells[:-1]):
        return _sorted(np.repeat(cells, np.diff(offsets)), codes, weights, size)
    # Ranges that may span several cells are sorted in each of those only.
    if is_sorted(codes, offsets):
        sizes = np.zeros(size + 1, np.int64)
        sizes[cells + 1] = np.diff(offsets)
        return Rows(np.cumsum(sizes), codes, weights)
    return _sorted(np.repeat(cells, np.diff(offsets)), codes, weights, size)


def _sorted(cells: Ints, codes: Ints, weights: Ints, size: int) -> Rows:
    """Occurrences in any order as those of cells, each once."""
    if codes.shape[1] == 1:
        numbers, low, distinct = codes[:, 0], int(codes.min(initial=0)), None
        span = int(codes.max(initial=0)) - low + 1
        if span * size >= _WORD:
            distinct = np.unique(numbers)
            numbers, low, span = np.searchsorted(distinct, numbers), 0, distinct.size
        words = cells * span + (numbers - low)
        if not weights.size or weights.max() == 1 == weights.min():
            words.sort()
            cells, numbers = np.divmod(words, span)
            numbers = numbers + low if distinct is None else distinct[numbers]
            return _united(cells, numbers[:, None], weights, size)
        order = np.argsort(words)
    else:
        order = np.lexsort((*codes.T[::-1], cells))
    weights = weights[order] if weights.size else weights
    return _united(cells[order], codes[order], weights, size)


def _united(cells: Ints, codes: Ints, weights: Ints, size: int) -> Rows:
    """Sorted occurrences, those that are equal put together."""
    fresh = np.ones(cells.size, np.bool_)
    fresh[1:] = (cells[1:] != cells[:-1]) | (codes[1:] != codes[:-1]).any(axis=1)
    begins = np.flatnonzero(fresh)
    if weights.size:
        weights = np.add.reduceat(weights, begins) if begins.size else weights
    sizes = np.bincount(cells[begins], minlength=size)
    return Rows(np.concatenate(([0], np.cumsum(sizes))), codes[begins], weights)


@compiled
def is_sorted(codes: Ints, offsets: Ints) -> bool:
    """Whether the rows of every range ascend."""
    for cell in range(offsets.size - 1):
        for i in range(offsets[cell] + 1, offsets[cell + 1]):
            if _compare(codes, i - 1, codes, i) >= 0:
                return False
    return True


@compiled
def _compare(a: Ints, i: int, b: Ints, j: int) -> int:
    for k in range(a.shape[1]):
        if a[i, k] != b[j, k]:
            return -1 if a[i, k] < b[j, k] else 1
    return 0


@compiled
def merge_rows(
    offsets: Ints,
    codes: Ints,
    weights: Ints,
    their_offsets: Ints,
    their_codes: Ints,
    their_weights: Ints,
    weighted: bool,
) -> tuple[Ints, Ints, Ints]:
    """The occurrences of two columns, cell by cell; those in both are one, with both weights."""
    total = codes.shape[0] + their_codes.shape[0]
    found = np.empty((total, codes.shape[1]), np.int64)
    sums = np.empty(total if weighted else 0, np.int64)
    ends = np.zeros(offsets.size, np.int64)
    at = 0
    for cell in range(offsets.size - 1):
        i, j = offsets[cell], their_offsets[cell]
        while i < offsets[cell + 1] or j < their_offsets[cell + 1]:
            if i == offsets[cell + 1]:
                order = 1
            elif j == their_offsets[cell + 1]:
                order = -1
            else:
                order = _compare(codes, i, their_codes, j)
            source, place = (codes, i) if order <= 0 else (their_codes, j)
            for k in range(codes.shape[1]):
                found[at, k] = source[place, k]
            if weighted:
                sums[at] = (weights[i] if order <= 0 else 0) + (
                    their_weights[j] if order >= 0 else 0
                )
            i += order <= 0
            j += order >= 0
            at += 1
        ends[cell + 1] = at
    return ends, found[:at].copy(), sums[:at].copy() if weighted else sums
