"""Checks what Spark needs on this machine, before Spark fails in words of its own."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from muntin._cache import VARIABLE, cache_folder, is_writable
from muntin.spark.environment.java import OLDEST, REMEDY, find_java
from muntin.spark.environment.settings import kernel_cache

_GIGABYTE = 1 << 30
_ENOUGH = 2 * _GIGABYTE
_OLDEST_PYTHON = (3, 11)


def doctor() -> Findings:
    """Everything Spark needs, each with what was found and what to do.

    Nothing is started or changed, apart from the user's cache folder being made.

    >>> [finding.check for finding in doctor()][:2]
    ['Python', 'Java']
    """
    return Findings(
        [
            _check_python(),
            _check_java(),
            *check_packages(),
            _check_interpreter(),
            _check_connect(),
            _check_cache(),
            _check_kernels(),
            _check_memory(),
        ]
    )


def _check_python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < _OLDEST_PYTHON:
        return Finding("Python", "problem", version, "use Python 3.11 or newer")
    return Finding("Python", "ok", f"{version} ({sys.executable})")


def _check_java() -> Finding:
    java = find_java()
    if java is None:
        home = os.environ.get("JAVA_HOME")
        found = f"none at JAVA_HOME={home}, none on PATH" if home else "none"
        return Finding("Java", "problem", found, REMEDY)
    if not java.is_usable:
        return Finding("Java", "problem", f"{java}, but Spark needs {OLDEST} or newer", REMEDY)
    return Finding("Java", "ok", str(java))


def _check_interpreter() -> Finding:
    chosen = os.environ.get("PYSPARK_PYTHON")
    if not chosen:
        return Finding("PYSPARK_PYTHON", "ok", "not set: muntin.spark.session() sets it")
    if Path(chosen) == Path(sys.executable):
        return Finding("PYSPARK_PYTHON", "ok", chosen)
    found = f"{chosen}, but this is {sys.executable}"
    remedy = "unset it, unless it is the path of Python on the workers of a cluster"
    return Finding("PYSPARK_PYTHON", "warning", found, remedy)


def _check_connect() -> Finding:
    chosen = [name for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED") if name in os.environ]
    if os.environ.get("SPARK_API_MODE", "").lower() == "connect":
        chosen.append("SPARK_API_MODE")
    if chosen:
        found = f"{', '.join(chosen)} asks for Spark Connect, which Muntin cannot run on"
        return Finding("Spark Connect", "problem", found, f"unset {', '.join(chosen)}")
    return Finding("Spark Connect", "ok", "not asked for")


def _check_cache() -> Finding:
    folder = cache_folder()
    if folder is None:
        found = "no folder that can be written and is writable for its owner only"
        remedy = f"set {VARIABLE} to such a folder; without one every session starts slowly"
        return Finding("cache folder", "warning", found, remedy)
    return Finding("cache folder", "ok", str(folder))


def _check_kernels() -> Finding:
    folder = kernel_cache(is_local=True)
    if folder is None:
        return Finding("compiled kernels", "ok", "kept beside the source")
    if is_writable(Path(folder)):
        return Finding("compiled kernels", "ok", folder)
    found = f"{folder} cannot be written"
    remedy = "set NUMBA_CACHE_DIR to a folder that can; without one no kernel can be compiled"
    return Finding("compiled kernels", "problem", found, remedy)


def _check_memory() -> Finding:
    total = _memory()
    if total is None:
        return Finding("memory", "ok", "unknown on this system")
    found = f"{total / _GIGABYTE:.1f} GB"
    if total < _ENOUGH:
        remedy = "Spark and its workers want 2 GB: fewer cores (master='local[1]') need less"
        return Finding("memory", "warning", found, remedy)
    return Finding("memory", "ok", found)


def _memory() -> int | None:
    """The bytes this process may use: the machine's, or its container's limit."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


Status = Literal["ok", "warning", "problem"]
_SIGNS: dict[Status, str] = {"ok": "✓", "warning": "!", "problem": "✗"}


@dataclass(frozen=True)
class Finding:
    """One thing that was checked.

    Attributes:
        check: What was looked at.
        status: ``ok``; ``warning`` where it works but not well; ``problem`` where it does not.
        found: What is there.
        remedy: What to do, unless all is well.
    """

    check: str
    status: Status
    found: str
    remedy: str | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing needs to be done."""
        return self.status == "ok"

    def __str__(self) -> str:
        line = f"{_SIGNS[self.status]} {self.check}: {self.found}"
        return f"{line}\n    {self.remedy}" if self.remedy and not self.ok else line


class Findings(list[Finding]):
    """All that was checked, in order; printed, it is a report.

    >>> found = Findings([Finding("Java", "ok", "17"), Finding("disk", "problem", "full", "free")])
    >>> print(found)
    ✓ Java: 17
    ✗ disk: full
        free
    1 problem
    >>> found.ok
    False
    """

    def __init__(self, findings: Iterable[Finding] = ()) -> None:
        super().__init__(findings)

    @property
    def problems(self) -> list[Finding]:
        """What keeps Spark from working."""
        return [finding for finding in self if finding.status == "problem"]

    @property
    def warnings(self) -> list[Finding]:
        """What works, but could be better."""
        return [finding for finding in self if finding.status == "warning"]

    @property
    def ok(self) -> bool:
        """Whether Spark can be used."""
        return not self.problems

    def to_json(self) -> list[dict[str, Any]]:
        """The findings as plain values."""
        return [asdict(finding) for finding in self]

    def __str__(self) -> str:
        return "\n".join([*map(str, self), self._summary()])

    def _summary(self) -> str:
        parts = [
            f"{len(found)} {noun if len(found) == 1 else noun + 's'}"
            for noun, found in (("problem", self.problems), ("warning", self.warnings))
            if found
        ]
        return ", ".join(parts) or "all is well"


_INSTALL = "pip install 'muntin[spark]'"

# Package, oldest version, first version too new, and why it is needed.
REQUIREMENTS: tuple[tuple[str, str, str | None, str], ...] = (
    ("pyspark", "4.3", "4.4", "Muntin runs its streams on it"),
    ("pandas", "2.2", "3", "Spark's stateful operators hand rows over in pandas frames"),
    ("pyarrow", "18", None, "rows travel between Spark and Python as Arrow batches"),
    ("protobuf", "5", None, "Spark's state server talks to Python in protocol buffers"),
)


def check_package(name: str, oldest: str, too_new: str | None, why: str) -> Finding:
    """Whether a package is there, in a version Spark works with.

    >>> check_package("pyarrow", "1", None, "").status
    'ok'
    >>> check_package("pyarrow", "1", "2", "rows travel in it").status
    'problem'
    """
    wanted = f"{oldest} or newer" + (f" and below {too_new}" if too_new else "")
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding(name, "problem", f"not installed, but {why}", _INSTALL)
    numbers = _numbers(version)
    if numbers < _numbers(oldest) or (too_new is not None and numbers >= _numbers(too_new)):
        remedy = f"install {name} {wanted}: {_INSTALL}"
        return Finding(name, "problem", f"{version}, but {why}, and only {wanted} works", remedy)
    return Finding(name, "ok", version)


def check_packages() -> list[Finding]:
    """One finding for every package that Spark needs."""
    return [check_package(*requirement) for requirement in REQUIREMENTS]


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version; a development version counts as its release."""
    head = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in head[0].split(".")) if head else ()
