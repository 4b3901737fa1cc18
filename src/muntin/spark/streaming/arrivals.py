"""The files of a batch, as Spark's own logs in the checkpoint name them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from muntin.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_IGNORE = "spark.sql.files.ignoreMissingFiles"


def refuse_missing(session: SparkSession, folder: Path, batch: int) -> None:
    """Refuse a batch with files that are gone: Spark would read it without them, and go on.

    That happens to a batch that is run again, and to one whose file went between two looks.
    """
    missing = next(missing_files(folder, batch), None)
    if missing is not None and session.conf.get(_IGNORE, "false") != "true":
        raise DataError(
            f"{missing}, which batch {batch} reads, is not there any more",
            hint=f"put the file back and start again, or set {_IGNORE} to do without it",
        )


def missing_files(folder: Path, batch: int) -> Iterator[str]:
    """The local files of a batch that are not there; ``folder`` is Spark's own checkpoint."""
    before = dict(enumerate(_offsets(folder, batch - 1)))
    for number, last in enumerate(_offsets(folder, batch)):
        if last is None:
            continue
        first = before.get(number)
        log = folder / "sources" / str(number)
        for path in _arrived(log, -1 if first is None else first, last):
            if not Path(path).exists():
                yield path


def _offsets(folder: Path, batch: int) -> list[int | None]:
    """How far each source was read by the end of a batch, for those that read files."""
    try:
        lines = (folder / "offsets" / str(batch)).read_text().splitlines()
    except OSError:
        return []
    return [_log_offset(line) for line in lines[2:]]


def _log_offset(line: str) -> int | None:
    try:
        offset = json.loads(line)["logOffset"]
    except (ValueError, TypeError, KeyError):
        return None
    return offset if isinstance(offset, int) else None


def _arrived(log: Path, first: int, last: int) -> Iterator[str]:
    """The local files of a source's log behind one offset, and up to another."""
    for number in range(first + 1, last + 1):
        for name in (str(number), f"{number}.compact"):
            try:
                lines = (log / name).read_text().splitlines()
            except OSError:
                continue
            # One that is compacted begins with all files before.
            for entry in map(json.loads, reversed(lines[1:])):
                if entry.get("batchId") != number:
                    break
                parts = urlsplit(entry.get("path", "other:"))
                if parts.scheme in ("", "file"):
                    yield unquote(parts.path)
            break
