"""The lock that keeps two runs off one checkpoint."""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path

from muntin.sinks.durable import make_folder
from muntin.spark.streaming.problems import CheckpointError
from muntin.spark.streaming.writing import writing_to


class CheckpointLock:
    """A lock on a file, held until it is released or its process ends, however that happens."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.seek(0)
            holder = self._file.read().strip() or "another process"
            self._file.close()
            raise CheckpointError(
                f"another run holds the checkpoint {path.parent}: {holder}",
                hint="stop it first, or give this run a checkpoint of its own",
            ) from error
        self._file.truncate(0)
        self._file.write(f"process {os.getpid()} on {socket.gethostname()}")
        self._file.flush()

    def release(self) -> None:
        """Let go of the lock."""
        if not self._file.closed:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self._file.close()


def hold(root: Path) -> CheckpointLock:
    """The lock of a checkpoint, whose folder is made if need be."""
    with writing_to(root):
        make_folder(root)
        return CheckpointLock(root / "lock")
