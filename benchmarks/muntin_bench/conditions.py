"""Under what a benchmark ran: the machine, the versions, when, and how much was measured."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_ALWAYS = ("muntin", "numba", "numpy", "polars", "pyarrow")
JAVA = "java"


@dataclass(frozen=True)
class Conditions:
    """What a report has to say besides figures; `date` is in UTC, `seconds` is the whole run."""

    machine: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    quick: bool = False
    date: str = ""
    seconds: float = 0.0

    @property
    def size(self) -> str:
        """How much was measured."""
        return "quick" if self.quick else "full"


def conditions(
    uses: Iterable[str] = (), *, quick: bool = False, seconds: float = 0.0
) -> Conditions:
    """The conditions at this moment; ``uses`` are packages, or ``java``, beyond our own.

    >>> found = conditions(["duckdb"], quick=True)
    >>> found.size, sorted(found.versions)[:2]
    ('quick', ['duckdb', 'muntin'])
    """
    date = datetime.now(UTC).isoformat(timespec="seconds")
    versions = {name: _version(name) for name in (*_ALWAYS, *uses)}
    return Conditions(machine(), versions, quick, date, seconds)


@cache
def machine() -> dict[str, str]:
    """Processor, cores that this process may use, memory, system and Python.

    >>> list(machine())
    ['cpu', 'cores', 'memory', 'system', 'python']
    """
    return {
        "cpu": _cpu(),
        "cores": str(_cores()),
        "memory": _memory(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def _cpu() -> str:
    """The model, which only Linux keeps in a file."""
    told = Path("/proc/cpuinfo")
    if told.is_file():
        for line in told.read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    if platform.system() == "Darwin":
        asked = ["sysctl", "-n", "machdep.cpu.brand_string"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.strip()
    return platform.processor() or platform.machine()


def _cores() -> int:
    # A container or `taskset` may leave fewer than the machine has.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory() -> str:
    try:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return "unknown"
    return f"{size / 2**30:.0f} GiB"


def _version(name: str) -> str:
    if name == JAVA:
        from muntin.spark.environment.java import find_java  # noqa: PLC0415 - only some benchmarks use it

        java = find_java()
        return java.version if java else "not found"
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
