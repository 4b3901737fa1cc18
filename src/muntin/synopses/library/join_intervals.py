"""Synopses of join results by when they expire: basic interval, interval and running joins.

A result expires with the older of its two rows. The parts of both windows cut results into
intervals by the part of their older row, so a join of windows of n parts each is read off the n
youngest intervals.

*Sliding Window Query Processing over Data Streams*, 8.3.2. The generalised form of the thesis
restricts the oldest intervals by one flag per side, which is exact for lengths that differ by one
part only. Here results are kept by how many parts younger the other row is, up to `general` parts:
exact for all lengths that differ by no more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Literal

from muntin.aggregates import Aggregate
from muntin.errors import AggregateError, WindowError

Kind = Literal["basic", "interval", "running"]


class JoinIntervals:
    """The results of joins of windows of up to b parts, by the part in which they expire.

    Parts are numbered in order of time, 0 first; `advance` opens the next one. A join of windows
    of n1 and n2 parts can be answered where they differ by at most `general`. `kind` says how
    intervals are added up: one by one (`basic`), by powers of two (`interval`), or as running
    totals (`running`, for aggregates with an inverse).

    >>> from muntin.aggregates import resolve
    >>> count = resolve("count", ()).algebra
    >>> joins = JoinIntervals(count, parts=4, general=2)
    >>> for _ in range(4):
    ...     joins.advance()
    >>> for left, right in [(0, 3), (3, 1), (2, 2), (3, 3)]:
    ...     joins.insert(left, right, count.lift(()))
    >>> joins.answer(4, 4), joins.answer(2, 2), joins.answer(3, 4), joins.answer(2, 4)
    (4, 2, 3, 3)
    """

    def __init__(
        self, aggregate: Aggregate, parts: int, general: int = 0, kind: Kind = "basic"
    ) -> None:
        if parts < 1:
            raise WindowError(f"a synopsis covers 1 part or more, not {parts}")
        if not 0 <= general < parts:
            raise WindowError(f"general must be 0 to {parts - 1}, not {general}")
        self.aggregate = aggregate
        self.parts = parts
        self.general = general
        self.opened = 0
        lines: dict[str, Callable[[Aggregate, int], _Line]] = {
            "basic": _Basic,
            "interval": _Dyadic,
            "running": _Running,
        }
        make = lines[kind]
        self._all = make(aggregate, parts)
        # By side, then by d: results whose row of that side is more than d parts younger than
        # the part in which they expire.
        self._younger = [[make(aggregate, parts) for _ in range(general)] for _ in range(2)]

    def __len__(self) -> int:
        """How many values are kept."""
        return sum(map(len, self._lines()))

    def advance(self) -> None:
        """Open a part; the oldest one leaves once there are more than b."""
        self.opened += 1
        for line in self._lines():
            line.advance()

    def insert(self, left: int, right: int, partial: Any) -> None:
        """Take in a result whose rows lie in these parts; none of them may have left."""
        oldest = max(self.opened - self.parts, 0)
        for part in (left, right):
            if not oldest <= part < self.opened:
                raise WindowError(f"part {part} is not one of {oldest} to {self.opened - 1}")
        expires = min(left, right)
        self._all.add(expires, partial)
        for side, part in enumerate((left, right)):
            for line in self._younger[side][: part - expires]:
                line.add(expires, partial)

    def answer(self, left: int, right: int) -> Any:
        """The answer over the join of the last `left` and `right` parts of either side."""
        for window in (left, right):
            if not 1 <= window <= self.parts:
                raise WindowError(f"windows have 1 to {self.parts} parts, not {window}")
        if abs(left - right) > self.general:
            raise WindowError(
                f"windows of {left} and {right} parts differ by more than {self.general}",
                hint=f"make the synopsis with general={abs(left - right)}",
            )
        shorter, longer = sorted((left, right))
        both = self._all.total(self.opened - shorter, self.opened)
        if shorter == longer:
            return self.aggregate.lower(both)
        # Between the two lengths the row of the shorter side must be younger than its window's
        # start, however long ago the other one came.
        restricted = self._younger[0 if left < right else 1]
        start = self.opened - shorter
        sofar = both
        for part in range(start - 1, max(self.opened - longer, 0) - 1, -1):
            line = restricted[start - 1 - part]
            sofar = self.aggregate.combine(line.total(part, part + 1), sofar)
        return self.aggregate.lower(sofar)

    def _lines(self) -> Iterator[_Line]:
        yield self._all
        for side in self._younger:
            yield from side


class _Line(ABC):
    """Partials by part, of which the oldest leave."""

    def __init__(self, aggregate: Aggregate, parts: int) -> None:
        self.aggregate = aggregate
        self.parts = parts
        self.opened = 0
        self._kept: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self._kept)

    @abstractmethod
    def advance(self) -> None:
        """Open a part."""

    @abstractmethod
    def add(self, part: int, partial: Any) -> None:
        """Take a partial into a part."""

    @abstractmethod
    def total(self, first: int, end: int) -> Any:
        """The parts from `first` to before `end`, combined."""

    def _add(self, key: Any, partial: Any) -> None:
        self._kept[key] = self.aggregate.combine(self._kept[key], partial)


class _Basic(_Line):
    """One value per part."""

    def advance(self) -> None:
        self._kept[self.opened] = self.aggregate.identity
        self.opened += 1
        self._kept.pop(self.opened - self.parts - 1, None)

    def add(self, part: int, partial: Any) -> None:
        self._add(part, partial)

    def total(self, first: int, end: int) -> Any:
        sofar = self.aggregate.identity
        for part in range(max(first, 0), end):
            sofar = self.aggregate.combine(sofar, self._kept[part])
        return sofar


class _Dyadic(_Line):
    """Values of one, two, four, ... parts at multiples of their length."""

    def advance(self) -> None:
        for level in range(self.parts.bit_length()):
            self._kept.setdefault((level, self.opened >> level), self.aggregate.identity)
        self.opened += 1
        oldest = self.opened - self.parts
        for key in [key for key in self._kept if (key[1] + 1) << key[0] <= oldest]:
            del self._kept[key]

    def add(self, part: int, partial: Any) -> None:
        for level in range(self.parts.bit_length()):
            self._add((level, part >> level), partial)

    def total(self, first: int, end: int) -> Any:
        sofar, at = self.aggregate.identity, max(first, 0)
        while at < end:
            level = self.parts.bit_length() - 1
            while at % (1 << level) or at + (1 << level) > end:
                level -= 1
            sofar = self.aggregate.combine(sofar, self._kept[level, at >> level])
            at += 1 << level
        return sofar


class _Running(_Line):
    """Totals from the beginning to each part: an insertion touches all younger ones."""

    def __init__(self, aggregate: Aggregate, parts: int) -> None:
        super().__init__(aggregate, parts)
        if not aggregate.invertible:
            raise AggregateError(
                f"running totals need an inverse, which {aggregate.name} does not have",
                hint="take kind='basic' or kind='interval'",
            )
        self._kept[-1] = aggregate.identity

    def advance(self) -> None:
        self._kept[self.opened] = self._kept[self.opened - 1]
        self.opened += 1
        self._kept.pop(self.opened - self.parts - 2, None)

    def add(self, part: int, partial: Any) -> None:
        for younger in range(part, self.opened):
            self._add(younger, partial)

    def total(self, first: int, end: int) -> Any:
        return self.aggregate.inverse(self._kept[end - 1], self._kept[max(first, 0) - 1])
