"""Files of a checkpoint: whole or absent, and with a checksum that tells which one is damaged."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from muntin.sinks.durable import make_folder, seal, unseal, write_atomically
from muntin.spark.streaming.problems import RESTORE, CheckpointError

_FULL = "free some space and start again with the same checkpoint: what is committed is safe"
_NO_FOLDER = "choose a folder, not a file"
_HINTS = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EEXIST: _NO_FOLDER,
    errno.ENOTDIR: _NO_FOLDER,
}
_ANY = "choose a folder that the driver can write to"


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Let what the file system refuses in a block be an error of the checkpoint.

    >>> with writing_to(Path("ck")):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
    muntin.spark.streaming.problems.CheckpointError: cannot write to the checkpoint ck: No space...
    Hint: free some space and start again with the same checkpoint: what is committed is safe
    """
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"cannot write to the checkpoint {folder}: {error.strerror or error}",
            hint=_HINTS.get(error.errno or 0, _ANY),
        ) from error


def write_durably(path: Path, content: bytes) -> None:
    """Write a file of the checkpoint, whole or not at all."""
    with writing_to(path.parent):
        write_atomically(path, content)


def write_sealed(path: Path, run: str, content: Mapping[str, Any]) -> None:
    """Write a JSON file of the checkpoint that says whose it is, and has a checksum."""
    write_durably(path, seal({"run": run, "file": path.name, **content}))


def read_sealed(path: Path, run: str) -> dict[str, Any] | None:
    """What `write_sealed` wrote there; None if there is no file.

    Raises:
        CheckpointError: If it was changed since, or is the file of another run or name.
    """
    try:
        content = unseal(path.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, OSError) as error:
        raise damaged(path, error) from error
    owner, name = content.pop("run", None), content.pop("file", None)
    if owner != run:
        raise damaged(path, f"it is of run {owner}, and the checkpoint is of run {run}")
    if name != path.name:
        raise damaged(path, f"it is a copy of {name}")
    return content


def versions(folder: Path) -> dict[int, Path]:
    """The files of a folder by their versions: one, or two where a crash kept one too many."""
    paths = folder.glob("[0-9]*.json") if folder.is_dir() else ()
    return {int(path.stem): path for path in paths if path.stem.isdigit()}


def write_version(folder: Path, version: int, run: str, content: Mapping[str, Any]) -> None:
    """Write a version of what changes, and forget those before it."""
    with writing_to(folder):
        make_folder(folder)
    before = versions(folder)
    path = folder / f"{version:020d}.json"
    write_sealed(path, run, content)
    for old in before.values():
        if old != path:
            old.unlink(missing_ok=True)


def damaged(path: Path, reason: object) -> CheckpointError:
    """The error for a file of the checkpoint that is not as it was written."""
    if isinstance(reason, json.JSONDecodeError | UnicodeDecodeError):
        reason = "it is cut off, or not JSON"
    return CheckpointError(f"{path} is damaged: {reason}", hint=RESTORE)


def missing(path: Path) -> CheckpointError:
    """The error for a file of the checkpoint that must be there."""
    return CheckpointError(f"{path} is missing", hint=RESTORE)


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
