"""Writing into a checkpoint: what cannot be written is said with the folder and what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muntin.sinks.durable import write_atomically
from muntin.spark.streaming.problems import CheckpointError

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
