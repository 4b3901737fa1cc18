"""The Slice Manager: the next edge of a changing set of windows."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from muntin.errors import WindowError
from muntin.windows.edges import (
    EdgeClass,
    Slicing,
    check_slicing,
    edges_between,
    next_edge,
    reduce_classes,
)
from muntin.windows.spec import Window

Key = TypeVar("Key")

# Entries of removed windows that may wait in the queue before it is rebuilt.
MAX_STALE = 64


class SliceManager:
    """Gives the edges of a set of windows in order, while windows come and go.

    Every edge given lies strictly after `position`, and moves it there. Windows with equal edges
    share them: the queue holds one entry per edge class, not per window. A window added on the way
    is aligned to the epoch like all others, so its first edge is its first after the position.
    Algorithm 1 of "On-the-Fly Sharing for Streamed Aggregation", with O(log n) per edge and n the
    number of classes; nothing is ever written out over a common period.

    Args:
        windows: The first windows; the same window may be added several times.
        slicing: How each window is cut, "panes", "pairs" or "cutty".
        position: Edges are given after this time.

    >>> manager = SliceManager([Window(18, 15), Window(12, 9)])
    >>> [manager.advance() for _ in range(5)]
    [6, 9, 12, 15, 18]
    """

    def __init__(
        self, windows: Iterable[Window] = (), slicing: Slicing = "pairs", position: int = 0
    ) -> None:
        check_slicing(slicing)
        self.slicing = slicing
        self._position = int(position)
        self._windows: Counter[Window] = Counter()
        self._users: Counter[EdgeClass] = Counter()
        # Each class that is queued has one entry, which may outlive the windows that wanted it.
        self._queue: list[tuple[int, EdgeClass]] = []
        self._queued: set[EdgeClass] = set()
        for window in windows:
            self.add(window)

    @property
    def position(self) -> int:
        """The time after which the next edge lies."""
        return self._position

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows in the order they came, each as often as it was added."""
        return tuple(self._windows.elements())

    @property
    def classes(self) -> tuple[EdgeClass, ...]:
        """The fewest edge classes that hold all edges."""
        return reduce_classes(self._users)

    def __len__(self) -> int:
        return self._windows.total()

    def add(self, window: Window) -> None:
        """Let a window contribute its edges after the position."""
        self._check_measure(window)
        for edge_class in window.edge_classes(self.slicing):
            self._users[edge_class] += 1
            if edge_class not in self._queued:
                self._push(edge_class)
        self._windows[window] += 1

    def remove(self, window: Window) -> None:
        """Drop the edges that this window alone contributed."""
        if window not in self._windows:
            raise WindowError(
                f"{window!r} is not among the windows", hint="remove a window once per add"
            )
        _decrement(self._windows, window)
        for edge_class in window.edge_classes(self.slicing):
            _decrement(self._users, edge_class)
        if len(self._queue) > 2 * len(self._users) + MAX_STALE:
            self._rebuild()

    def peek(self) -> int:
        """The next edge, without moving there."""
        self._drop_stale()
        if not self._queue:
            raise WindowError("there are no windows, so no edges", hint="add a window first")
        return self._queue[0][0]

    def advance(self) -> int:
        """Move to the next edge and return it; edges of several windows there count once."""
        edge = self.peek()
        self._position = edge
        while self._queue[0][0] == edge:
            _, edge_class = self._queue[0]
            if edge_class in self._users:
                heapq.heapreplace(self._queue, (edge + edge_class[0], edge_class))
            else:
                self._drop_stale()
        return edge

    def seek(self, t: int) -> None:
        """Move, forward or back, so that the next edge is the first at t or after.

        Costs the same however far it is.

        >>> manager = SliceManager([Window(18, 15)])
        >>> manager.seek(15_000_000_000_012)
        >>> manager.advance(), manager.advance()
        (15000000000012, 15000000000015)
        """
        self._position = int(t) - 1
        self._rebuild()

    def edges(self, lo: int, hi: int) -> npt.NDArray[np.int64]:
        """All edges in [lo, hi), sorted and without repeats; does not move the position.

        >>> SliceManager([Window(18, 15)]).edges(0, 28).tolist()
        [0, 12, 15, 27]
        """
        return edges_between(self.classes, lo, hi)

    def _push(self, edge_class: EdgeClass) -> None:
        heapq.heappush(self._queue, (next_edge(edge_class, self._position), edge_class))
        self._queued.add(edge_class)

    def _drop_stale(self) -> None:
        while self._queue and self._queue[0][1] not in self._users:
            self._queued.remove(heapq.heappop(self._queue)[1])

    def _rebuild(self) -> None:
        self._queue = [(next_edge(each, self._position), each) for each in self._users]
        self._queued = set(self._users)
        heapq.heapify(self._queue)

    def _check_measure(self, window: Window) -> None:
        other = next(iter(self._windows), window)
        if (other.measure, other.unit) != (window.measure, window.unit):
            raise WindowError(
                f"{window!r} does not measure what {other!r} does",
                hint="windows over one stream all use durations, plain numbers, or rows",
            )


def _decrement(counter: Counter[Key], key: Key) -> None:
    # Counter's own subtraction goes through all keys.
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
