"""A SparkSession that the user has started: taken as it is, and what it lacks is said."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from muntin.spark.environment.doctor import Finding, Findings, check_packages
from muntin.spark.environment.interpreter import check_interpreter
from muntin.spark.environment.settings import (
    ARROW,
    BATCH_BYTES,
    NO_LIMIT,
    PROVIDER,
    ROCKSDB,
    TIME_ZONE,
)
from muntin.spark.problems import SparkError, SparkWarning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_connect(session: Any) -> bool:
    """Whether a session, or a DataFrame, belongs to Spark Connect."""
    return any(kind.__module__.startswith("pyspark.sql.connect.") for kind in type(session).__mro__)


def refuse_connect(what: str) -> SparkError:
    """The error for Spark Connect, which has no driver for Muntin to run in."""
    return SparkError(
        f"{what} uses Spark Connect, and Muntin needs the driver's own process: it sets local "
        "properties of tasks and commits each batch there",
        hint="run inside the driver with a classic session: unset SPARK_REMOTE and "
        "SPARK_API_MODE, and give a master such as local[*] or spark://host:7077",
    )


def check_session(session: SparkSession) -> Findings:
    """What a session has and lacks; nothing of it is changed.

    A problem keeps streams from running; a warning tells of what they would do better with.
    Spark Connect is refused at once.
    """
    if is_connect(session):
        raise refuse_connect("this session")
    checks: tuple[Callable[[SparkSession], Finding], ...] = (
        _check_running,
        _check_state_store,
        _check_time_zone,
        _check_arrow,
        _check_batches,
        check_interpreter,
    )
    found = Findings([_check_running(session)])
    if found.ok:
        found.extend(check(session) for check in checks[1:])
        found.extend(_packages())
    return found


@cache
def _packages() -> tuple[Finding, ...]:
    """The packages of this process, which has looked at them once."""
    return tuple(check_packages())


def require_session(session: SparkSession) -> SparkSession:
    """The session itself, if Muntin can run on it.

    Raises:
        SparkError: All problems, each with its remedy.
    """
    found = check_session(session)
    if found.problems:
        raise SparkError(
            "; ".join(f"{one.check}: {one.found}" for one in found.problems),
            hint="; ".join(one.remedy for one in found.problems if one.remedy),
        )
    for one in found.warnings:
        text = f"{one.check}: {one.found}. {one.remedy}"
        warnings.warn(text, SparkWarning, stacklevel=3)
    return session


def _check_running(session: SparkSession) -> Finding:
    if session.sparkContext._jsc is None:  # noqa: SLF001  PySpark has no public name for it
        remedy = "start another one, for instance with muntin.spark.session()"
        return Finding("session", "problem", "it has been stopped", remedy)
    return Finding("session", "ok", f"Spark {session.version} on {session.sparkContext.master}")


def _check_state_store(session: SparkSession) -> Finding:
    provider = session.conf.get(PROVIDER)
    if provider and provider.endswith("RocksDBStateStoreProvider"):
        return Finding("state store", "ok", "RocksDB")
    name = str(provider).rpartition(".")[2]
    found = f"{name} holds all state in the driver's and executors' heap"
    return Finding("state store", "warning", found, f"set {PROVIDER} to {ROCKSDB}")


def _check_time_zone(session: SparkSession) -> Finding:
    zone = str(session.conf.get(TIME_ZONE))
    return Finding("time zone", "ok", f"{zone} for local times, windows are aligned in UTC")


def _check_arrow(session: SparkSession) -> Finding:
    if session.conf.get(ARROW) == "true":
        return Finding("Arrow", "ok", "on")
    found = "Spark converts frames row by row"
    return Finding("Arrow", "warning", found, f"set {ARROW} to true")


def _check_batches(session: SparkSession) -> Finding:
    # Spark before 4.1 has no such limit, and none of its cost.
    given = session.conf.get(BATCH_BYTES, None)
    if given is None or given.removesuffix("b") == NO_LIMIT:
        return Finding("Arrow batches", "ok", "no limit to their bytes")
    found = "Spark adds up the bytes of a batch after every row: rows take twice as long to workers"
    remedy = f"set {BATCH_BYTES} to {NO_LIMIT}, unless rows have over 100 kB each"
    return Finding("Arrow batches", "warning", found, remedy)
