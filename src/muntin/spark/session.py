"""A SparkSession with everything that Muntin's streams need."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muntin._cache import cache_folder
from muntin.spark.environment.archive import Archive, archive_of_sessions
from muntin.spark.environment.doctor import check_packages
from muntin.spark.environment.existing import refuse_connect, require_session
from muntin.spark.environment.java import quiet_home, require_java
from muntin.spark.environment.settings import (
    FEW_ARENAS,
    JVM_OPTIONS,
    administered_settings,
    conf_folder,
    default_settings,
    jvm_options,
    local_cores,
)
from muntin.spark.environment.shipping import ship as ship_to_workers
from muntin.spark.interrupts import ctrl_c
from muntin.spark.problems import SparkError, SparkWarning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGGING = Path(__file__).with_name("log4j2.properties")


def session(
    app_name: str = "muntin",
    *,
    master: str | None = None,
    config: Mapping[str, Any] | None = None,
    ship: bool = True,
) -> SparkSession:
    """A session to run Muntin on: the active one, or another that is started.

    An active session is taken as it is; what it lacks is a warning, or an error where streams
    would not run. A session that is started has the RocksDB state store, Arrow, UTC, ANSI SQL,
    this interpreter in its workers, one thread for each task, and starts fast from the second
    time on.

    Args:
        app_name: What Spark calls the application.
        master: Where to run; ``local[*]`` unless Spark's own configuration says otherwise.
        config: More settings of Spark, before all defaults.
        ship: Whether workers of a cluster get this Muntin, before any that is installed there.
            What is compiled they get in any case.

    Raises:
        SparkError: With what is missing, and how to get it.
    """
    given = {name: _text(value) for name, value in (config or {}).items()}
    _refuse_remote(master, given)
    active = _active_session()
    if active is not None:
        _warn_unused(active, master, given)
        return require_session(active)
    missing = [finding for finding in check_packages() if not finding.ok]
    if missing:
        raise SparkError(
            "; ".join(f"{one.check}: {one.found}" for one in missing), hint=missing[0].remedy
        )
    started = _start(app_name, master, given)
    ship_to_workers(started, code=ship)
    return started


def stop(session: SparkSession, *, timeout: float = 120) -> None:
    """Stop a session and wait until its JVM has ended, which ``SparkSession.stop`` does not.

    The first session on a machine takes some seconds longer: its JVM writes the archive that
    makes later ones start fast.
    """
    from pyspark import SparkContext  # noqa: PLC0415  pyspark is imported when it is used

    gateway = SparkContext._gateway  # noqa: SLF001  PySpark has no public name for it
    session.stop()
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return
    gateway.shutdown()
    with suppress(OSError):
        process.stdin.close()
    process.wait(timeout=timeout)
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001  so that another can start


def _active_session() -> SparkSession | None:
    if "pyspark" not in sys.modules:
        # Whether it is installed at all is checked before one is started.
        return None
    from pyspark import SparkContext  # noqa: PLC0415  pyspark is imported when it is used
    from pyspark.sql import SparkSession  # noqa: PLC0415

    if SparkContext._active_spark_context is None:  # noqa: SLF001
        return None
    active: SparkSession | None = SparkSession.getActiveSession()
    return active if active is not None else SparkSession.builder.getOrCreate()


def _start(app_name: str, master: str | None, given: dict[str, str]) -> SparkSession:
    administered = administered_settings()
    chosen = _master(master, {**administered, **given})
    settings = default_settings(chosen)
    settings = {name: value for name, value in settings.items() if name not in administered}
    settings |= given
    if chosen is not None:
        settings["spark.master"] = chosen
    _set_interpreter(chosen)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        # spark-submit has started the JVM: its Java and its options are settled.
        return _create(app_name, settings)
    java = require_java()
    for name, value in FEW_ARENAS.items():
        os.environ.setdefault(name, value)
    options = jvm_options(administered, given)
    if not (conf_folder() / "log4j2.properties").exists():
        options.append(f'"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"')
    archive = archive_of_sessions(java, settings.get("spark.driver.extraClassPath", ""))
    with _java_home(quiet_home(java, cache_folder()) or java.home):
        return _create_with(app_name, settings, options, archive)


@contextmanager
def _java_home(home: Path) -> Iterator[None]:
    """Let Spark's launcher find a Java; what else this process starts finds the one it had."""
    before = os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = str(home)
    try:
        yield
    finally:
        if before is None:
            del os.environ["JAVA_HOME"]
        else:
            os.environ["JAVA_HOME"] = before


def _create_with(
    app_name: str, settings: dict[str, str], options: list[str], archive: Archive | None
) -> SparkSession:
    recorded = archive.options() if archive is not None else []
    try:
        return _create(app_name, {**settings, JVM_OPTIONS: " ".join([*options, *recorded])})
    except SparkError:
        if archive is None or not recorded or _is_jvm_running():
            raise
        # Whatever was wrong, it must not be the archive.
        started = _create(app_name, {**settings, JVM_OPTIONS: " ".join(options)})
        archive.discard()
        return started


def _create(app_name: str, settings: dict[str, str]) -> SparkSession:
    from py4j.protocol import Py4JError  # noqa: PLC0415  imported when it is used
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder = SparkSession.builder.appName(app_name)
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        with warnings.catch_warnings(), ctrl_c() as check:
            warnings.simplefilter("ignore")
            started: SparkSession = builder.getOrCreate()
            try:
                check()
            except KeyboardInterrupt:
                stop(started)
                raise
            return started
    except (PySparkException, Py4JError) as error:
        java = getattr(error, "java_exception", None)
        reason = str(java.getMessage() if java is not None else error).strip()
        raise SparkError(
            f"Spark did not start on {settings.get('spark.master', 'its master')!r}: {reason}",
            hint="`muntin doctor` checks what Spark needs; its own words are printed above",
        ) from error


def _is_jvm_running() -> bool:
    from pyspark import SparkContext  # noqa: PLC0415  imported when it is used

    return SparkContext._gateway is not None  # noqa: SLF001


def _master(master: str | None, settings: Mapping[str, str]) -> str | None:
    """Where to run; None where only Spark's launcher knows."""
    if master or settings.get("spark.master"):
        return master or settings["spark.master"]
    submitted = os.environ.get("PYSPARK_SUBMIT_ARGS", "")
    if "PYSPARK_GATEWAY_PORT" in os.environ or "master" in submitted:
        return None
    return "local[*]"


def _set_interpreter(master: str | None) -> None:
    # Workers on this machine must run this interpreter. Elsewhere, whoever set the variable
    # knows the path of Python on the workers.
    if master is not None and local_cores(master) is not None:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


def _refuse_remote(master: str | None, given: Mapping[str, str]) -> None:
    mode = given.get("spark.api.mode", os.environ.get("SPARK_API_MODE", ""))
    for what, is_remote in (
        (f"the master {master!r}", (master or "").startswith("sc://")),
        ("the setting spark.remote", "spark.remote" in given),
        ("the environment variable SPARK_REMOTE", bool(os.environ.get("SPARK_REMOTE"))),
        ("the mode connect", mode.lower() == "connect"),
    ):
        if is_remote:
            raise refuse_connect(what)


def _warn_unused(active: SparkSession, master: str | None, given: Mapping[str, str]) -> None:
    """Say which wishes came too late: a running session is not changed behind its owner's back."""
    wanted = {**given, **({"spark.master": master} if master else {})}
    if not wanted:
        return
    present = {**dict(active.sparkContext.getConf().getAll()), **dict(active.conf.getAll)}
    unused = sorted(name for name, value in wanted.items() if present.get(name) != value)
    if unused:
        warnings.warn(
            f"a session is active already, so these settings are not applied: {', '.join(unused)}",
            SparkWarning,
            stacklevel=3,
        )


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
