"""What goes wrong with Spark itself, said in plain words."""

from __future__ import annotations

import re

from muntin.errors import MuntinError

# What a worker writes down before it reads a file, so that it is found when the worker dies.
READING = "Muntin was reading "
# Spark's setting to show what a worker wrote before it died.
FAULT_HANDLER = "spark.sql.execution.pyspark.udf.faulthandler.enabled"
_LACKS = re.compile(
    r"ModuleNotFoundError: No module named '((?:muntin|numba|polars|pyarrow|sqlglot)[\w.]*)'"
)
_DEATH = "Python worker exited unexpectedly"


class SparkError(MuntinError, RuntimeError):
    """Spark cannot be used as it is: something is missing, too old, or of the wrong kind."""


class SparkWarning(UserWarning):
    """A Spark session works, but not as well as it could."""


def worker_trouble(report: str) -> tuple[str, str] | None:
    r"""What to say, with a hint, where Spark reports a worker that died or lacks Muntin, or None.

    >>> worker_trouble("ModuleNotFoundError: No module named 'muntin'")[0]
    'the workers have no module muntin'
    >>> worker_trouble("SparkException: Python worker exited unexpectedly (crashed)")[0]
    'a Python worker exited unexpectedly'
    >>> worker_trouble(f"Python worker exited unexpectedly: {READING}a.csv\nFatal Python error")[0]
    'a Python worker exited unexpectedly while it read a.csv'
    """
    if lacks := _LACKS.search(report):
        remedy = "muntin.spark.ship(session) sends Muntin to the workers of a cluster"
        return (
            f"the workers have no module {lacks[1]}",
            f"{remedy}, or install there what runs here, and set PYSPARK_PYTHON to that Python",
        )
    _, death, after = report.partition(_DEATH)
    if not death:
        return None
    path = after.partition(READING)[2].partition("\n")[0].strip()
    hint = "workers die of memory that is used up, or of a fault in a library"
    if path:
        return f"a {_DEATH} while it read {path}", f"{hint}; look at that file, or leave it out"
    return f"a {_DEATH}", f"{hint}; set {FAULT_HANDLER} to true to learn where"
