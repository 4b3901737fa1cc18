"""Benchmarks: seeded workloads, measured loops, and reports of ratios."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from muntin.bench.report import Report
from muntin.errors import MuntinError, did_you_mean

# Each is a module with a function `run`, imported when asked for.
NAMES = ("aggregators", "local", "optimizer", "sharing", "spark")


def run(name: str) -> Report:
    """Run one benchmark by name."""
    if name not in NAMES:
        raise MuntinError(f"there is no benchmark {name!r}", hint=did_you_mean(name, NAMES))
    runner: Callable[[], Report] = import_module(f"muntin.bench.{name}").run
    return runner()


__all__ = ["NAMES", "Report", "run"]
