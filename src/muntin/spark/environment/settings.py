"""What Spark must be told so that Muntin runs well on it."""

from __future__ import annotations

import os
import re
import socket
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from muntin._cache import kernel_folder
from muntin.spark.problems import FAULT_HANDLER

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
IN_MEMORY = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
TIME_ZONE = "spark.sql.session.timeZone"
ARROW = "spark.sql.execution.arrow.pyspark.enabled"
ANSI = "spark.sql.ansi.enabled"
BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
DAEMON = "spark.python.daemon.module"
JVM_OPTIONS = "spark.driver.defaultJavaOptions"
# Spark looks through the message of a stream that is stopped with a regular expression that
# nests as deep as the message is long.
_STACK = "-Xss8m"
# Over TCP, the last of the few rows that a task hands to its worker wait for 40 ms until those
# before are acknowledged. Sockets of the file system have no such wait.
SOCKETS = "spark.python.unix.domain.socket"
# A path of one may have about a hundred bytes, of which Spark takes 42 for its name.
_LONGEST_FOLDER = 60
_LOOPBACK = ("spark://127.0.0.1:", "spark://localhost:")
_LOCAL = re.compile(r"local(?:\[\s*(\d+|\*)\s*(?:,\s*\d+\s*)?\])?")

# Rows on their way to Python workers. Where the bytes of a batch have a limit, Spark adds them up
# after every row, which takes as long as all the rest; with this one it does not. Few rows keep
# batches small instead, and take no longer than many.
NO_LIMIT = str(2**31 - 1)
TO_WORKERS = {BATCH_ROWS: "2048", BATCH_BYTES: NO_LIMIT}

# What Spark remembers of batches that are over, for pages that are not shown. By default that is
# the plans and metrics of the last thousand, and so long the heap grows.
HISTORY = {
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "100",
}

# Spark makes room for a block of this size, 4 MB by default, for each of the many small things that
# it broadcasts in every batch. G1 marks the whole heap again and again for room that large.
SMALL_BLOCKS = {"spark.broadcast.blockSize": "256k"}

_ALWAYS = {
    PROVIDER: ROCKSDB,
    TIME_ZONE: "UTC",
    ARROW: "true",
    ANSI: "true",
    **TO_WORKERS,
    FAULT_HANDLER: "true",
    **HISTORY,
    **SMALL_BLOCKS,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

# The JVM's collector of choice, G1, lets the heap of a stream grow and grow towards all that it
# may take, little of it in use, and when it is small, marks it without pause. The serial one
# takes what is in use and some more, and little time for a heap of up to a gigabyte, which is
# what a driver has unless it is told otherwise. It grows where it must, so it may begin small.
_SMALL_HEAP = ["-XX:+UseSerialGC", "-Xms256m"]
# A JVM starts neither with two collectors, nor with more memory than it may take.
_HEAP_CHOSEN = re.compile(r"-XX:\+Use\w+GC\b|\bdriver[.-]memory\b|\bSPARK_(DRIVER_)?MEM(ORY)?\b")
_JVM_VARIABLES = (
    "JDK_JAVA_OPTIONS",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "PYSPARK_SUBMIT_ARGS",
    "SPARK_SUBMIT_OPTS",
    "SPARK_DRIVER_MEMORY",
    "SPARK_MEM",
)

# RocksDB allocates in many threads, and glibc gives each of them an arena of its own, up to eight
# for each core, of which it hands little back.
FEW_ARENAS = {"MALLOC_ARENA_MAX": "2"}

# A task is one core's work: libraries that start a thread for each core would fight over them.
ONE_THREAD = {
    "POLARS_MAX_THREADS": "1",
    "OMP_NUM_THREADS": "1",  # also the size of Arrow's pool
    "ARROW_IO_THREADS": "2",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}


def local_cores(master: str | None) -> int | None:
    """How many cores a local master uses; None for any other master.

    >>> local_cores("local[3]"), local_cores("local"), local_cores("spark://host:7077")
    (3, 1, None)
    """
    found = _LOCAL.fullmatch((master or "").strip())
    if found is None:
        return None
    if found[1] == "*":
        usable = getattr(os, "sched_getaffinity", None)
        return len(usable(0)) if usable else os.cpu_count() or 1
    return int(found[1] or 1)


def default_settings(master: str | None) -> dict[str, str]:
    """The settings of a session that Muntin starts; what the user sets comes before them."""
    settings = dict(_ALWAYS)
    cores = local_cores(master)
    if cores is not None:
        settings["spark.sql.shuffle.partitions"] = str(cores)
        # Elsewhere, Muntin may be sent to workers that start without it.
        settings[DAEMON] = "muntin.spark.environment.daemon"
    if cores is not None or (master or "").startswith(_LOOPBACK):
        # A laptop changes networks; a session on one machine needs none.
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
        settings |= worker_sockets(tempfile.gettempdir())
    environment = dict(ONE_THREAD)
    if kernels := kernel_cache(is_local=cores is not None):
        environment["NUMBA_CACHE_DIR"] = kernels
    for name, value in environment.items():
        settings[f"spark.executorEnv.{name}"] = value
    return settings


def worker_sockets(folder: str) -> dict[str, str]:
    """What lets executors talk to their Python workers over sockets in a folder, if they can."""
    if not hasattr(socket, "AF_UNIX") or len(os.fsencode(folder)) > _LONGEST_FOLDER:
        return {}
    return {f"{SOCKETS}.enabled": "true", f"{SOCKETS}.dir": folder}


def kernel_cache(*, is_local: bool) -> str | None:
    """Where workers keep compiled kernels; None for the place beside the source.

    On one machine, workers share what the driver has compiled. On a cluster it is a folder in
    each executor's own working directory, the one place that is always writable.
    """
    return kernel_folder() if is_local else "muntin-kernels"


def spark_home() -> Path:
    """The Spark that PySpark starts."""
    if home := os.environ.get("SPARK_HOME"):
        return Path(home)
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("pyspark")
    return Path(spec.origin).parent


def conf_folder() -> Path:
    """Where an administrator's settings are."""
    return Path(os.environ.get("SPARK_CONF_DIR") or spark_home() / "conf")


def administered_settings() -> dict[str, str]:
    """What ``spark-defaults.conf`` sets; a session's own settings would silently win over it."""
    try:
        text = (conf_folder() / "spark-defaults.conf").read_text(encoding="utf-8")
    except OSError:
        return {}
    pairs = [
        re.split(r"\s*=\s*|\s+", line.strip(), maxsplit=1)
        for line in text.splitlines()
        if line.strip() and not line.lstrip().startswith("#")
    ]
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def jvm_options(administered: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    """The options of the driver's JVM that come before Muntin's own."""
    return [
        _STACK,
        *([] if _is_heap_chosen(administered, given) else _SMALL_HEAP),
        *administered.get(JVM_OPTIONS, "").split(),
        *given.get(JVM_OPTIONS, "").split(),
    ]


def _is_heap_chosen(*settings: Mapping[str, str]) -> bool:
    """Whether anyone has named a collector or the driver's memory, wherever that can be done."""
    told = [
        pair for each in settings for pair in each.items() if pair[0].startswith("spark.driver")
    ]
    told += [(name, os.environ[name]) for name in _JVM_VARIABLES if os.environ.get(name)]
    texts = [" ".join(pair) for pair in told] + _environment_script()
    return any(_HEAP_CHOSEN.search(text) for text in texts)


def _environment_script() -> list[str]:
    """The lines of ``spark-env.sh``, which Spark's launcher runs."""
    try:
        text = (conf_folder() / "spark-env.sh").read_text(encoding="utf-8")
    except OSError:
        return []
    return [line for line in text.splitlines() if not line.lstrip().startswith("#")]
