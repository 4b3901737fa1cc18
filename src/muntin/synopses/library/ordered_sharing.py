"""OrderedSharing: the largest (or least) value of many window sizes, from one ordered list."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable
from typing import Literal, NamedTuple

from muntin.errors import DataError, WindowError


class Node(NamedTuple):
    """The answer of one size, and the time of the row that gave it."""

    size: int
    answer: float
    time: int


class OrderedSharing:
    """Maxima (or minima) over windows of registered sizes, shared where they coincide.

    A window of size s at time `now` holds the rows with `now - s < time <= now`. Answers do not
    fall with the size, so one list is ordered by both, and a size that is not in it takes the
    next larger one's answer if that row lies in its own window. An insertion takes the search of
    a list; a lookup too where an answer is still good, else it looks through its window once, for
    all smaller sizes as well.

    >>> shared = OrderedSharing([2, 3, 5])
    >>> for time, value in enumerate([9, 1, 4, 2], start=1):
    ...     shared.insert(value, time)
    >>> shared.lookup(5), shared.lookup(3), shared.lookup(2), shared.scans
    (9, 4, 4, 1)

    *Aggregate Sharing in Stream Databases*, section 6, with its fault mended: the report keeps
    the time at which an answer was computed, and goes on giving it after its row has left. Here
    a node has the time of its row.
    """

    def __init__(self, sizes: Iterable[int], kind: Literal["max", "min"] = "max") -> None:
        self.sizes = sorted(set(sizes))
        if not self.sizes or self.sizes[0] < 1:
            raise WindowError(f"window sizes must be 1 or more, not {self.sizes}")
        self._sign = 1 if kind == "max" else -1
        self._nodes: list[Node] = []  # by size, and so by answer
        self._rows: deque[tuple[int, float]] = deque()  # of the largest window
        self.now: int | None = None
        self.scans = 0
        self.scanned_rows = 0

    @property
    def nodes(self) -> list[Node]:
        """What is kept, by size."""
        return [node._replace(answer=self._sign * node.answer) for node in self._nodes]

    def insert(self, value: float, time: int) -> None:
        """Take in a row; times do not fall."""
        if math.isnan(value):
            raise DataError("OrderedSharing takes values that have an order, which NaN has not")
        if self.now is not None and time < self.now:
            raise DataError(f"rows must come in order of time, but {time} came after {self.now}")
        self.now = time
        signed = self._sign * value
        self._rows.append((time, signed))
        while self._rows[0][0] <= time - self.sizes[-1]:
            self._rows.popleft()
        below = bisect_right(self._nodes, signed, key=lambda node: node.answer)
        # The largest size whose answer is still good and not above the new value takes it. Smaller
        # ones have the same answer then, and larger ones with a smaller answer are no good.
        at = below - 1
        while at >= 0 and self._nodes[at].time <= time - self._nodes[at].size:
            at -= 1
        kept = [Node(self._nodes[at].size, signed, time)] if at >= 0 else []
        self._nodes[:below] = kept

    def lookup(self, size: int) -> float | None:
        """The answer of a registered size at the time of the last row; None if there is no row."""
        if size not in self.sizes:
            raise WindowError(
                f"a window of size {size} is not registered", hint=f"sizes are {self.sizes}"
            )
        if self.now is None:
            return None
        at = bisect_left(self._nodes, size, key=lambda node: node.size)
        if at < len(self._nodes) and self._nodes[at].time > self.now - size:
            return self._sign * self._nodes[at].answer
        return self._sign * self._scan(size)

    def _scan(self, size: int) -> float:
        """Look through a window from its youngest row on; smaller sizes are answered on the way."""
        self.scans += 1
        assert self.now is not None
        found: list[Node] = []
        best: tuple[float, int] = (self._rows[-1][1], self._rows[-1][0])
        sizes = iter([each for each in self.sizes if each <= size])
        waiting = next(sizes, None)
        for time, value in reversed(self._rows):
            while waiting is not None and time <= self.now - waiting:
                found.append(Node(waiting, *best))
                waiting = next(sizes, None)
            if waiting is None:
                break
            self.scanned_rows += 1
            # Of equal values the youngest is good for the longest time, and came first.
            if value > best[0]:
                best = (value, time)
        if waiting is not None:
            found += [Node(each, *best) for each in (waiting, *sizes)]
        answer = found[-1].answer
        larger = [node for node in self._nodes if node.size > size and node.answer >= answer]
        self._nodes = [*found, *larger]
        return answer
