"""An engine in a process of its own, with its environment's Python, asked through a pipe."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muntin.errors import MuntinError

_SERVE = Path(__file__).with_name("adapters") / "serve.py"
_PATIENCE = 400.0
_SOURCES = Path(__file__).parents[2]
# Read by polars, numba and the libraries under numpy when they are loaded.
_THREADS = ("POLARS_MAX_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class PeerError(MuntinError):
    """A peer that could not do what was asked, with its own words."""


@dataclass(frozen=True)
class Spent:
    """What a run took by the clock, and on all cores together (0 where the system does not tell).

    The cores' time says more than the clock's where other work runs on the machine.
    """

    seconds: float
    cpu: float


class Engine:
    """Asks the process of one adapter; what it prepared stays there between calls."""

    def __init__(self, name: str, process: subprocess.Popen[bytes]) -> None:
        self.name = name
        self._process = process
        self._waiting = b""
        self._failed = ""

    def prepare(self, mode: str, job: dict[str, Any]) -> str:
        """Hand over a job, untimed; returns how the adapter is going to answer it."""
        return str(self._ask({"do": "prepare", "mode": mode, "job": job})["how"])

    def answer(self, mode: str) -> float:
        """Answer once and write the answers as Parquet; returns the seconds without the writing."""
        return float(self._ask({"do": "answer", "mode": mode})["seconds"])

    def time(self, mode: str) -> Spent:
        """Answer once more; returns the seconds, and those of all its processes' cores."""
        reply = self._ask({"do": "time", "mode": mode})
        return Spent(float(reply["seconds"]), float(reply["cpu"]))

    def _ask(self, command: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        if self._failed:
            raise PeerError(self._failed, hint="it was asked no more")
        try:
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None
        reply: dict[str, Any] = json.loads(self._line(_PATIENCE))
        if "error" in reply:
            raise PeerError(f"{self.name}: {reply['error']}", hint=str(reply.get("trace", "")))
        return reply

    def _line(self, limit: float) -> bytes:
        assert self._process.stdout is not None
        while b"\n" not in self._waiting:
            ready, _, _ = select.select([self._process.stdout], [], [], limit)
            if not ready:
                self._failed = f"{self.name}: no answer in {limit:g} s"
                raise PeerError(self._failed, hint="it is asked no more")
            part = os.read(self._process.stdout.fileno(), 65_536)
            if not part:
                raise self._ended()
            self._waiting += part
        line, _, self._waiting = self._waiting.partition(b"\n")
        return line

    def _ended(self) -> PeerError:
        self._failed = f"{self.name}: its process ended"
        return PeerError(self._failed, hint="its own words are in the log of the run")


@contextmanager
def engine(adapter: str, python: Path | str, *, cores: int = 2, log: Path) -> Iterator[Engine]:
    """Start an adapter; everything that it started ends with the block."""
    settings = {**os.environ, "MUNTIN_PEER_CORES": str(cores)}
    if cores == 1:
        settings |= dict.fromkeys(_THREADS, "1")
    if str(python) == sys.executable:
        settings["PYTHONPATH"] = str(_SOURCES)
    with log.open("ab") as words:
        process = subprocess.Popen(
            [str(python), "-P", str(_SERVE), adapter],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=words,
            env=settings,
            start_new_session=True,
        )
    try:
        yield Engine(adapter, process)
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let it go in peace, then end whatever is left of its group, a JVM for one."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=15)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
