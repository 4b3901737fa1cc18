"""The carrier of state: named pieces in files, each written once and read by any worker.

What the buckets of one task add in a batch goes into one file, named by batch and partition. An
attempt writes under a name of its own and renames at the end: two attempts at a task leave the
file of either, and both hold the same pieces. A footer says where each piece lies, with checksums.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import struct
import zlib
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import IO, NamedTuple
from uuid import uuid4

from muntin.sinks.durable import TEMPORARY, make_folder, seal, sync, unseal
from muntin.spark.streaming.checkpoint.files import writing_to
from muntin.spark.streaming.problems import RESTORE, CheckpointError

_MAGIC = b"muntin-3"
_TAIL = struct.Struct("<q8s")  # the footer's length, and the magic
_ALIGNED = 64
_MOST_OPEN = 512
_NAME = re.compile(r"(?:\.tmp-)?(\d{20})-(\d+)\.state(?:-[0-9a-f]+)?")


class Whose(NamedTuple):
    """Whose state is read, for messages: the bucket, and the batch that starts from it."""

    bucket: int
    batch: int

    def __str__(self) -> str:
        return f"the state of bucket {self.bucket}, which batch {self.batch} starts from"


class StateFolder:
    """The files of a checkpoint that state is kept in.

    Args:
        path: The folder, which the driver and all workers see.
        run: The run that it is of.
    """

    def __init__(self, path: str | os.PathLike[str], run: str) -> None:
        self.path, self.run = Path(path), run

    def file(self, batch: int, partition: int) -> Path:
        """The file of a batch and partition."""
        return self.path / f"{batch:020d}-{partition}.state"

    def get(
        self, batch: int, partition: int, name: str, whose: Whose, *, private: bool = False
    ) -> memoryview:
        """A piece that was put there, as it lies in the file.

        With ``private``, memory that may be written, of this process alone: kernels know no other.

        Raises:
            CheckpointError: If the file is missing, damaged, or does not have it.
        """
        path = self.file(batch, partition)
        try:
            return _opened.get(path, self.run).piece(name, private=private)
        except FileNotFoundError:
            raise CheckpointError(
                f"{path} is missing, and {whose}, is in it", hint=RESTORE
            ) from None
        except (OSError, ValueError) as error:
            raise CheckpointError(
                f"{path} is damaged, and {whose}, is in it: {error}", hint=RESTORE
            ) from error

    def drop(self, kept: Iterable[tuple[int, int]], upto: int) -> None:
        """Remove the files of batches up to one, but for those kept: pairs of batch, partition."""
        needed = {self.file(*each).name for each in kept}
        for path, batch in self._files():
            if batch <= upto and path.name not in needed:
                path.unlink(missing_ok=True)

    def drop_after(self, batch: int) -> None:
        """Remove the files of batches after one: those were never committed."""
        for path, number in self._files():
            if number > batch or path.name.startswith(TEMPORARY):
                path.unlink(missing_ok=True)

    def _files(self) -> list[tuple[Path, int]]:
        names = ((path, _NAME.fullmatch(path.name)) for path in self.path.iterdir())
        return [(path, int(name[1])) for path, name in names if name is not None]


class StateWriter:
    """What one attempt at a task adds to a `StateFolder`."""

    def __init__(self, folder: StateFolder, batch: int, partition: int) -> None:
        self._folder, self._path = folder, folder.file(batch, partition)
        self._temporary = self._path.with_name(f"{TEMPORARY}{self._path.name}-{uuid4().hex}")
        self._file: IO[bytes] | None = None
        self._pieces: dict[str, tuple[int, int, int]] = {}

    def put(self, name: str, *parts: bytes | memoryview) -> int:
        """Write a piece, given in parts; how many bytes it has."""
        with writing_to(self._folder.path):
            if self._file is None:
                make_folder(self._folder.path)
                self._file = self._temporary.open("xb")
            begin = self._file.tell()
            padding = -begin % _ALIGNED
            self._file.write(bytes(padding))
            checksum = size = 0
            for part in parts:
                self._file.write(part)
                checksum = zlib.crc32(part, checksum)
                size += len(part)
        self._pieces[name] = (begin + padding, size, checksum)
        return size

    def close(self) -> None:
        """Give the file its name, durably; nothing if there is no piece."""
        if self._file is None:
            return
        with writing_to(self._folder.path):
            content = {"run": self._folder.run, "file": self._path.name, "pieces": self._pieces}
            footer = seal(content)
            self._file.write(footer + _TAIL.pack(len(footer), _MAGIC))
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._temporary.replace(self._path)
            sync(self._folder.path)
        self._file = None

    def abandon(self) -> None:
        """Remove what was written: the attempt has come to no end."""
        if self._file is not None:
            self._file.close()
            self._temporary.unlink(missing_ok=True)
            self._file = None


class _Mapped:
    """A file as it lies in memory; pieces are checked when they are first read."""

    def __init__(self, path: Path, run: str) -> None:
        with path.open("rb") as file:
            self.mark = _mark(os.fstat(file.fileno()))
            size = self.mark[1]
            if size < _TAIL.size:
                raise ValueError("it is cut off")
            self._data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        length, magic = _TAIL.unpack(self._data[size - _TAIL.size :])
        if magic != _MAGIC or not 0 < length <= size - _TAIL.size:
            raise ValueError("it is cut off, or its end was changed")
        try:
            footer = unseal(bytes(self._data[size - _TAIL.size - length : size - _TAIL.size]))
        except (json.JSONDecodeError, UnicodeDecodeError):
            raise ValueError("its footer is not JSON") from None
        if (footer["run"], footer["file"]) != (run, path.name):
            raise ValueError(f"it is {footer['file']} of run {footer['run']}")
        self._pieces: dict[str, list[int]] = footer["pieces"]
        self._checked: set[str] = set()
        self._path = path
        self._private: memoryview | None = None

    def piece(self, name: str, *, private: bool = False) -> memoryview:
        """A piece, if it is what was written."""
        if name not in self._pieces:
            raise ValueError(f"it has no piece {name}")
        begin, size, checksum = self._pieces[name]
        found = self._data[begin : begin + size]
        if name not in self._checked:
            if zlib.crc32(found) != checksum:
                raise ValueError(f"the checksum of its piece {name} does not fit")
            self._checked.add(name)
        if not private:
            return found
        if self._private is None:
            with self._path.open("rb") as file:
                if _mark(os.fstat(file.fileno())) != self.mark:
                    raise ValueError("it was replaced while it was read")
                # Pages are read when they are looked at; what is written stays in this process.
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            self._private = memoryview(mapped)
        return self._private[begin : begin + size]


class _Opened:
    """Files that this worker has mapped, those used last."""

    def __init__(self) -> None:
        self._files: OrderedDict[Path, _Mapped] = OrderedDict()

    def get(self, path: Path, run: str) -> _Mapped:
        """The file as it is now: another attempt may have put its own there."""
        held = self._files.pop(path, None)
        if held is None or held.mark != _mark(path.stat()):
            held = _Mapped(path, run)
        self._files[path] = held
        while len(self._files) > _MOST_OPEN:
            self._files.popitem(last=False)
        return held


def _mark(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns


_opened = _Opened()
