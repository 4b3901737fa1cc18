"""Files that are whole or absent, whenever the power fails."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from muntin.sinks.sink import SinkError

TEMPORARY = ".tmp-"
_THREADS = 8
_CHECKSUM = "checksum"


def local_path(folder: str | os.PathLike[str]) -> Path:
    """An absolute path, also from a ``file:`` address; other file systems are refused.

    >>> str(local_path("file:///data/my%20results"))
    '/data/my results'
    """
    text = os.fspath(folder)
    scheme = urlsplit(text).scheme if ":/" in text else ""
    if scheme == "file":
        return Path(unquote(urlsplit(text).path))
    if len(scheme) > 1:
        raise SinkError(
            f"{text!r} is not a path of the local file system",
            hint="mount it, or copy the results there: a commit needs rename and fsync",
        )
    return Path(text).expanduser().absolute()


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that it appears with all its content, durably, or not at all."""
    temporary = path.with_name(f"{TEMPORARY}{uuid4().hex}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def make_folder(path: Path) -> None:
    """Make a folder and its parents, durably."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_all(paths: Iterable[Path]) -> None:
    """Sync many paths; together they share the disk's flushes, so they go in parallel."""
    wanted = list(paths)
    if len(wanted) < _THREADS:
        for path in wanted:
            sync(path)
        return
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(sync, wanted))


def remove(paths: Iterable[Path]) -> None:
    """Remove files, those that are gone already included."""
    for path in paths:
        path.unlink(missing_ok=True)


def seal(content: Mapping[str, Any]) -> bytes:
    """A JSON object as bytes, with a checksum of the rest as its last member.

    >>> seal({"batch": 7})
    b'{"batch":7,"checksum":"772222dea1e950f8"}'
    """
    return _dump({**content, _CHECKSUM: _digest(content)})


def unseal(data: bytes) -> dict[str, Any]:
    """The object that ``seal`` wrote; a ValueError where it has changed since.

    >>> unseal(seal({"batch": 7}))
    {'batch': 7}
    >>> unseal(seal({"batch": 7}).replace(b"7", b"8", 1))
    Traceback (most recent call last):
    ValueError: its checksum does not fit its content
    """
    content = json.loads(data)
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object")
    if content.pop(_CHECKSUM, None) != _digest(content):
        raise ValueError("its checksum does not fit its content")
    return content


def _dump(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(_dump(content)).hexdigest()[:16]
