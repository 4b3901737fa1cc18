"""The files that a stream's sources have named, as Spark's own logs in the checkpoint say."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from muntin.errors import DataError
from muntin.spark.streaming.checkpoint.files import damaged, missing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_IGNORE = "spark.sql.files.ignoreMissingFiles"
_COMPACT = ".compact"
_MASK = (1 << 64) - 1


class Arrivals:
    """The files that a batch reads, by source.

    Args:
        logs: Spark's part of the checkpoint.
        before: How far each source was read before the batch, as `SparkLogs.offsets` has it.
        offsets: How far it is read by the end of the batch.
    """

    def __init__(self, logs: SparkLogs, before: Sequence[str], offsets: Sequence[str]) -> None:
        self._found: list[list[str] | None] = []
        first = dict(enumerate(map(_log_offset, before)))
        for number, last in enumerate(map(_log_offset, offsets)):
            log, after = logs.files(number), first.get(number)
            self._found.append(
                list(log.between(-1 if after is None else after, last))
                if log is not None and last is not None
                else None
            )

    def refuse_missing(self, session: SparkSession, batch: int) -> None:
        """Refuse a batch with files that are gone: Spark would read it without them, and go on.

        That happens to a batch that is run again, and to one whose file went between two looks.
        """
        gone = next(self.missing(), None)
        if gone is not None and session.conf.get(_IGNORE, "false") != "true":
            raise DataError(
                f"{gone}, which batch {batch} reads, no longer exists",
                hint=f"put the file back and start again, or set {_IGNORE} to continue without it",
            )

    def missing(self) -> Iterator[str]:
        """The local files of the batch that are not there."""
        for uris in self._found:
            for uri in uris or ():
                parts = urlsplit(uri)
                if parts.scheme in ("", "file") and not Path(unquote(parts.path)).exists():
                    yield unquote(parts.path)

    def added_to(self, before: Sequence[str]) -> tuple[str, ...]:
        """The marks of all files so far, given those before the batch; one for each source."""
        known = dict(enumerate(before))
        return tuple(
            "" if uris is None else mark(uris, known.get(number, ""))
            for number, uris in enumerate(self._found)
        )


def marks(logs: SparkLogs, offsets: Sequence[str]) -> tuple[str, ...]:
    """The marks of all files that Spark's logs name up to some offsets."""
    found = []
    for number, end in enumerate(map(_log_offset, offsets)):
        log = logs.files(number)
        found.append("" if log is None or end is None else mark(log.through(end)))
    return tuple(found)


def mark(uris: Iterable[str], before: str = "") -> str:
    """How many files there are, and a sum of their hashes: the same in any order.

    >>> mark(["a"], mark(["b"])) == mark(["a", "b"])
    True
    """
    count, total = (int(part, 16) for part in (before or "0-0").split("-"))
    for uri in uris:
        count += 1
        total += int.from_bytes(hashlib.sha256(uri.encode()).digest()[:8], "big")
    return f"{count:x}-{total & _MASK:016x}"


class FileLog:
    """The log of a source that reads files: each entry lists files, every tenth all so far."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def between(self, first: int, last: int) -> Iterator[str]:
        """The files of the entries behind one, and up to another."""
        for number in range(first + 1, last + 1):
            path = self._folder / str(number)
            compacted = _compacted(path)
            # One that is compacted begins with all files before.
            for entry in reversed(self._read(compacted if compacted.exists() else path)):
                if entry["batchId"] != number:
                    break
                yield entry["path"]

    def through(self, last: int) -> Iterator[str]:
        """The files of all entries up to one."""
        names = [path.name for path in self._folder.iterdir()]
        stems = (name.removesuffix(_COMPACT) for name in names if name.endswith(_COMPACT))
        base = max((int(stem) for stem in stems if stem.isdigit()), default=-1)
        if base >= 0:
            for entry in self._read(_compacted(self._folder / str(base))):
                if entry["batchId"] <= last:
                    yield entry["path"]
        yield from self.between(base, last)

    def _read(self, path: Path) -> list[dict[str, Any]]:
        try:
            entries = [json.loads(line) for line in path.read_text().splitlines()[1:]]
            if all(isinstance(entry["path"], str) for entry in entries):
                return [entry for entry in entries if entry["batchId"] >= 0]
            raise TypeError("a path is not text")
        except FileNotFoundError:
            raise missing(path) from None
        except (ValueError, KeyError, TypeError) as error:
            raise damaged(path, "it is not a log of files, or cut off") from error


def _compacted(path: Path) -> Path:
    return path.with_name(path.name + _COMPACT)


def _log_offset(offset: str) -> int | None:
    try:
        found = json.loads(offset)["logOffset"]
    except (ValueError, TypeError, KeyError):
        return None
    return found if isinstance(found, int) else None


_HEAD = 2  # lines before the offsets: the version of the format, and when the batch was planned


class SparkLogs:
    """The offsets and commits in Spark's part of a checkpoint.

    Spark notes the offsets of a batch before it runs, and its commit when all is done: so there
    is a commit for every batch with offsets, but for the last.

    A source that occurs twice in a query has two offsets and one log, so the logs of those behind
    it have other numbers than their offsets. ``places`` has the number of each source's log; None
    where the source has occurred before.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.places: Sequence[int | None] = ()

    def files(self, number: int) -> FileLog | None:
        """The log of the source of an offset, if it keeps one of files."""
        place = self.places[number] if number < len(self.places) else number
        log = self.folder / "sources" / str(place)
        return FileLog(log) if place is not None and log.is_dir() else None

    def committed(self) -> int:
        """The last batch that Spark has committed; -1 for none."""
        return self._last("commits")

    def planned(self) -> int:
        """The last batch that Spark has noted the offsets of; -1 for none."""
        return self._last("offsets")

    def offsets(self, batch: int) -> tuple[str, ...]:
        """How far each source is read by the end of a batch, without the clock it was planned at.

        Each is JSON with its keys in order, or the text that Spark has.
        """
        path = self.folder / "offsets" / str(batch)
        return tuple(map(_canonical, self._lines(path)[_HEAD:]))

    def check_readable(self) -> None:
        """Refuse files that Spark would fail at with an error that does not name them."""
        path, planned = self.folder / "metadata", self.planned()
        if self.committed() >= 0:
            self._lines(self.folder / "commits" / str(self.committed()))
        for batch in range(max(planned - 1, 0), planned + 1):
            self.offsets(batch)
        try:
            json.loads(path.read_bytes())["id"]
        except FileNotFoundError:
            if planned >= 0:
                raise missing(path) from None
        except (ValueError, KeyError, TypeError) as error:
            raise damaged(path, "it does not hold the id of a streaming query") from error

    def _last(self, log: str) -> int:
        folder = self.folder / log
        names = (path.name for path in folder.iterdir()) if folder.is_dir() else ()
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def _lines(self, path: Path) -> list[str]:
        """The lines of a log's file: a version and JSON at least."""
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            json.loads(lines[1])
        except FileNotFoundError:
            raise missing(path) from None
        except (ValueError, IndexError) as error:
            raise damaged(path, "it is not a log of Spark's, or cut off") from error
        return lines


def _canonical(line: str) -> str:
    try:
        return json.dumps(json.loads(line), sort_keys=True, separators=(",", ":"))
    except ValueError:
        return line
