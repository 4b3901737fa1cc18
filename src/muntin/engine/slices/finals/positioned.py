"""Sealed entries that are found by their positions, wherever the log of them lies."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.by_part import from_arrow
from muntin.aggregates.columns.column import PartColumn
from muntin.engine.slices.array_pack import Arrays, as_bytes
from muntin.engine.slices.stretches import Trail
from muntin.engine.wire import from_ipc, to_ipc

# The name of entries in a stretch: a batch of Arrow's, in its own format.
ARROW = "arrow"


class Positioned(ABC):
    """The accumulators of one part's sealed entries, in memory, by position.

    Stretches of a log have them as Arrow has them, so that codes of strings may move. They are read
    whole when a log is, and written once.
    """

    technique = ""

    def __init__(self, part: Part) -> None:
        self.part = part

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of all that is kept."""

    def resize(self, room: int, places: int, *, leaps: bool) -> None:  # noqa: B027
        """Lists make room by themselves."""

    def shift(self, count: int, size: int) -> None:  # noqa: B027
        """Positions stay as they are; what is forgotten leaves when others come."""

    def drop(self, count: int) -> None:  # noqa: B027
        """Nothing is read where it lies in files."""

    def append(self, trail: Trail, at: int, places: Ints, column: PartColumn) -> int:
        """Take in sealed entries from position ``at`` on."""
        self.forget(trail.begin)
        if places.size:
            self.take(at, places.astype(np.int64), column)
        return 0

    @abstractmethod
    def forget(self, begin: int) -> None:
        """Let go of entries before a position, or of some."""

    @abstractmethod
    def take(self, at: int, places: Ints, column: PartColumn) -> None:
        """Take in entries of places from a position on, which is behind all others."""

    @abstractmethod
    def between(self, first: int, last: int) -> PartColumn:
        """The accumulators of the entries from one position to another."""

    def stretch(self, first: int, last: int) -> Arrays:
        """The entries from one position to another, as arrays."""
        data = to_ipc(self.between(first, last).to_arrow())
        return {ARROW: np.frombuffer(data, np.uint8)}

    def keep(self, first: int, places: Ints, arrays: Arrays) -> None:
        """Take in what `stretch` made, behind those kept before."""
        column = from_arrow(self.part, from_ipc(as_bytes(arrays[ARROW])))
        self.take(first, places.astype(np.int64), column)


def united_entries(stretches: list[Ints]) -> Ints:
    """The entries of several stretches in one."""
    batches = [from_ipc(as_bytes(each)) for each in stretches]
    table = pa.Table.from_batches(batches).combine_chunks()
    (whole,) = table.to_batches() or [table.schema.empty_table().to_batches()[0]]
    return np.frombuffer(to_ipc(whole), np.uint8)
