"""Predicates over the same dimensions, and the space of cells that these span."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._typing import Bitmaps, Bools, Ints
from muntin.predicates.dimension import Ranked
from muntin.predicates.regions import Factor, Region

Columns = Sequence[npt.NDArray[np.integer]]

Interval = tuple[int, int]
Box = tuple[tuple[Interval, ...], ...]

MAX_KEYS = 1 << 63
MAX_LISTED = 1 << 20


class Cells(NamedTuple):
    """The distinct cells of some rows: the cell of every row, and the ranks of every cell."""

    ids: Ints
    ranks: tuple[Ints, ...]


class Fragments(NamedTuple):
    """Cells numbered by signature; number 0 is the signature without any predicate."""

    ids: Ints
    signatures: Bitmaps


@dataclass(frozen=True)
class Shape:
    """Some dimensions, and the predicates that depend on no others.

    A cell is one combination of ranks, one rank per dimension. Methods take cells as columns: for
    each dimension, in order, the rank of every cell (or of every row). Without dimensions there
    are no columns: then, and only then, they go by the number of cells (or rows) that is passed.

    Attributes:
        places: The dimensions' places in `Analysis.dimensions`.
        dimensions: The dimensions.
        members: The predicates' places in `Analysis.predicates`.
        accepts: Per predicate, where it is true.
        fails: Per predicate, where evaluating it fails.

    From Krishnamurthy, Wu, Franklin, "On-the-Fly Sharing for Streamed Aggregation", SIGMOD 2006:
    signatures and fragments; there of tuples, here of cells.
    """

    places: tuple[int, ...]
    dimensions: tuple[Ranked, ...]
    members: tuple[int, ...]
    accepts: tuple[Region, ...]
    fails: tuple[Region, ...]

    @property
    def size(self) -> int:
        """The number of cells there can be; no limit applies."""
        return prod(dimension.size for dimension in self.dimensions)

    @property
    def has_keys(self) -> bool:
        """Whether all cells can be numbered in 64 bits."""
        return self.size <= MAX_KEYS

    @property
    def can_fail(self) -> bool:
        """Whether evaluating some predicate can fail."""
        return any(not region.empty for region in self.fails)

    def keys(self, columns: Columns, rows: int = 1) -> Ints:
        """The cells' numbers, below `size`: ranks as digits, the last dimension's lowest.

        Where `has_keys` does not hold, what is read so far is renumbered as often as it takes:
        such keys only tell apart the cells of one call.
        """
        from muntin.predicates.ranks import append_digit  # noqa: PLC0415  (loads numba)

        if not columns:
            return np.zeros(rows, np.int64)
        keys = columns[0].astype(np.int64)
        size = self.dimensions[0].size
        for dimension, column in zip(self.dimensions[1:], columns[1:], strict=True):
            if size * dimension.size > MAX_KEYS:
                keys, size = _renumbered(keys)
            append_digit(keys, dimension.size, column)
            size *= dimension.size
        return keys

    def wanted_keys(self, columns: Columns) -> Ints:
        """The cells' numbers, -1 for those that no predicate accepts."""
        from muntin.predicates.ranks import append_digit, append_last  # noqa: PLC0415

        wanted = self.wanted
        if wanted is None:
            return self._selected(self.keys(columns))
        if not wanted.size or not columns:
            return self.keys(columns)
        keys = np.zeros(columns[0].size, np.int64)
        if len(columns) > 1:
            keys = columns[0].astype(np.int64)
            for dimension, column in zip(self.dimensions[1:-1], columns[1:-1], strict=True):
                append_digit(keys, dimension.size, column)
        append_last(keys, self.dimensions[-1].size, columns[-1], wanted)
        return keys

    def _selected(self, keys: Ints) -> Ints:
        encoded = pa.array(keys).dictionary_encode()
        bitmaps = self.signatures(self.ranks_of(encoded.dictionary.to_numpy()))
        kept: Bools = np.any(bitmaps != 0, axis=1)
        return np.where(kept[encoded.indices.to_numpy()], keys, -1)

    def ranks_of(self, keys: Ints) -> tuple[Ints, ...]:
        """The columns of cells given by their keys."""
        assert self.has_keys
        columns: list[Ints] = []
        for dimension in reversed(self.dimensions):
            keys, ranks = np.divmod(keys, dimension.size)
            columns.append(ranks)
        return tuple(reversed(columns))

    def cells(self, columns: Columns, rows: int = 1) -> Cells:
        """The distinct cells among rows, numbered by first appearance."""
        if not self.dimensions:
            return Cells(np.zeros(rows, np.int64), ())
        encoded = pa.array(self.keys(columns)).dictionary_encode()
        ids = encoded.indices.to_numpy().astype(np.int64)
        firsts = np.empty(len(encoded.dictionary), np.int64)
        firsts[ids[::-1]] = np.arange(ids.size - 1, -1, -1)
        return Cells(ids, tuple(column[firsts].astype(np.int64) for column in columns))

    def signatures(self, columns: Columns, cells: int = 1) -> Bitmaps:
        """The predicates that each cell satisfies: bit i of a row's bytes is predicate i.

        Bits are counted from the lowest of the first byte.
        """
        return self._accepting(columns, cells)

    def truth(self, columns: Columns, cells: int = 1) -> Bools:
        """Whether each cell satisfies each predicate, as WHERE does: NULL is no."""
        return self._unpacked(self._accepting(columns, cells))

    def failures(self, columns: Columns, cells: int = 1) -> Bools:
        """Whether evaluating each predicate fails in each cell."""
        return self._unpacked(self._failing(columns, cells))

    def fragments(self, columns: Columns, cells: int = 1) -> Fragments:
        """Cells with equal signatures share a number; signatures ascend as byte strings."""
        bitmaps = self._accepting(columns, cells)
        width = bitmaps.shape[1]
        everything = np.concatenate([np.zeros((1, width), np.uint8), bitmaps])
        rows = np.ascontiguousarray(everything).view(f"V{width}").ravel()
        found, ids = np.unique(rows, return_inverse=True)
        return Fragments(ids[1:].astype(np.int64), found.view(np.uint8).reshape(-1, width))

    def box(self, member: int) -> Box | None:
        """Per dimension, the intervals of ranks that predicate number `member` here accepts.

        The predicate is true where every dimension's rank lies in one of its intervals, [low,
        high). None where dimensions depend on each other. Intervals of one dimension ascend and
        do not touch; the ranks of NULL and failed values follow those of values.
        """
        region = self.accepts[member]
        if region.empty:
            return tuple(() for _ in self.dimensions)
        by_key = {dimension.bound.key: dimension for dimension in self.dimensions}
        found: dict[str, tuple[Interval, ...]]
        found = {key: ((0, dimension.size),) for key, dimension in by_key.items()}
        for factor in region.factors:
            if len(factor.dimensions) > 1:
                return None
            [key], [cuts] = factor.dimensions, factor.cuts
            found[key] = intervals(factor.table[by_key[key].coarser(cuts)])
        return tuple(found.values())

    @cached_property
    def wanted(self) -> Bools | None:
        """Which cells some predicate accepts, by their keys.

        Empty where all are; None where there are too many cells to list.
        """
        if any(region.constant for region in self.accepts):
            return np.zeros(0, np.bool_)
        if self.size > MAX_LISTED:
            return None
        bitmaps = self.signatures(self.ranks_of(np.arange(self.size)), self.size)
        wanted: Bools = np.any(bitmaps != 0, axis=1)
        return wanted if not wanted.all() else np.zeros(0, np.bool_)

    def reach(self, dimensions: Collection[Ranked]) -> Bools | None:
        """Which ranks of some dimensions lead to a cell where a predicate holds or fails.

        The array has an axis for each of these dimensions that the shape has, in its order. None
        where all ranks do, or there are too many cells to list.
        """
        if self._asked is None or not self._asked.size:
            return None
        cells = self._asked.reshape([dimension.size for dimension in self.dimensions])
        others = [axis for axis, each in enumerate(self.dimensions) if each not in dimensions]
        reached: Bools = np.asarray(cells.any(axis=tuple(others)))
        return None if reached.all() else reached

    @cached_property
    def _asked(self) -> Bools | None:
        """The cells that are `wanted`, and those where a predicate fails."""
        if self.wanted is None or not self.wanted.size or not self.can_fail:
            return self.wanted
        failing = self._failing(self.ranks_of(np.arange(self.size)), self.size)
        asked: Bools = self.wanted | np.any(failing != 0, axis=1)
        return asked

    @cached_property
    def boxes(self) -> tuple[Box | None, ...]:
        """The box of every predicate."""
        return tuple(self.box(member) for member in range(len(self.members)))

    @cached_property
    def _accepting(self) -> Signer:
        return Signer(self.dimensions, self.accepts)

    @cached_property
    def _failing(self) -> Signer:
        return Signer(self.dimensions, self.fails)

    def _unpacked(self, bitmaps: Bitmaps) -> Bools:
        flags = np.unpackbits(bitmaps, axis=1, count=len(self.members), bitorder="little")
        return flags.view(np.bool_)

    def __getstate__(self) -> dict[str, object]:
        return {item.name: getattr(self, item.name) for item in fields(self)}


def _renumbered(keys: Ints) -> tuple[Ints, int]:
    encoded = pa.array(keys).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), max(len(encoded.dictionary), 1)


class Signer:
    """Computes signatures of cells.

    For each dimension, a row of bits per rank says which predicates allow it there; a cell's
    signature is the intersection of its ranks' rows. Predicates in which dimensions depend on
    each other then have their own tables looked up.
    """

    def __init__(self, dimensions: Sequence[Ranked], regions: Sequence[Region]) -> None:
        self._places = {d.bound.key: place for place, d in enumerate(dimensions)}
        self._dimensions = dimensions
        self._possible = _packed(np.array([[not region.empty for region in regions]], np.bool_))
        allowed: dict[int, Bools] = {}
        self._joint: list[tuple[int, Factor]] = []
        for member, region in enumerate(regions):
            for factor in region.factors:
                if len(factor.dimensions) > 1:
                    self._joint.append((member, factor))
                    continue
                place = self._places[factor.dimensions[0]]
                if place not in allowed:
                    allowed[place] = np.ones((len(regions), dimensions[place].size), np.bool_)
                ranks = dimensions[place].coarser(factor.cuts[0])
                allowed[place][member] = factor.table[ranks]
        self._allowed = {place: _packed(flags.T) for place, flags in allowed.items()}

    def __call__(self, columns: Columns, cells: int) -> Bitmaps:
        """The signature of every cell; `cells` says how many there are without columns."""
        cells = columns[0].size if columns else cells
        bitmaps = np.repeat(self._possible, cells, axis=0)
        for place, rows in self._allowed.items():
            bitmaps &= rows[columns[place]]
        for member, factor in self._joint:
            places = [self._places[key] for key in factor.dimensions]
            ranks = (
                self._dimensions[place].coarser(cuts)[columns[place]]
                for place, cuts in zip(places, factor.cuts, strict=True)
            )
            denied = ~factor.table[tuple(ranks)]
            bitmaps[denied, member >> 3] &= ~np.uint8(1 << (member & 7))
        return bitmaps


def _packed(flags: Bools) -> Bitmaps:
    return np.packbits(flags, axis=1, bitorder="little")


def intervals(accepted: Bools) -> tuple[tuple[int, int], ...]:
    """The runs of True, as [low, high).

    >>> intervals(np.array([True, False, True, True]))
    ((0, 1), (2, 4))
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], accepted, [False]]).astype(np.int8)))
    return tuple((int(low), int(high)) for low, high in edges.reshape(-1, 2))
