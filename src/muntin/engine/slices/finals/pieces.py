"""What is kept of the sealed entries of a part: totals, extremes, or the pieces themselves."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin._typing import Ints
from muntin.aggregates.algebra import USER, Part
from muntin.aggregates.columns.by_part import empty
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.columns.objects import ObjectColumn
from muntin.engine.slices.finals.extremes import Extremes
from muntin.engine.slices.finals.positioned import Positioned
from muntin.engine.slices.finals.totals import Totals
from muntin.engine.slices.stretches import Trail
from muntin.engine.slices.values.blocks import SealedValues
from muntin.engine.slices.values.last_seen import LastSeen

Int32s = npt.NDArray[np.int32]


class Objects:
    """Python partials of sealed entries, in order."""

    technique = ""

    def __init__(self, part: Part) -> None:
        self.part = part
        self._partials: list[object] = []

    @property
    def nbytes(self) -> int:
        """A pointer an entry; what the partials hold is not counted."""
        return 8 * len(self._partials)

    def resize(self, room: int, places: int, *, leaps: bool) -> None:
        """Lists make room by themselves."""

    def shift(self, count: int, size: int) -> None:
        """Forget the first ``count`` entries."""
        del self._partials[:count]

    def drop(self, count: int) -> None:
        """Objects lie in no files."""

    def append(self, trail: Trail, at: int, places: Ints, column: PartColumn) -> int:
        """Take in sealed entries."""
        assert isinstance(column, ObjectColumn)
        self._partials.extend(column.partials)
        return 0

    def raw(self, places: Int32s, skip: int) -> PartColumn:
        """The entries themselves, behind the first ``skip`` ones."""
        return ObjectColumn(self.part, self._partials[skip : skip + places.size])


class Pieces(Positioned):
    """Accumulators of sealed entries that can only be combined, in order, as they were sealed."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        # Each with the position of its first entry.
        self._pieces: list[tuple[int, PartColumn]] = []

    @property
    def nbytes(self) -> int:
        """Bytes of all accumulators."""
        return sum(piece.nbytes for _, piece in self._pieces)

    def forget(self, begin: int) -> None:
        """Let go of pieces before a position."""
        self._pieces = [(at, piece) for at, piece in self._pieces if at + len(piece) > begin]

    def take(self, at: int, places: Ints, column: PartColumn) -> None:
        """Take in entries of places from a position on, which is behind all others."""
        self._pieces.append((at, column))

    def between(self, first: int, last: int) -> PartColumn:
        """The accumulators of the entries from one position to another."""
        found = empty(self.part, last - first)
        for at, piece in self._pieces:
            cells = np.arange(at, at + len(piece)) - first
            cells[cells >= last - first] = -1
            if cells.size and cells.max() >= 0:
                found.merge(np.maximum(cells, -1), piece)
        return found


def column_of(part: Part) -> Totals | Extremes | Objects | Pieces | SealedValues:
    """What is kept of a part's sealed entries."""
    if part.valued:
        return LastSeen(part) if part.kind == "set" else SealedValues(part)
    if part.invertible:
        return Totals(part)
    if part.selective:
        return Extremes(part)
    return Objects(part) if part.kind.startswith(USER) else Pieces(part)


def is_plain(part: Part) -> bool:
    """Whether what is kept of a part's entries can be written once, and read by others."""
    column = column_of(part)
    if isinstance(column, Extremes):
        return not column.moves
    return isinstance(column, Totals | Positioned)
