"""Isolation of queries from a window that moves while they read it: a model, to be simulated.

A window has n parts in a ring; movement T_j overwrites part j mod n and commits at once. A query
reads the parts that it needs one by one, and movements may come in between. The engine's own
questions never meet this: they read immutable versions. This is the model that they are checked
against.

*Sliding Window Query Processing over Data Streams*, chapter 7.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from muntin.errors import DataError

# Reads a part: `r3`. Writes or commits a movement: `w5`, `c5`. Commits the query: `cQ`.
Operation = str
Order = Literal["oldest", "ttu"]


@dataclass(frozen=True)
class Isolation:
    """What a history is worth.

    Attributes:
        before: Movements that precede the query in the serialisation graph.
        after: Movements that follow it.
        reads: The movements whose parts were read, in order.
        ws: Window-serialisable: the parts are those after one movement.
        lws: Latest-window-serialisable: those after the last one before the query's commit.
        cps: Conflicting operations are in the order of the commits.
        dirty: A part was read before its movement had committed.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    reads: tuple[int, ...]
    ws: bool
    lws: bool
    cps: bool
    dirty: bool


def classify(history: str, parts: int) -> Isolation:
    """The isolation of a history of one query over all parts of a window.

    >>> classify("r0 w5 c5 w6 c6 r1 r2 r3 r4 cQ", parts=5).ws
    False
    >>> latest = classify("w5 c5 r0 w6 c6 r1 r2 r3 r4 cQ", parts=5)
    >>> latest.reads, latest.lws
    ((2, 3, 4, 5, 6), True)
    """
    if parts < 1:
        raise DataError(f"a window has 1 part or more, not {parts}")
    steps = _steps(history, parts)
    moved = [number for kind, number in steps if kind == "w"]
    first = min(moved, default=parts)
    holds = {number % parts: number for number in range(first - parts, first)}
    reads: dict[int, int] = {}
    latest = first - 1
    for kind, number in steps:
        if kind == "w":
            holds[number % parts] = number
        elif kind == "r":
            reads[number] = holds[number]
        elif number == _QUERY:
            latest = max(holds.values())
    seen = tuple(sorted(reads.values()))
    at = {step: place for place, step in enumerate(steps)}
    before = tuple(j for j in moved if at["r", j % parts] > at["w", j])
    after = tuple(j for j in moved if j not in before)
    ended = at["c", _QUERY]
    ws = seen == tuple(range(seen[0], seen[0] + parts))
    return Isolation(
        before,
        after,
        seen,
        ws,
        ws and seen[-1] == latest,
        all(at["c", j] < ended for j in before) and all(at["c", j] > ended for j in after),
        any(at["c", j] > at["r", j % parts] for j in before),
    )


_QUERY = -1


def _steps(history: str, parts: int) -> list[tuple[str, int]]:
    steps = []
    for word in history.split():
        kind, name = word[:1], word[1:]
        if kind not in ("r", "w", "c") or not (name.isdigit() or word == "cQ"):
            raise DataError(
                f"{word!r} is not a step of a history",
                hint="write r0 for a read, w5 and c5 for a movement, cQ for the query's commit",
            )
        steps.append((kind, _QUERY if name == "Q" else int(name)))
    wanted = {("r", part) for part in range(parts)} | {("c", _QUERY)}
    wanted |= {("c", number) for kind, number in steps if kind == "w"}
    missing = wanted - set(steps)
    if missing or len(set(steps)) < len(steps):
        raise DataError(
            f"{history!r} does not read each of {parts} parts once and commit all that it begins"
        )
    return steps


class Scan:
    """A query that is being executed: which parts of its window it has read, and which it has not.

    Attributes:
        size: How many of the youngest parts it needs.
        order: In which order it reads them: `ttu` reads next what stays longest, which is the
            part with the highest time to update.
        began: The newest movement when it began, or began anew.
        last: The movement whose part it read last.
    """

    def __init__(self, size: int, order: Order, newest: int) -> None:
        self.size = size
        self.order: Order = order
        self.last = newest
        self._read: dict[int, None] = {}
        self.restart(newest)

    @property
    def read(self) -> tuple[int, ...]:
        """The movements whose parts it has read, in order."""
        return tuple(self._read)

    @property
    def is_done(self) -> bool:
        """Whether all parts have been read."""
        return not self._waiting

    def restart(self, newest: int) -> None:
        """Read everything anew."""
        self.began = newest
        self._read.clear()
        self._waiting = deque(range(newest - self.size + 1, newest + 1))

    def step(self) -> None:
        """Read the next part."""
        self.last = self._waiting.popleft() if self.order == "oldest" else self._waiting.pop()
        self._read[self.last] = None

    def move(self, newest: int) -> bool:
        """Take a movement in: whether it takes a part out of the window that was read."""
        self._waiting.append(newest)
        gone = newest - self.size
        if gone in self._read:
            return True
        self._waiting.popleft()
        return False

    def forget(self, part: int) -> None:
        """Take out what was read of a part that has left."""
        del self._read[part]


class Window:
    """A window of n parts that moves, and the scans over it (Algorithms 7 and 8).

    A movement that takes a part which a scan has read, out of that scan's window, aborts the
    scan, or has it read that part's old copy once more and take it out (`rescans`). What a scan
    returns is therefore the window as of its end. Scans that are `pinned` read the parts that
    were there when they began, whatever moves: what they return is the window as of their start.

    >>> window = Window(parts=5)
    >>> scan = window.begin(3)
    >>> window.step(scan); aborted = window.move(); window.step(scan); window.step(scan)
    >>> scan.read, window.aborts
    ((4, 5, 3), 0)

    Reading what stays longest, one movement never aborts a scan.
    """

    def __init__(
        self, parts: int, order: Order = "ttu", *, rescans: bool = False, pinned: bool = False
    ) -> None:
        if parts < 1:
            raise DataError(f"a window has 1 part or more, not {parts}")
        self.parts = parts
        self.order: Order = order
        self.newest = parts - 1
        self.rescans = rescans
        self.pinned = pinned
        self.aborts = 0
        self.reads = 0
        self._scans: list[Scan] = []

    def begin(self, size: int) -> Scan:
        """A scan over the `size` youngest parts."""
        if not 1 <= size <= self.parts:
            raise DataError(f"a scan reads 1 to {self.parts} parts, not {size}")
        scan = Scan(size, self.order, self.newest)
        self._scans.append(scan)
        return scan

    def move(self) -> list[Scan]:
        """The next movement: the scans that it aborts, which begin anew."""
        self.newest += 1
        aborted = []
        for scan in () if self.pinned else self._scans:
            if not scan.move(self.newest):
                continue
            if self.rescans:
                self.reads += 1
                scan.forget(self.newest - scan.size)
            else:
                scan.restart(self.newest)
                self.aborts += 1
                aborted.append(scan)
        return aborted

    def step(self, scan: Scan) -> None:
        """Read one part; a scan that has all of them commits."""
        self.reads += 1
        scan.step()
        if scan.is_done:
            self._scans.remove(scan)


def is_aborted(schedule: Iterable[str], parts: int, size: int, order: Order) -> bool:
    """Whether a schedule of reads (`R`) and movements (`W`) aborts a scan in this order.

    >>> is_aborted("RWR", 4, 2, "oldest"), is_aborted("RWR", 4, 2, "ttu")
    (True, False)
    """
    window = Window(parts, order)
    scan = window.begin(size)
    for step in schedule:
        if step == "R":
            window.step(scan)
        elif not scan.is_done and window.move():
            return True
        if scan.is_done:
            return False
    return False


def must_abort(schedule: Sequence[str], size: int) -> bool:
    """Whether no order of reads survives a schedule.

    After its i-th read a scan survives as many movements as parts are left to be read: more
    would take out a part that it has.

    >>> must_abort("RWR", 2), must_abort("RWWR", 2)
    (False, True)
    """
    reads = [at for at, step in enumerate(schedule) if step == "R"][:size]
    for place, at in enumerate(reads):
        moves = sum(step == "W" for step in schedule[at : reads[-1]])
        if moves > size - 1 - place:
            return True
    return False
