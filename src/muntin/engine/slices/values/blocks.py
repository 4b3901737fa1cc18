"""The values of sealed entries, as blocks in order of time that are indexed when asked about.

A block never changes. Four of a size are made one, so that a value is written anew as often as its
block grows fourfold, and a window spans few of them however long it is.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from muntin._typing import Bools, Ints
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.by_part import empty
from muntin.aggregates.columns.codes import DictionaryCoder
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.columns.holistic.rows import Rows, rank_rows, spread
from muntin.aggregates.columns.holistic.runs import RunColumn
from muntin.engine.slices.finals.positioned import Positioned
from muntin.engine.slices.places import Chains, Spans
from muntin.engine.slices.stretches import Trail
from muntin.engine.slices.values import ranks
from muntin.engine.slices.values.windows import BlockWindows

_FAN_OUT = 4
# So many bytes of a part's values stay in memory; the oldest blocks beyond that lie in files.
_MOST_HELD = 256 << 20
# Smaller arrays are not worth a file.
_LEAST_SPILLED = 1 << 12
_Array = TypeVar("_Array", bound=npt.NDArray[Any])


class Block:
    """Entries from one position to another: the places they are of, and their values.

    Entry i has the occurrences from ``offsets[i]`` on. ``held`` says which of the block's different
    values each is, whose ``codes`` are in order.
    """

    def __init__(
        self, first: int, places: Ints, offsets: Ints, held: Ints, codes: Ints, weights: Ints
    ) -> None:
        self.first, self.places = first, places
        self.offsets, self.held, self.codes, self.weights = offsets, held, codes, weights
        self._indexes: dict[int, Index] = {}
        self.is_spilled = False

    @property
    def last(self) -> int:
        """The position behind its last entry."""
        return self.first + len(self.places)

    @property
    def tier(self) -> int:
        """How large it is: blocks of one tier differ by less than fourfold."""
        return (len(self.places) + len(self.held)).bit_length() // 2

    @property
    def nbytes(self) -> int:
        """Bytes of values and indexes in memory."""
        if self.is_spilled:
            return 0
        own = self.places, self.offsets, self.held, self.codes, self.weights
        return sum(each.nbytes for each in own) + sum(e.nbytes for e in self._indexes.values())

    def since(self, position: int) -> Block:
        """The entries from a position on."""
        return self.between(position, self.last)

    def between(self, low: int, high: int) -> Block:
        """The entries from one position to another."""
        first, last = max(low - self.first, 0), min(high, self.last) - self.first
        if first == 0 and last == len(self.places):
            return self
        begin, end = self.offsets[[first, last]].tolist()
        weights = self.weights[begin:end] if self.weights.size else self.weights
        offsets = self.offsets[first : last + 1] - begin
        place = self.first + first
        rows = self.held[begin:end], self.codes, weights
        return Block(place, self.places[first:last], offsets, *rows)

    def index(self, member: int, chains: Chains, held: Bools) -> Index:
        """The index of the entries of a predicate."""
        if member not in self._indexes:
            self._indexes[member] = Index(self, member, chains, held)
        return self._indexes[member]

    def spill(self) -> None:
        """Let values and indexes lie in files."""
        self.is_spilled = True
        own = self.places, self.offsets, self.held, self.codes, self.weights
        self.places, self.offsets, self.held, self.codes, self.weights = map(spilled, own)
        # Indexes know where these lay.
        self._indexes = {}

    def moved(self, place: int, codes: Ints) -> None:
        """Follow a dictionary whose codes have moved, which keeps their order."""
        valid = slice(None) if self.codes.shape[1] == 1 or place == 0 else self.codes[:, 1] == 1
        # In place: indexes know where these lie.
        self.codes[valid, place] = codes[self.codes[valid, place]]


class Index:
    """The occurrences of a predicate in a block, by slot and then by time, as a wavelet matrix."""

    def __init__(self, block: Block, member: int, chains: Chains, held: Bools) -> None:
        cells, slots = chains.cells[block.places], chains.slots[block.places].astype(np.int64)
        order = np.flatnonzero(held[member, cells])
        if slots.size and slots.max() > 0:
            order = order[np.argsort(slots[order], kind="stable")]
        sizes = np.diff(block.offsets)[order]
        self._keys = slots[order] * (len(block.places) + 1) + order
        self._offsets = np.concatenate(([0], np.cumsum(sizes)))
        at = spread(block.offsets[order], self._offsets)
        weights = block.weights[at] if block.weights.size else block.weights
        matrix = ranks.matrix(block.held[at], weights, len(block.codes))
        if block.is_spilled:
            matrix = ranks.Matrix(*map(spilled, matrix))
            at, self._keys, self._offsets = map(spilled, (at, self._keys, self._offsets))
        self._matrix = matrix
        self._codes = block.codes
        self.row = np.zeros(ranks.FIELDS, np.int64)
        self.row[ranks.KEYS], self.row[ranks.ENTRIES] = _address(self._keys), order.size
        self.row[ranks.OFFSETS], self.row[ranks.CODES] = map(_address, (self._offsets, self._codes))
        self.row[ranks.DISTINCT], self.row[ranks.WIDTH] = self._codes.shape
        self.row[ranks.BITS], self.row[ranks.WORDS] = _address(self._matrix.bits), at.size // 64 + 1
        self.row[ranks.SAMPLES] = _address(self._matrix.samples)
        self.row[ranks.ZEROS] = _address(self._matrix.zeros)
        self.row[ranks.LEVELS] = len(self._matrix.zeros)
        self.row[ranks.WEIGHTS], self.row[ranks.SIZE] = _address(self._matrix.weights), at.size
        self.row[ranks.FIRST], self.row[ranks.SPAN] = block.first, len(block.places)
        self.at = at

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        own = self._keys.nbytes + self._offsets.nbytes + self.at.nbytes
        return own + sum(each.nbytes for each in self._matrix)


def _address(array: npt.NDArray[Any]) -> int:
    assert array.flags.c_contiguous
    return int(array.__array_interface__["data"][0]) if array.size else 0


class SealedValues(Positioned):
    """The values of one part's sealed entries."""

    technique = "panes"

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        column = empty(part, 0)
        assert isinstance(column, RunColumn)
        self.coders = column
        self.blocks: list[Block] = []
        self._begin = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all blocks and dictionaries."""
        return sum(block.nbytes for block in self.blocks) + self.coders.nbytes

    def forget(self, begin: int) -> None:
        """Let go of blocks before a position."""
        self._begin = begin
        self.blocks = [block for block in self.blocks if block.last > begin]

    def take(self, at: int, places: Ints, column: PartColumn) -> None:
        """Take in entries of places from a position on, which is behind all others."""
        assert isinstance(column, RunColumn)
        held, distinct = rank_rows(self._coded(column))
        rows = column.rows
        block = Block(at, places, rows.offsets, held, distinct.copy(), rows.weights)
        self.blocks.append(block)
        self.taken(block)
        self._settle(self._begin)
        self._spill()

    def _spill(self) -> None:
        """Let the oldest blocks lie in files, where there are too many to hold."""
        if self.nbytes <= _MOST_HELD:
            return
        for block in self.blocks:
            if not block.is_spilled:
                block.spill()
            if self.nbytes <= _MOST_HELD // 2:
                break

    def taken(self, block: Block) -> None:
        """What is sealed, as it came."""

    def _coded(self, column: RunColumn) -> Ints:
        """The codes of a column's values as the coders here have them."""
        codes = column.rows.codes
        own = self.coders
        pairs = ((-1, own.values, column.values), (0, own.keys, column.keys))
        for place, mine, theirs in pairs:
            if not isinstance(mine, DictionaryCoder) or not len(codes):
                continue
            assert isinstance(theirs, DictionaryCoder)
            found, moved = mine.encode(theirs.dictionary)
            self._move(place, moved)
            codes = codes.copy()
            valid = slice(None) if codes.shape[1] == 1 or place == 0 else codes[:, 1] == 1
            codes[valid, place] = found[codes[valid, place]]
        return codes

    def _settle(self, begin: int) -> None:
        """Make one block of four of a size, whatever lies between them."""
        while True:
            tier = self.blocks[-1].tier
            count = 0
            while count < len(self.blocks) and self.blocks[-1 - count].tier <= tier:
                count += 1
            if count < _FAN_OUT:
                return
            merged = _merged([block.since(begin) for block in self.blocks[-count:]])
            self.blocks[-count:] = [merged]
            self._forget()

    def _forget(self) -> None:
        """Let go of values of dictionaries that no block has, once most are such."""
        own = self.coders
        for place, coder in ((-1, own.values), (0, own.keys)):
            if not isinstance(coder, DictionaryCoder):
                continue
            used = [
                block.codes[
                    slice(None) if block.codes.shape[1] == 1 or place == 0
                    else block.codes[:, 1] == 1, place
                ]
                for block in self.known()
            ]  # fmt: skip
            if len(coder.dictionary) > 2 * sum(map(len, used)) + 1000:
                self._move(place, coder.drop_unused(np.concatenate(used)))

    def _move(self, place: int, moved: Ints | None) -> None:
        """Let all blocks follow a dictionary whose codes have moved."""
        if moved is not None:
            for block in self.known():
                block.moved(place, moved)

    def known(self) -> list[Block]:
        """All blocks whose codes are the coders'."""
        return self.blocks

    def between(self, first: int, last: int) -> PartColumn:
        """The values of the entries from one position to another."""
        blocks = [
            block.between(first, last)
            for block in self.blocks
            if block.last > first and block.first < last
        ]
        if not blocks:
            return empty(self.part, last - first)
        whole = _merged(blocks)
        assert len(whole.places) == last - first
        rows = Rows(whole.offsets, whole.codes[whole.held], whole.weights)
        return self.coders.holding(rows)

    def read(
        self, trail: Trail, lasts: Ints, chains: Chains, held: Bools, spans: Spans
    ) -> tuple[BlockWindows, int, int]:
        """The values of windows, which are looked up when they are lowered."""
        found = BlockWindows(self.coders, len(spans.slots))
        kept = [block for block in self.blocks if block.last > trail.begin]
        for member in np.unique(spans.members).tolist():
            rows = np.flatnonzero(spans.members == member)
            indexes = [block.index(member, chains, held) for block in kept]
            lows = np.maximum(spans.lows[rows], trail.begin)
            found.add(rows, kept, indexes, spans.slots[rows], lows, spans.highs[rows])
        return found, len(spans.slots), 0


def _merged(blocks: Sequence[Block]) -> Block:
    """One block of several that follow each other."""
    if len(blocks) == 1:
        return blocks[0]
    codes = np.concatenate([block.codes for block in blocks])
    places, distinct = rank_rows(codes)
    held, at = [], 0
    for block in blocks:
        held.append(places[at + block.held])
        at += len(block.codes)
    ends = np.cumsum([0, *(block.offsets[-1] for block in blocks)])
    offsets = [block.offsets[1:] + end for block, end in zip(blocks, ends[:-1], strict=True)]
    whole = np.concatenate(held)
    # Values of entries that have left are left out.
    used = np.zeros(len(distinct), np.bool_)
    used[whole] = True
    if not used.all():
        whole, distinct = (np.cumsum(used) - 1)[whole], distinct[used]
    return Block(
        blocks[0].first,
        np.concatenate([block.places for block in blocks]),
        np.concatenate(([0], *offsets)),
        whole,
        np.ascontiguousarray(distinct),
        np.concatenate([block.weights for block in blocks]),
    )


def spilled(array: _Array) -> _Array:
    """The same numbers in a file, of which the system reads the pages that somebody looks at.

    It has no name, and goes with the last array that lies in it, or with the process.

    >>> spilled(np.arange(1000)).sum()
    np.int64(499500)
    """
    if array.nbytes < _LEAST_SPILLED:
        return array
    with tempfile.TemporaryFile(prefix="muntin-values-") as file:
        file.truncate(array.nbytes)
        memory = mmap.mmap(file.fileno(), array.nbytes)
    found: Any = np.frombuffer(memory, array.dtype).reshape(array.shape)
    found[...] = array
    return found  # type: ignore[no-any-return]
