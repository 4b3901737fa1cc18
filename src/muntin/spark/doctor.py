"""Checks what Spark needs on this machine, before Spark fails in words of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from muntin.cache import VARIABLE, cache_folder, is_writable
from muntin.spark.findings import Finding, Findings
from muntin.spark.java import OLDEST, REMEDY, find_java
from muntin.spark.packages import check_packages
from muntin.spark.settings import kernel_cache

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
