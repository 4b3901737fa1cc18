"""Queries that take turns at reading a window while it moves, in simulated time.

Groups of periodic queries read the parts of a window over and over; one-time queries come at a
steady rate and go first. One processor reads, a part at a time. A movement is due whenever the
buffer is full, and goes before everything else. What it does to those that read is the discipline.

*Sliding Window Query Processing over Data Streams*, 7.5.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Literal, get_args

import numpy as np

from muntin.errors import DataError, did_you_mean
from muntin.synopses.library.isolation import Scan, Window

# Serial: movements wait for the query that reads. WS: queries read the parts as of their start.
# LWS: Algorithm 7, movements abort queries that have read what leaves. TTU: Algorithm 8, which
# reads next what stays longest. Rescan: Algorithm 7 that reads again what leaves, and takes it out.
Discipline = Literal["serial", "ws", "lws", "ttu", "rescan"]


@dataclass(frozen=True)
class Load:
    """What is to be done, in seconds.

    Attributes:
        parts: The parts of the window.
        period: From one movement to the next.
        groups: Periodic queries that read together count as one.
        reading: To read a part of average size.
        finishing: To compute the answers of a group once it has read.
        moving: For a movement.
        one_time: From one one-time query to the next; None for none of them.
        deviation: How many times as large the largest part is as the smallest.
    """

    parts: int
    period: float
    groups: int
    reading: float = 0.0008
    finishing: float = 0.002
    moving: float = 0.001
    one_time: float | None = None
    deviation: float = 10.0


@dataclass
class Outcome:
    """What became of a load: a number per execution of a query."""

    seconds: float
    executions: int = 0
    aborts: int = 0
    staleness: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    responses: list[float] = field(default_factory=list)
    one_time_staleness: list[float] = field(default_factory=list)

    @property
    def abort_share(self) -> float:
        """Executions that were aborted, of all that began."""
        return self.aborts / max(self.aborts + self.executions, 1)

    @property
    def throughput(self) -> float:
        """Executions per second."""
        return self.executions / self.seconds

    def mean(self, of: Literal["staleness", "gaps", "responses", "one_time_staleness"]) -> float:
        """The mean of one of the lists; infinity of an empty one, since nothing was answered."""
        found: Sequence[float] = getattr(self, of)
        return mean(found) if found else float("inf")


def simulate(discipline: Discipline, load: Load, seconds: float, seed: int = 0) -> Outcome:
    """Let a load run for so many simulated seconds.

    >>> load = Load(parts=20, period=1.0, groups=4)
    >>> lws, ttu = (simulate(each, load, 60) for each in ("lws", "ttu"))
    >>> lws.aborts > ttu.aborts == 0
    True
    """
    if discipline not in get_args(Discipline):
        hint = did_you_mean(discipline, get_args(Discipline))
        raise DataError(f"there is no discipline {discipline!r}", hint=hint)
    times = [load.period, load.reading, load.deviation, seconds]
    if not all(each > 0 for each in [*times, *([] if load.one_time is None else [load.one_time])]):
        raise DataError("periods and times must be above 0")
    if load.groups < 1:
        raise DataError(f"a load has 1 group of queries or more, not {load.groups}")
    return _Run(discipline, load, seconds, seed).run()


@dataclass
class _Query:
    """A query under way, or between two executions."""

    scan: Scan
    asked: float = 0.0
    ended: float | None = None


class _Run:
    def __init__(self, discipline: Discipline, load: Load, seconds: float, seed: int) -> None:
        self.load, self.discipline = load, discipline
        self.outcome = Outcome(seconds)
        self.clock = 0.0
        self.window = Window(
            load.parts,
            "ttu" if discipline == "ttu" else "oldest",
            rescans=discipline == "rescan",
            pinned=discipline in ("serial", "ws"),
        )
        self.moved = {self.window.newest: 0.0}
        drawn = np.random.default_rng(seed)
        count = load.parts + int(seconds / load.period) + 2
        sizes = load.deviation ** drawn.uniform(-0.5, 0.5, count)
        self.costs: list[float] = (load.reading * sizes / sizes.mean()).tolist()
        self.periodic = deque(_Query(self.window.begin(load.parts)) for _ in range(load.groups))
        self.urgent: deque[_Query] = deque()
        self.asked = 0

    def run(self) -> Outcome:
        """Everything, until the time is up."""
        while self.clock < self.outcome.seconds:
            self._arrive()
            query = self.urgent[0] if self.urgent else self.periodic[0]
            if self.discipline == "serial":
                # Nothing moves until it has read all of the window as it is by now.
                query.scan.restart(self.window.newest)
                while not query.scan.is_done:
                    self._read(query)
            else:
                self._read(query)
            if query.scan.is_done:
                self._commit(query)
            elif not self.urgent:
                self.periodic.rotate(-1)
        self.outcome.aborts = self.window.aborts
        return self.outcome

    def _arrive(self) -> None:
        """Movements and one-time queries that are due by now."""
        while (self.window.newest - self.load.parts + 2) * self.load.period <= self.clock:
            before = self.window.reads
            self.window.move()
            self.clock += (self.window.reads - before) * self.load.reading
            due = (self.window.newest - self.load.parts + 1) * self.load.period
            self.moved[self.window.newest] = due
            self.clock += self.load.moving
        every = self.load.one_time
        while every is not None and (self.asked + 1) * every <= self.clock:
            self.asked += 1
            scan = self.window.begin(self.load.parts)
            self.urgent.append(_Query(scan, self.asked * every))

    def _read(self, query: _Query) -> None:
        self.window.step(query.scan)
        self.clock += self.costs[query.scan.last]

    def _commit(self, query: _Query) -> None:
        outcome, scan = self.outcome, query.scan
        self.clock += self.load.finishing
        reflected = scan.began if self.window.pinned else self.window.newest
        stale = self.clock - self.moved[reflected]
        if self.urgent:
            self.urgent.popleft()
            outcome.responses.append(self.clock - query.asked)
            outcome.one_time_staleness.append(stale)
            return
        outcome.executions += 1
        outcome.staleness.append(stale)
        if query.ended is not None:
            outcome.gaps.append(self.clock - query.ended)
        query.ended = self.clock
        query.scan = self.window.begin(self.load.parts)
        self.periodic.rotate(-1)
