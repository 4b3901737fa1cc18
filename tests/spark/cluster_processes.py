"""Processes that tests start, found again and ended, also those whose parents are gone.

As a script it runs the command it is given, which then dies with the process that started it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PATIENCE = 60
_DEATH_SIGNAL = 1  # of prctl
_SESSION = 3  # the place in a process's status, counted after its name


def die_with_parent() -> None:
    """Let this process end when the one that started it does, however that happens."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)


def processes() -> Iterator[Path]:
    """The folders under ``/proc`` of all processes; those of other systems have none."""
    for entry in Path("/proc").glob("[0-9]*"):
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            yield entry


def of_session(number: int) -> list[int]:
    """The processes of a session, which outlives the process that began it."""
    found = []
    for entry in processes():
        with suppress(OSError):
            status = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(status[_SESSION]) == number:
                found.append(int(entry.name))
    return found


def of_environment(text: str) -> list[int]:
    """The processes whose environment had a text when they began."""
    found = []
    for entry in processes():
        with suppress(OSError):
            if text.encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def end_session(number: int) -> None:
    """End every process of a session that was begun for a test, such as a driver's."""
    with suppress(ProcessLookupError):
        os.killpg(number, signal.SIGKILL)
    end(of_session(number))


def end(numbers: list[int]) -> None:
    """End processes at once."""
    for number in numbers:
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


def working_folder(number: int) -> Path:
    try:
        return Path(f"/proc/{number}/cwd").readlink()
    except OSError:
        return Path("/")


def command_of(number: int) -> str:
    try:
        return Path(f"/proc/{number}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


def wait_for_port(port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        assert time.monotonic() < deadline, f"nothing listens on port {port}"
        time.sleep(0.05)


if __name__ == "__main__":
    die_with_parent()
    os.execvp(sys.argv[1], sys.argv[1:])
