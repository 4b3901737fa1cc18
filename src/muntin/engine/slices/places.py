"""The places of a set of partials: a number for each pair of group and cell that rows fell into."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.engine.rows.dictionary import number_keys, place_keys
from muntin.engine.slices.array_pack import Arrays, inside, under
from muntin.engine.slices.key_table import KeyTable
from muntin.engine.slices.partials import PartialBatch
from muntin.plan.nodes import Partials
from muntin.plan.selection import Cells, Mask

Int32s = npt.NDArray[np.int32]

_FEW = 64
_CELL_BITS = 31
_BY_PLACE = ("following", "slots", "cells")


class Chains(NamedTuple):
    """The places of each slot, as chains: from ``firsts[slot]`` by ``following`` up to -1.

    ``slots`` and ``cells`` give the slot and the cell of every place.
    """

    firsts: Int32s
    following: Int32s
    slots: Int32s
    cells: Int32s


class Spans(NamedTuple):
    """Windows of groups: the slot, the predicate, and the positions [low, high) of each."""

    slots: Ints
    members: Ints
    lows: Ints
    highs: Ints

    def take(self, order: Ints) -> Spans:
        """Some of them, in another order."""
        return Spans(*(each[order] for each in self))


class Places:
    """Groups by slot, cells by number, and a place for each pair of them that occurs.

    All of them are numbered as they first appear, and keep their numbers.
    """

    def __init__(self, node: Partials) -> None:
        self.node = node
        self.groups = KeyTable([bound.type for bound in node.grouping]) if node.grouping else None
        self.slots = 0 if node.grouping else 1
        self._codes = _Numbers()
        self._bitmaps: dict[bytes, int] = {}
        self._pairs = _Numbers()
        self._held = np.zeros((node.selection.members, 0), np.bool_)
        self._asked = 0
        none = np.zeros(0, np.int32)
        self._chains = Chains(np.full(1, -1, np.int32), none, none, none)
        self.count = 0

    @property
    def nbytes(self) -> int:
        """Bytes of keys and numbers."""
        keys = 0 if self.groups is None else self.groups.nbytes
        chains = sum(array.nbytes for array in self._chains)
        return keys + chains + self._codes.nbytes + self._pairs.nbytes

    @property
    def chains(self) -> Chains:
        """The places of slots."""
        return self._chains

    def number(self, batch: PartialBatch) -> Ints:
        """The place of every entry of a batch."""
        size = batch.starts.size
        slots = np.zeros(size, np.int64)
        if self.groups is not None and size:
            slots = self.groups.slots(batch.keys)
            self.slots = self.groups.count
        cells = self._cells(batch)
        if cells is None:
            # A slot has one place, of the same number.
            self._extend(np.arange(self.count, self.slots))
            return slots
        places, fresh = self._pairs.number((slots << _CELL_BITS) | cells)
        self._extend(fresh)
        return places

    def _cells(self, batch: PartialBatch) -> Ints | None:
        if batch.codes is None:
            return None
        if batch.signatures is None:
            return self._codes.number(batch.codes)[0]
        known = [
            self._bitmaps.setdefault(bytes(bitmap), len(self._bitmaps))
            for bitmap in batch.signatures
        ]
        return np.array(known, np.int64)[batch.codes]

    def _extend(self, pairs: Ints) -> None:
        """Chain the places of pairs that are seen for the first time."""
        chains, count = self._chains, self.count + pairs.size
        if self.slots > chains.firsts.size:
            firsts = np.full(max(self.slots, chains.firsts.size * 5 // 4), -1, np.int32)
            firsts[: chains.firsts.size] = chains.firsts
            chains = chains._replace(firsts=firsts)
        if count > chains.slots.size:
            size = max(count, chains.slots.size * 5 // 4, _FEW)
            longer = np.empty((3, size), np.int32)
            longer[:, : self.count] = [array[: self.count] for array in chains[1:]]
            chains = Chains(chains.firsts, *longer)
        coded = self.node.selection.coded
        cells = pairs & ((1 << _CELL_BITS) - 1) if coded else np.zeros(pairs.size, np.int64)
        _chain(chains, self.count, pairs >> _CELL_BITS if coded else pairs, cells)
        self._chains, self.count = chains, count

    def arrays(self) -> Arrays:
        """All of it as arrays."""
        by_place = zip(_BY_PLACE, self._chains[1:], strict=True)
        found: Arrays = {name: array[: self.count] for name, array in by_place}
        found["firsts"] = self._chains.firsts[: self.slots]
        found["codes"], found["pairs"] = self._codes.keys(), self._pairs.keys()
        found["bitmaps"] = np.frombuffer(b"".join(self._bitmaps), np.uint8)
        found["counts"] = np.array([self.slots, self.count, len(self._bitmaps)])
        return found if self.groups is None else {**found, **under("keys/", self.groups.arrays())}

    @classmethod
    def of_arrays(cls, node: Partials, arrays: Arrays) -> Places:
        """The places that `arrays` made."""
        places = cls(node)
        if places.groups is not None:
            places.groups.restore(inside(arrays, "keys/"))
        places._codes.number(np.array(arrays["codes"]))
        places._pairs.number(np.array(arrays["pairs"]))
        places.slots, places.count, bitmaps = arrays["counts"].tolist()
        if bitmaps:
            rows = arrays["bitmaps"].reshape(bitmaps, -1)
            places._bitmaps = {bytes(row): number for number, row in enumerate(rows)}
        firsts = np.full(max(places.slots, 1), -1, np.int32)
        firsts[: places.slots] = arrays["firsts"]
        places._chains = Chains(firsts, *(np.array(arrays[name]) for name in _BY_PLACE))
        return places

    def held(self) -> Bools:
        """Whether each predicate holds in each cell: a row a predicate, and a column a cell.

        There may be more columns than cells. Only cells that are new are asked about.
        """
        selection = self.node.selection
        if isinstance(selection, Mask):
            return np.ones((1, 1), np.bool_)
        count = self._cell_count
        if count > self._held.shape[1] or not self._held.size:
            wider = np.zeros((selection.members, max(count, 2 * self._asked, _FEW)), np.bool_)
            wider[:, : self._asked] = self._held[:, : self._asked]
            self._held = wider
        if count > self._asked:
            self._held[:, self._asked : count] = self._truth(self._asked)
            self._asked = count
        return self._held

    @property
    def _cell_count(self) -> int:
        if not self.node.selection.coded:
            return 1
        return len(self._bitmaps) or self._codes.keys().size

    def _truth(self, since: int) -> Bools:
        """Whether each predicate holds in the cells from number ``since`` on."""
        selection = self.node.selection
        if isinstance(selection, Cells):
            codes = self._codes.keys()[since:]
            truth = selection.shape.truth(
                selection.shape.ranks_of(codes) if selection.coded else ()
            )
        else:
            bits = [np.frombuffer(each, np.uint8) for each in islice(self._bitmaps, since, None)]
            width = -(-selection.members // 64) * 8
            table = np.array(bits, np.uint8).reshape(-1, width)
            truth = np.unpackbits(table, axis=1, bitorder="little").view(np.bool_)
        return truth[:, : selection.members].T

    def batch(self, starts: Ints, places: Ints, columns: tuple[object, ...]) -> PartialBatch:
        """Entries of places as they came, with their keys and codes."""
        slots = self._chains.slots[places].astype(np.int64)
        keys = () if self.groups is None else self.groups.keys(slots)
        codes, signatures = None, None
        if self.node.selection.coded:
            cells = self._chains.cells[places].astype(np.int64)
            if self._bitmaps:
                bitmaps = [np.frombuffer(each, np.uint8) for each in self._bitmaps]
                codes, signatures = cells, np.array(bitmaps)
            else:
                codes = self._codes.keys()[cells]
        return PartialBatch(starts, keys, codes, columns, signatures)  # type: ignore[arg-type]


class _Numbers:
    """Numbers for integers of zero or more, given as they first appear.

    >>> numbers = _Numbers()
    >>> [each.tolist() for each in numbers.number(np.array([7, 3, 7]))]
    [[0, 1, 0], [7, 3]]
    >>> [each.tolist() for each in numbers.number(np.array([5, 3]))]
    [[2, 1], [5]]
    """

    def __init__(self) -> None:
        self._bits = 6
        self._table = np.full(1 << self._bits, -1, np.int32)
        self._keys = np.empty(1 << (self._bits - 1), np.int64)
        self._count = 0

    @property
    def nbytes(self) -> int:
        return self._table.nbytes + self._keys.nbytes

    def keys(self) -> Ints:
        """The integers, by number."""
        return self._keys[: self._count]

    def number(self, keys: Ints) -> tuple[Ints, Ints]:
        """The number of every integer, and those that had none before."""
        before, done = self._count, 0
        ids = np.empty(keys.size, np.int64)
        while True:
            shift = np.uint64(64 - self._bits)
            done, self._count = number_keys(
                keys, done, ids, self._table, self._keys, self._count, shift
            )
            if done == keys.size:
                return ids, self._keys[before : self._count]
            self._bits += 1
            self._keys = np.concatenate((self._keys, np.empty(self._keys.size, np.int64)))
            self._table = np.full(1 << self._bits, -1, np.int32)
            place_keys(self._table, self._keys, self._count, np.uint64(64 - self._bits))


@compiled
def _chain(chains: Chains, first: int, slots: Ints, cells: Ints) -> None:
    """Put new places, numbered from ``first`` on, at the heads of their slots' chains."""
    for i in range(slots.size):
        place, slot = first + i, slots[i]
        chains.slots[place], chains.cells[place] = slot, cells[i]
        chains.following[place] = chains.firsts[slot]
        chains.firsts[slot] = place
