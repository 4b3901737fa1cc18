"""What a benchmark is at, on standard error: its name, the time since its start, and the step."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rich.console import Console


@dataclass(frozen=True)
class Started:
    """A benchmark that runs, and the clock's time when it began."""

    name: str
    at: float

    @property
    def elapsed(self) -> str:
        """Minutes and seconds since the start."""
        minutes, seconds = divmod(int(time.time() - self.at), 60)
        return f"{minutes}:{seconds:02d}"


_running: list[Started] = []


def begin(started: Started | None) -> None:
    """Say which benchmark the steps that follow belong to; None for none.

    A process that works for a benchmark is told by its parent.
    """
    _running.clear()
    if started is not None:
        _running.append(started)


def running() -> Started | None:
    """The benchmark that runs."""
    return _running[0] if _running else None


def step(what: str) -> None:
    """Say what is done next; silent unless a benchmark runs.

    >>> step("256 queries")
    """
    started = running()
    if started is None:
        return
    # Made at each step: standard error may have been redirected since.
    console = Console(stderr=True)
    line = f"{started.name} {started.elapsed} {what}"
    console.print(line, highlight=False, markup=False, soft_wrap=True)
