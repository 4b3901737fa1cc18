"""Files cut into pieces, and pieces dealt out to tasks."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from muntin.spark.problems import READING

# A task reads so much where there is plenty, as Spark's own readers do.
_TASK_BYTES = 1 << 27
# Less than this is not worth a task of its own.
_LEAST_BYTES = 1 << 19
# Names that Spark decompresses by, and Arrow does not, or not in the same way.
_ODD_SUFFIXES = (".snappy", ".deflate", ".lz4", ".lzo", ".xz", ".brotli", ".br")
COMPRESSED = (".gz", ".bz2", ".zst")
# The report of this worker's death, kept open for the handler of fatal signals.
_reports: list[IO[str]] = []


@dataclass(frozen=True)
class Piece:
    """A range of a file's bytes, from ``start`` up to ``end``.

    A line of text belongs to the piece that holds its first byte, a row group of Parquet to the
    one that holds its middle. ``values`` are the columns that the file's folders give.
    """

    path: str
    start: int
    end: int
    size: int
    values: Mapping[str, pa.Scalar] = field(default_factory=dict)


Reader = Callable[[Piece, pa.Schema], Iterator[pa.Table]]


def read_piece(read: Reader, piece: Piece, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows of a piece; if the worker dies meanwhile, Spark's error names the file.

    A session with the setting for it shows what a worker wrote under the number of its process.
    """
    if folder := os.environ.get("PYTHON_FAULTHANDLER_DIR"):
        report: IO[str] = (Path(folder) / str(os.getpid())).open("w", encoding="utf-8")
        report.write(f"{READING}{piece.path}\n")
        report.flush()
        faulthandler.enable(report)  # below the name, instead of over it
        _reports[:] = [report]
    yield from read(piece, schema)
    for report in _reports:
        report.truncate(0)


def local_path(uri: str) -> str | None:
    """The path of a file on a file system that every worker has; None for any other.

    >>> local_path("file:///data/a%20b.parquet"), local_path("s3a://bucket/a.parquet")
    ('/data/a b.parquet', None)
    """
    found = urlsplit(uri)
    if found.scheme not in ("", "file") or found.netloc:
        return None
    rest = uri.split(":", 1)[1] if found.scheme else uri
    return unquote(rest.removeprefix("//"))


def is_plain(path: str) -> bool:
    """Whether Arrow reads the file as Spark does, going by its name."""
    return not path.lower().endswith(_ODD_SUFFIXES)


def cut(
    paths: Sequence[str], values: Mapping[str, Mapping[str, pa.Scalar]], cores: int
) -> list[list[Piece]]:
    """The pieces of all files, task by task, about as many bytes in each.

    A task has neighbouring pieces: where rows lie in the order of time, it sees fewer slices, and
    so has fewer partials to send.
    """
    sizes = [Path(path).stat().st_size for path in paths]
    total = sum(sizes)
    tasks = max(-(-total // _TASK_BYTES), min(cores, -(-total // _LEAST_BYTES)), 1)
    dealt: list[list[Piece]] = [[] for _ in range(tasks)]
    before = 0
    for path, size in zip(paths, sizes, strict=True):
        own = values.get(path, {})
        if path.lower().endswith(COMPRESSED):
            task = (2 * before + size) * tasks // (2 * total) if total else 0
            dealt[min(task, tasks - 1)].append(Piece(path, 0, size, size, own))
        else:
            for task, pieces in enumerate(dealt):
                start, end = (
                    min(max(total * edge // tasks - before, 0), size) for edge in (task, task + 1)
                )
                if start < end:
                    pieces.append(Piece(path, start, end, size, own))
        before += size
    return [pieces for pieces in dealt if pieces]
