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


class Pieces(Objects):
    """Accumulators of sealed entries that can only be combined, in order, as they were sealed."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self._pieces: list[PartColumn] = []

    @property
    def nbytes(self) -> int:
        """Bytes of all accumulators."""
        return sum(piece.nbytes for piece in self._pieces)

    def shift(self, count: int, size: int) -> None:
        """Forget the first ``count`` entries."""
        while count and count >= len(self._pieces[0]):
            count -= len(self._pieces.pop(0))
        if count:
            kept = np.arange(count, len(self._pieces[0]))
            self._pieces[0] = self._pieces[0].take(kept)

    def append(self, trail: Trail, at: int, places: Ints, column: PartColumn) -> int:
        """Take in sealed entries."""
        if len(column):
            self._pieces.append(column)
        return 0

    def raw(self, places: Int32s, skip: int) -> PartColumn:
        """The entries themselves, behind the first ``skip`` ones."""
        found, at = empty(self.part, places.size), -skip
        for piece in self._pieces:
            cells = np.arange(at, at + len(piece))
            found.merge(np.maximum(cells, -1), piece)
            at += len(piece)
        return found


def column_of(part: Part) -> Totals | Extremes | Objects | SealedValues:
    """What is kept of a part's sealed entries."""
    if part.valued:
        return LastSeen(part) if part.kind == "set" else SealedValues(part)
    if part.invertible:
        return Totals(part)
    if part.selective:
        return Extremes(part)
    return Objects(part) if part.kind.startswith(USER) else Pieces(part)


def is_plain(part: Part) -> bool:
    """Whether what is kept of a part's entries is numbers that stay as they are."""
    column = column_of(part)
    return isinstance(column, Totals) or (isinstance(column, Extremes) and not column.moves)
