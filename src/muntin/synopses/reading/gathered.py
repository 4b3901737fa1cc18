"""What a version has for the rows of an answer: their parts, gathered from slices and cells."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from muntin._compiled import compilations
from muntin._typing import Bools, Ints
from muntin.aggregates.columns.by_part import empty
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.columns.counts import CountColumn
from muntin.errors import QuestionError
from muntin.synopses.fit import Fit
from muntin.synopses.keeps.block import FEW, Block
from muntin.synopses.keeps.replica import Version
from muntin.synopses.reading.groups import AnswerRows

# Entries that a question of many groups reads at once.
_MOST = 1 << 24
# A stretch of slices, and the cells of them that are taken.
Piece = tuple[int, int, Bools]
Kind = Literal["outer", "inner", "border"]


@dataclass
class Budget:
    """How long a question may take, and how many rows its answer may have.

    Kernels that a machine compiles for their first use take seconds, and are none of a question's
    doing: its time begins anew when there was one.
    """

    seconds: float
    rows: int
    ends: float
    compiled: int

    @classmethod
    def of(cls, seconds: float, rows: int) -> Budget:
        """A budget from now on."""
        return cls(seconds, rows, time.perf_counter() + seconds, compilations())

    def check(self) -> None:
        """Refuse to go on once the time is up."""
        if self.compiled != compilations():
            self.compiled, self.ends = compilations(), time.perf_counter() + self.seconds
        if time.perf_counter() > self.ends:
            raise QuestionError(
                f"the question took longer than its {self.seconds:g} seconds",
                hint="ask for fewer groups or a shorter RANGE, or give it more time with timeout=",
            )

    def check_rows(self, rows: int) -> None:
        """Refuse an answer of too many rows."""
        if rows > self.rows:
            raise QuestionError(
                f"the answer would have {rows:,} rows, but at most {self.rows:,} are allowed",
                hint="add LIMIT or a condition, or allow more with max_rows=",
            )


class Window(NamedTuple):
    """The slices of a window, by number: all that it touches, and those wholly inside it.

    Slices are taken from the first number to the last, which is not among them.
    """

    outer: tuple[int, int]
    inner: tuple[int, int]

    @property
    def border(self) -> list[tuple[int, int]]:
        """The slices that are touched and not inside."""
        if self.inner[0] >= self.inner[1]:
            return [self.outer]
        pairs = [(self.outer[0], self.inner[0]), (self.inner[1], self.outer[1])]
        return [pair for pair in pairs if pair[0] < pair[1]]


NOTHING = Window((0, 0), (0, 0))


class _Place(NamedTuple):
    """Where a block has entries of a piece: the answer's rows, and a range of entries for each."""

    block: Block
    rows: Ints
    starts: Ints
    ends: Ints


class Gathered:
    """The parts of an answer's rows, each gathered once.

    Pieces are known by their identity: lists of them stay as long as this does.
    """

    def __init__(
        self, version: Version, fit: Fit, rows: AnswerRows, window: Window, budget: Budget
    ) -> None:
        self._version = version
        self._fit = fit
        self._rows = rows
        self._window = window
        self._budget = budget
        chosen = rows.chosen
        is_single = chosen is not None and chosen.size == 1 and rows.size == 1
        self._single = int(chosen[0]) if is_single and chosen is not None else None
        self._pieces: dict[tuple[Kind, int], list[Piece]] = {}
        self._runs: dict[tuple[int, int], Ints] = {}
        self._directed: set[int] = set()
        self._places: dict[tuple[int, int, int], list[_Place]] = {}
        self._gathered: dict[tuple[int, int], PartColumn] = {}

    def pieces(self, kind: Kind, condition: int) -> list[Piece]:
        """The pieces of a condition: those touched, those inside, or those in between."""
        found = self._pieces.get((kind, condition))
        if found is not None:
            return found
        wanted, window = self._fit.conditions[condition], self._window
        if kind == "outer":
            found = [(*window.outer, wanted.outer)]
        elif kind == "inner":
            found = [(*window.inner, wanted.inner)]
        else:
            found = [(low, high, wanted.outer) for low, high in window.border]
            if window.inner[0] < window.inner[1] and not wanted.is_exact:
                found.append((*window.inner, wanted.outer & ~wanted.inner))
        self._pieces[kind, condition] = found
        return found

    def part(self, column: int, pieces: list[Piece]) -> PartColumn:
        """One part of every row of the answer, from the slices and cells of some pieces."""
        key = column, id(pieces)
        found = self._gathered.get(key)
        if found is None and id(pieces) not in self._directed:
            self._directed.add(id(pieces))
            self._direct(pieces)
            found = self._gathered.get(key)
        if found is None:
            found = self._gathered[key] = self._gather(column, pieces)
            self._budget.check()
        return found

    def counts(self, pieces: list[Piece]) -> Ints:
        """How many rows of the stream went into each row of the answer."""
        found = self.part(0, pieces)
        assert isinstance(found, CountColumn)
        return found.counts

    def _direct(self, pieces: list[Piece]) -> None:
        """Read the parts that a directory has, all of them at once."""
        directory = self._version.directory
        # So many entries are read block by block, with a look at the time after each.
        is_long = self._version.entries > _MOST and self._rows.size > 1
        if directory is None or not pieces or is_long:
            return
        rows, places = self._rows, self._fit.places
        taken = (rows.chosen, rows.numbers, rows.size)
        for low, high, wanted in pieces:
            found = directory.gather(places, wanted, taken, (low, high))
            for column, part in zip(places.tolist(), found, strict=True):
                if part is None:
                    continue
                earlier = self._gathered.setdefault((column, id(pieces)), part)
                if earlier is not part:
                    earlier.merge(np.arange(rows.size), part)
            self._budget.check()

    def _gather(self, column: int, pieces: Sequence[Piece]) -> PartColumn:
        if self._single is not None and len(pieces) == 1:
            shared = self._shared(self._single, column, pieces[0])
            if shared is not None:
                return shared
        total = empty(self._fit.kept.node.accumulators[column].part, self._rows.size)
        for piece in pieces:
            for place in self._places_of(piece):
                total.merge(place.rows, place.block.slide(column)(place.starts, place.ends))
                self._budget.check()
        return total

    def _shared(self, group: int, column: int, piece: Piece) -> PartColumn | None:
        """An extreme of all slices from one on, as earlier questions left it."""
        low, high, wanted = piece
        extremes, latest = self._version.shared, self._version.latest
        if extremes is None or high <= latest.newest or low > latest.newest:
            return None
        return extremes.one_cell(latest, column, group, wanted, low)

    def _places_of(self, piece: Piece) -> list[_Place]:
        low, high, wanted = piece
        key = low, high, id(wanted)
        found = self._places.get(key)
        if found is None:
            found = []
            for block in self._version.blocks if low < high else ():
                if block.last < low or block.first >= high:
                    continue
                runs, starts, ends = self._found(block, wanted, low, high)
                if runs.size:
                    found.append(_Place(block, self._rows.of(block.groups[runs]), starts, ends))
            self._places[key] = found
        return found

    def _found(self, block: Block, wanted: Bools, low: int, high: int) -> tuple[Ints, Ints, Ints]:
        chosen = self._rows.chosen
        if chosen is not None and chosen.size <= FEW:
            return block.found(chosen, wanted, low, high)
        return block.ranges(self._of(block, wanted), low, high)

    def _of(self, block: Block, wanted: Bools) -> Ints:
        key = block.number, id(wanted)
        if key not in self._runs:
            self._runs[key] = block.runs(self._rows.chosen, wanted)
        return self._runs[key]
