"""A standalone cluster on loopback: a master and workers of the installed Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from muntin.spark.environment.java import find_java
from muntin.spark.environment.settings import spark_home
from quick_jvm import archived
from spark import cluster_processes
from spark.cluster_processes import command_of, end_session, free_ports, of_session, wait_for_port

_EXECUTOR, _DAEMON = "CoarseGrainedExecutorBackend", "pyspark.daemon"
# Small, and quick to start rather than fast later on.
_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@dataclass(frozen=True)
class Cluster:
    """A cluster that runs; its workers' folders lie in ``folder``."""

    master: str
    folder: Path

    sessions: Sequence[int]

    def executors(self) -> list[int]:
        """The processes of all executors."""
        return [number for number in self._processes() if _EXECUTOR in command_of(number)]

    def python_workers(self) -> list[int]:
        """The Python processes of all executors; the one that began the others comes first."""
        found = [number for number in self._processes() if _DAEMON in command_of(number)]
        return sorted(found)

    def _processes(self) -> list[int]:
        return [number for session in self.sessions for number in of_session(session)]


@contextmanager
def started_cluster(folder: Path, workers: int = 2, *, apart: bool = False) -> Iterator[Cluster]:
    """A cluster with so many workers of one core each, until the block ends, however it does.

    Workers ``apart`` have addresses of their own, so that Spark takes them for several hosts: it
    starts no second copy of a task on the host of the first.
    """
    ports = free_ports(2 + 2 * workers)
    master = f"spark://127.0.0.1:{ports[0]}"
    running: list[subprocess.Popen[bytes]] = []
    try:
        running.append(
            _launch(folder, "master.Master", f"--port {ports[0]} --webui-port {ports[1]}")
        )
        wait_for_port(ports[0])
        for number in range(workers):
            port, page = ports[2 + 2 * number : 4 + 2 * number]
            options = f"--port {port} --webui-port {page} --cores 1 --memory 1g"
            place = folder / f"worker-{number}"
            host = f"127.0.0.{1 + number}" if apart else "127.0.0.1"
            running.append(
                _launch(folder, "worker.Worker", f"{options} --work-dir {place} {master}", host)
            )
        yield Cluster(master, folder, [process.pid for process in running])
    finally:
        for process in running:
            end_session(process.pid)
            process.wait()


def _launch(
    folder: Path, name: str, options: str, host: str = "127.0.0.1"
) -> subprocess.Popen[bytes]:
    java = find_java()
    assert java is not None
    environment = {
        **os.environ,
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(spark_home()),
        "SPARK_DAEMON_MEMORY": "192m",
        "SPARK_DAEMON_JAVA_OPTS": f"{_JVM} {archived()}",
        "SPARK_LOCAL_IP": host,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
    }
    # What the driver's interpreter sees by its environment, workers must not.
    environment.pop("PYTHONPATH", None)
    log = (folder / f"{name}-{time.monotonic_ns()}.log").open("wb")
    with log:
        return subprocess.Popen(
            [
                *(sys.executable, cluster_processes.__file__),
                str(spark_home() / "bin" / "spark-class"),
                f"org.apache.spark.deploy.{name}",
                *("--host", host),
                *options.split(),
            ],
            stdout=log,
            stderr=log,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )


def interpreter_without_muntin(folder: Path) -> Path:
    """An interpreter with all packages of this one, but those of editable installs."""
    path = folder / "python-without-muntin"
    packages = sysconfig.get_path("purelib")
    path.write_text(
        f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec "{sys.executable}" -S "$@"\n'
    )
    path.chmod(0o755)
    return path
