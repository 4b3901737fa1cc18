"""The interpreter that workers run, asked what it has before the first job fails for want of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muntin.spark.environment.doctor import Finding
from muntin.spark.environment.settings import local_cores
from muntin.spark.problems import SparkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHECK = "worker Python"
# What workers import; PySpark itself they get from Spark.
_PACKAGES = ("muntin", "numba", "numpy", "pandas", "polars", "pyarrow", "sqlglot")
_QUESTION = """
import importlib.util, json, sys
found = {name: importlib.util.find_spec(name) for name in sys.argv[1:]}
places = {name: spec and spec.origin for name, spec in found.items()}
print(json.dumps({"version": list(sys.version_info[:2]), "places": places}))
"""
_SECONDS = 60


def check_interpreter(session: SparkSession) -> Finding:
    """Whether workers have this Muntin; on other machines it is not asked.

    A session whose environment is not activated runs whatever ``python3`` is on its path.
    """
    worker = session.sparkContext.pythonExec
    if local_cores(session.sparkContext.master) is None:
        # There, the same packages may well have another path.
        return Finding(_CHECK, "ok", f"{worker} on the workers")
    place = shutil.which(worker)
    lacking = f"this is {sys.executable}"
    remedy = (
        f"before the session starts, set the environment variable PYSPARK_PYTHON to "
        f"{sys.executable}, or use muntin.spark.session()"
    )
    if place is None:
        found = f"workers would run {worker!r}, which is not on the path; {lacking}"
        return Finding(_CHECK, "problem", found, remedy)
    told = _ask(place, _search_path(session))
    if told is None:
        found = f"workers run {place}, which does not answer; {lacking}"
        return Finding(_CHECK, "problem", found, remedy)
    version, here = tuple(told["version"]), sys.version_info[:2]
    if version != here:
        found = f"workers run Python {_dotted(version)} at {place}; {lacking}, {_dotted(here)}"
        return Finding(_CHECK, "problem", found, remedy)
    missing = [name for name in _PACKAGES if told["places"][name] is None]
    if missing:
        found = f"workers run {place}, which has no {' and no '.join(missing)}; {lacking}"
        return Finding(_CHECK, "problem", found, remedy)
    if not _is_this(told["places"]["muntin"]):
        found = f"workers run {place}, with the Muntin at {told['places']['muntin']}; {lacking}"
        return Finding(_CHECK, "warning", found, remedy)
    return Finding(_CHECK, "ok", place)


def require_interpreter(session: SparkSession) -> None:
    """Refuse a session whose workers lack Muntin, before it runs a job."""
    found = check_interpreter(session)
    if found.status == "problem":
        raise SparkError(f"{found.check}: {found.found}", hint=found.remedy)


@cache
def _ask(interpreter: str, path: str) -> dict[str, Any] | None:
    try:
        answer = subprocess.run(
            [interpreter, "-c", _QUESTION, *_PACKAGES],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            check=True,
            timeout=_SECONDS,
        )
        told: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None
    return told


def _search_path(session: SparkSession) -> str:
    """Where workers look for modules before their own folders: settings, and files sent to them."""
    from pyspark import SparkFiles  # noqa: PLC0415  pyspark is imported when it is used

    context = session.sparkContext
    sent = getattr(context, "_python_includes", None) or []
    given = (context.environment.get("PYTHONPATH"), os.environ.get("PYTHONPATH"))
    root = SparkFiles.getRootDirectory() if sent else ""
    return os.pathsep.join([*(str(Path(root) / name) for name in sent), *filter(None, given)])


def _is_this(place: str) -> bool:
    return Path(place).resolve() == Path(__file__).resolve().parents[2] / "__init__.py"


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
