"""The Python packages that Spark needs, checked without importing them."""

from __future__ import annotations

import re
from importlib import metadata

from muntin.spark.findings import Finding

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
