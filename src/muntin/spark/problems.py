"""What goes wrong with Spark itself, said in plain words."""

from __future__ import annotations

from muntin.errors import MuntinError

# What a worker writes down before it reads a file, so that it is found when the worker dies.
READING = "Muntin was reading "
# Spark's setting to show what a worker wrote before it died.
FAULT_HANDLER = "spark.sql.execution.pyspark.udf.faulthandler.enabled"
_DEATH = "Python worker exited unexpectedly"


class SparkError(MuntinError, RuntimeError):
    """Spark cannot be used as it is: something is missing, too old, or of the wrong kind."""


class SparkWarning(UserWarning):
    """A Spark session works, but not as well as it could."""


def worker_death(report: str) -> tuple[str, str] | None:
    r"""What to say, with a hint, where Spark reports that a worker died; None where it does not.

    >>> worker_death("SparkException: Python worker exited unexpectedly (crashed)")[0]
    'a Python worker exited unexpectedly'
    >>> worker_death(f"Python worker exited unexpectedly: {READING}a.csv\nFatal Python error")[0]
    'a Python worker exited unexpectedly while it read a.csv'
    """
    _, death, after = report.partition(_DEATH)
    if not death:
        return None
    path = after.partition(READING)[2].partition("\n")[0].strip()
    hint = "workers die of memory that is used up, or of a fault in a library"
    if path:
        return f"a {_DEATH} while it read {path}", f"{hint}; look at that file, or leave it out"
    return f"a {_DEATH}", f"{hint}; set {FAULT_HANDLER} to true to learn where"
