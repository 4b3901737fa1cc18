"""The positions of the partials held, oldest first."""

from __future__ import annotations

import numpy as np

from muntin.aggregators.contract import Ints
from muntin.aggregators.inputs import whole_number
from muntin.errors import DataError

_SMALLEST = 16


class Positions:
    """A queue of positions that do not fall, searched by halving.

    >>> positions = Positions()
    >>> for position in (10, 12, 17):
    ...     positions.append(position)
    >>> positions.since(12), positions.before(13)
    (2, 2)
    """

    def __init__(self, held: Ints | None = None) -> None:
        held = np.zeros(0, np.int64) if held is None else held
        self._items = np.zeros(max(_SMALLEST, 2 * len(held)), np.int64)
        self._items[: len(held)] = held
        self._start, self._end = 0, len(held)

    def held(self) -> Ints:
        """The positions, oldest first."""
        return self._items[self._start : self._end]

    def append(self, position: int) -> None:
        """Add the newest position."""
        position = whole_number(position, "position")
        if self._end > self._start and position < self._items[self._end - 1]:
            raise DataError(
                f"position {position} comes after {self._items[self._end - 1]}",
                hint="insert partials in the order of their positions",
            )
        if self._end == len(self._items):
            # Moves or doubles, so that each position is copied a few times at most.
            fresh = Positions(self.held())
            self._items, self._start, self._end = fresh._items, 0, fresh._end
        self._items[self._end] = position
        self._end += 1

    def before(self, position: int) -> int:
        """How many lie before `position`."""
        return int(np.searchsorted(self.held(), whole_number(position, "position")))

    def since(self, position: int) -> int:
        """How many lie at `position` or after it."""
        return self._end - self._start - self.before(position)

    def drop(self, count: int) -> None:
        """Forget the oldest `count`."""
        self._start += count

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._items.nbytes
