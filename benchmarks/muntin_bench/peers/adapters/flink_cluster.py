"""A session cluster of Flink's on this machine: a job manager and a task manager with two slots."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

_SLOTS = 2
_WAIT = 120.0
_OPTIONS = {
    "jobmanager.memory.process.size": "2g",
    "taskmanager.memory.process.size": "6g",
    # A fixed size, or the task manager refuses to start.
    "taskmanager.memory.network.min": "768m",
    "taskmanager.memory.network.max": "768m",
    "taskmanager.numberOfTaskSlots": str(_SLOTS),
    "taskmanager.host": "localhost",
    "jobmanager.rpc.address": "localhost",
    "rest.address": "localhost",
}


class Cluster:
    """Runs as children of this process, in its group, so that they end with it."""

    def __init__(self, home: Path) -> None:
        self.port, rpc = _free_port(), _free_port()
        folder = tempfile.mkdtemp(prefix="muntin-flink-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        options = {
            **_OPTIONS,
            "rest.port": str(self.port),
            "rest.bind-port": str(self.port),
            "jobmanager.rpc.port": str(rpc),
            "io.tmp.dirs": folder,
        }
        given = [part for name, value in options.items() for part in ("-D", f"{name}={value}")]
        variables = {**os.environ, "FLINK_LOG_DIR": folder, "FLINK_PID_DIR": folder}
        self._processes = [
            subprocess.Popen(
                [str(home / "bin" / script), "start-foreground", *given], env=variables
            )
            for script in ("jobmanager.sh", "taskmanager.sh")
        ]
        for process in self._processes:
            atexit.register(process.terminate)
        self._wait()

    def _wait(self) -> None:
        """Until both slots are free."""
        until = time.monotonic() + _WAIT
        opener = build_opener(ProxyHandler({}))
        while time.monotonic() < until and all(each.poll() is None for each in self._processes):
            try:
                with opener.open(f"http://localhost:{self.port}/overview", timeout=5) as reply:
                    if json.load(reply)["slots-available"] >= _SLOTS:
                        return
            except (URLError, OSError, ValueError):
                pass
            time.sleep(0.2)
        raise RuntimeError(f"Flink's cluster has not started, or not in {_WAIT:g} s")


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("localhost", 0))
        return int(held.getsockname()[1])
