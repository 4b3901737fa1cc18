"""Marks of when values were last seen: how many different ones any window has.

For each group and value a mark stands at the newest entry that has it. A window that ends where the
marks stand holds as many different values as there are marks in it, whatever its range. Marks move
entry by entry as slices are read past their ends, never when rows arrive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
import pyarrow as pa

from muntin._typing import Bools, Ints
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.codes import DictionaryCoder
from muntin.aggregates.columns.holistic.windows import Windows, value_bytes
from muntin.aggregates.columns.sums import LOAD_LIMIT, SumColumn
from muntin.engine.slices.finals.totals import refitted
from muntin.engine.slices.key_table import KeyTable
from muntin.engine.slices.places import Chains, Spans
from muntin.engine.slices.stretches import Trail
from muntin.engine.slices.values.blocks import Block, SealedValues
from muntin.engine.slices.values.marks import WORN, Marks, News

# So many texts are always told apart.
_FEW = 256


class SeenWindows(Windows):
    """Windows whose different values are counted, and summed up where that is asked for."""

    is_listed = False

    def __init__(self, numbers: Ints, fit: tuple[int, int, int] | None) -> None:
        self.numbers, self._fit = numbers, fit
        self.occurrences = self.totals = numbers[:, 0]
        self.longest = 1 << 62

    def __len__(self) -> int:
        return len(self.numbers)

    def only(self, kept: Ints) -> Self:
        """Some of the windows."""
        return type(self)(self.numbers[kept], self._fit)

    def measured(self) -> tuple[Ints, Ints]:
        """How many different values each window has, and their bytes."""
        return self.numbers[:, 0], self.numbers[:, 1]

    def sums(self, types: tuple[pa.DataType, ...]) -> SumColumn:
        """The exact sum of each window's different values."""
        assert self._fit is not None
        base, width, kinds = self._fit
        part = Part("sum", types)
        limbs = np.ascontiguousarray(self.numbers[:, 2 : 2 + width])
        specials = np.ascontiguousarray(self.numbers[:, 2 + width :]) if kinds else None
        if not width:
            column = SumColumn.empty(part, len(self))
            column.specials = specials
            return column
        return SumColumn(part, limbs, base, LOAD_LIMIT, specials)

    def codes_at(self, ranks: Ints) -> Ints:
        """Marks tell how many values there are, not which: no aggregate over them asks."""
        raise TypeError("marks of values count them and do not name them")

    values = select = heaviest = different = every = codes_at  # type: ignore[assignment]


class LastSeen(SealedValues):
    """The sets of sealed entries, and for each predicate that is asked about marks of its values.

    Marks are nowhere stored: they are made of the sets again.
    """

    technique = "last_seen"

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        # By predicate, and whether values are added up.
        self._marks: dict[tuple[int, bool], Marks] = {}
        # Sets as they were sealed, which some marks have yet to move on by.
        self._waiting: list[Block] = []
        self._fit = (0, 0, 0)
        is_text = isinstance(self.coders.values, DictionaryCoder)
        self._texts = KeyTable([part.types[0]]) if is_text else None

    @property
    def nbytes(self) -> int:
        """Bytes of sets and marks."""
        return super().nbytes + sum(marks.nbytes for marks in self._marks.values())

    def forget(self, begin: int) -> None:
        """Let go of blocks before a position, and of what marks have moved on by."""
        super().forget(begin)
        # Marks that nobody has read for a whole window are made anew if somebody asks again.
        self._marks = {key: each for key, each in self._marks.items() if each.fed >= begin}
        read = min((marks.fed for marks in self._marks.values()), default=1 << 62)
        self._waiting = [block for block in self._waiting if block.last > read]

    def taken(self, block: Block) -> None:
        """Keep what is sealed as it is, until marks have moved on by it."""
        if self._marks:
            self._waiting.append(block)

    def known(self) -> list[Block]:
        """All blocks whose codes are the coders'."""
        return list({id(block): block for block in (*self.blocks, *self._waiting)}.values())

    def count(
        self, trail: Trail, chains: Chains, held: Bools, asked: Sequence[tuple[Spans, bool]]
    ) -> list[SeenWindows]:
        """Count the different values of windows, and add them up where that is said.

        All windows of all queries come at once: marks are read in order of windows' ends.
        """
        found = []
        for summed in (False, True):
            chosen = [spans for spans, wanted in asked if wanted == summed]
            if chosen:
                whole = Spans(*(np.concatenate(each) for each in zip(*chosen, strict=True)))
                numbers = self._counts(trail, chains, held, whole, summed)
                ends = np.cumsum([spans.slots.size for spans in chosen])
                found.append(iter(np.split(numbers, ends[:-1])))
            else:
                found.append(iter(()))
        return [SeenWindows(next(found[summed]), self._fit) for _, summed in asked]

    def _counts(
        self, trail: Trail, chains: Chains, held: Bools, spans: Spans, summed: bool
    ) -> Ints:
        if not spans.slots.size:
            return np.zeros((0, 2 + sum(self._fit[1:]) * summed), np.int64)
        members = np.unique(spans.members).tolist()
        low, high = int(spans.highs.min(initial=1 << 62)), int(spans.highs.max(initial=0))
        kept = sum(len(block.places) + len(block.codes) for block in self.blocks)
        if self._texts is not None and self._texts.count > WORN * kept + _FEW:
            self._texts, self._marks = KeyTable([self.part.types[0]]), {}
        for member in members:
            marks = self._marks.get((member, summed))
            if marks is None or low < marks.fed or marks.is_worn(kept):
                # Windows that end before what was read, and the first ones, begin anew.
                self._marks[member, summed] = Marks(2)
        begins = {m: max(self._marks[m, summed].fed, trail.begin) for m in members}
        news = {
            since: self._news(since, max(high, since), chains)
            for since in sorted(set(begins.values()))
        }
        # The sums of all values that come have room before any is counted.
        values = {since: self._counted(each, summed) for since, each in news.items()}
        numbers = {since: self._fitted(*each, summed) for since, each in values.items()}
        width = next(iter(numbers.values())).shape[1]
        out = np.zeros((spans.slots.size, width), np.int64)
        lows = np.maximum(spans.lows, trail.begin)
        for member in members:
            marks, since = self._marks[member, summed], begins[member]
            rows = np.flatnonzero(spans.members == member)
            own = spans._replace(lows=lows).take(rows)
            order = np.argsort(own.highs, kind="stable")
            entries = news[since]._replace(numbers=numbers[since])
            marks.widen(self._fit if summed else (0, 0, 0))
            found = np.zeros((rows.size, width), np.int64)
            marks.move(entries.only(held[member, entries.cells]), trail.begin, own, order, found)
            marks.fed = max(high, since)
            out[rows] = found
        return out

    def _news(self, low: int, high: int, chains: Chains) -> News:
        """The entries between two positions."""
        waits = bool(self._waiting) and self._waiting[0].first <= low
        pieces = [
            block.between(low, high)
            for block in (self._waiting if waits else self.blocks)
            if block.first < high and block.last > low
        ]
        none = np.empty(0, np.int64)
        places = np.concatenate([none, *(piece.places for piece in pieces)])
        positions = [np.arange(piece.first, piece.last) for piece in pieces]
        sizes = [np.diff(piece.offsets) for piece in pieces]
        ends = np.cumsum([0, *(len(piece.codes) for piece in pieces)])
        held = [piece.held + end for piece, end in zip(pieces, ends[:-1], strict=True)]
        codes = np.concatenate([none.reshape(0, 1), *(piece.codes for piece in pieces)])
        return News(
            np.concatenate([none, *positions]),
            chains.slots[places].astype(np.int64),
            chains.cells[places],
            np.concatenate(([0], np.cumsum(np.concatenate([none, *sizes])))),
            np.concatenate([none, *held]),
            codes,
            self._numbered(codes),
            codes,
        )

    def _numbered(self, codes: Ints) -> Ints:
        """Numbers that tell values apart for good."""
        if self._texts is None or not len(codes):
            return np.ascontiguousarray(codes[:, 0])
        return self._texts.slots([self.coders.decoded(codes)])

    def _fitted(self, lanes: Ints, fit: tuple[int, int, int], summed: bool) -> Ints:
        """Numbers with the lanes that the sums of all values have."""
        if not summed:
            return lanes
        rest = refitted(lanes[:, 2:], fit, self._fit)
        return np.ascontiguousarray(np.column_stack((lanes[:, :2], rest)))

    def _counted(self, news: News, summed: bool) -> tuple[Ints, tuple[int, int, int]]:
        """What a mark of each value counts: one, its bytes, and the value itself."""
        codes = news.values
        plain = np.column_stack((np.ones(len(codes), np.int64), value_bytes(self.coders, codes)))
        if not summed:
            return plain, (0, 0, 0)
        values = self.coders.decoded(codes)
        sums = SumColumn.empty(Part("sum", self.part.types), len(values))
        sums.update(np.arange(len(values)), (values,))
        sums.settle()
        kinds = 0 if sums.specials is None else sums.specials.shape[1]
        fit = sums.base, sums.limbs.shape[1], kinds
        self._fit = _around(self._fit, fit)
        lanes = sums.limbs if sums.specials is None else np.hstack((sums.limbs, sums.specials))
        return np.column_stack((plain, lanes)), fit


def _around(one: tuple[int, int, int], other: tuple[int, int, int]) -> tuple[int, int, int]:
    """Lanes that hold those of both."""
    wide = [each for each in (one, other) if each[1]] or [one]
    low, high = min(each[0] for each in wide), max(each[0] + each[1] for each in wide)
    return low, high - low, max(one[2], other[2])
