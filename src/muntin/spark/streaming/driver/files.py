"""Files that arrive in a folder: Spark names them, tasks read them, and no row enters the JVM."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from muntin.errors import DataError
from muntin.expressions.zones import Zone
from muntin.spark.files.columns import UnlikeSparkError
from muntin.spark.files.files import Files
from muntin.spark.files.listing import LISTING, Listing
from muntin.spark.files.pieces import COMPRESSED, Piece, Reader, read_piece
from muntin.spark.files.source import FilesSource
from muntin.spark.frames import quoted
from muntin.spark.session import session as current_session
from muntin.spark.streaming.driver.source import StreamSource, arrow_schema, stream_source
from muntin.spark.streaming.tasks.stage_a import Batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_logger = logging.getLogger("muntin.spark")
# One file is one task of Spark's: as many tasks read their share of each.
_MOST_PIECES = 4
_FIXED = ("path", "modificationTime", "length", "content")
# Options of Spark's streaming source, which say when a file is read and not how.
_STREAMING = {
    "maxfilespertrigger",
    "maxbytespertrigger",
    "maxcachedfiles",
    "latestfirst",
    "maxfileage",
    "filenameonly",
    "cleansource",
    "sourcearchivedir",
}


def files_source(files: Files, zone: Zone) -> StreamSource:
    """The files as a stream; through Spark's reader where tasks could not read the same.

    Times in text that name no zone are in this one.
    """
    if len(files.paths) != 1:
        raise DataError(
            f"a stream reads one folder or pattern, and there are {len(files.paths)} paths",
            hint="give a pattern that matches all, or a run for each",
        )
    if files.schema is None and not Listing.of(current_session(), files, zone.name).uris:
        raise DataError(
            f"there is no file in {files.paths[0]} yet to see the columns of",
            hint='give them: muntin.files(path, schema="ts TIMESTAMP, price DOUBLE")',
        )
    arriving = ArrivingFiles(files, zone.name)
    try:
        return arriving.source()
    except UnlikeSparkError as error:
        _logger.warning("the files go through Spark's reader: %s", error.message)
    return stream_source(arriving.through_spark(), zone)


class ArrivingFiles(FilesSource):
    """Files of one format, and those that will arrive."""

    def __init__(self, files: Files, timezone: str | None = None) -> None:
        how = [(name, value) for name, value in files.options if name.lower() not in _STREAMING]
        self._given = files
        super().__init__(Files(files.paths, files.format, files.schema, tuple(how)), timezone)

    def source(self) -> StreamSource:
        """The stream of names of files, with the reader of their rows."""
        self._check_readable()
        whole = arrow_schema(self._frame, self.zone)
        folders = [name for name in self._frame.columns if name in set(self._listing.folders)]
        cores = self._session.sparkContext.defaultParallelism
        count = max(min(cores, _MOST_PIECES), 1)
        names = self._names(folders)
        pieces = [
            names.selectExpr("path", "length", f"{number} AS piece", *map(quoted, folders))
            for number in range(count)
        ]

        def reader(columns: Sequence[str]) -> FileReader:
            return FileReader(self._read, pa.schema([whole.field(name) for name in columns]), count)

        return StreamSource(reduce(lambda one, other: one.union(other), pieces), whole, reader)

    def _check_readable(self) -> None:
        """Refuse options that tasks do not know, and file systems that they do not have."""
        len(self._tasks)

    def through_spark(self) -> DataFrame:
        """The stream as Spark's reader gives it."""
        reader = self._session.readStream.format(self._given.format)
        options = self._reading(self._given)
        loaded: DataFrame = (
            reader.schema(self._frame.schema).options(**options).load(self._given.paths[0])
        )
        return loaded

    def _names(self, folders: Sequence[str]) -> DataFrame:
        from pyspark.sql.types import StructType  # noqa: PLC0415  imported when it is used

        own = [self._frame.schema[name] for name in folders]
        schema = StructType([*self._listing.frame.schema.fields[: len(_FIXED)], *own])
        wanted = {*LISTING, *_STREAMING, "timezone"}
        options = {
            name: value
            for name, value in self._reading(self._given).items()
            if name.lower() in wanted
        }
        reader = self._session.readStream.format("binaryFile").schema(schema).options(**options)
        loaded: DataFrame = reader.load(self._given.paths[0])
        return loaded.select("path", "length", *map(quoted, folders))


@dataclass(frozen=True)
class FileReader:
    """Reads the files that Spark names in a task, one piece of each."""

    read: Reader
    schema: pa.Schema
    count: int

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """The rows of all pieces."""
        for batch in batches:
            for piece in self._pieces(batch):
                try:
                    yield from read_piece(self.read, piece, self.schema)
                except UnlikeSparkError as error:
                    named = piece.path in error.message
                    raise DataError(
                        error.message if named else f"{piece.path}: {error.message}",
                        hint="repair the file in place, and start again",
                    ) from error

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[Piece]:
        folders = {
            name: batch.column(name).cast(self.schema.field(name).type)
            for name in batch.schema.names[3:]
            if name in self.schema.names
        }
        fixed = (batch.column(name).to_pylist() for name in ("path", "length", "piece"))
        for place, (uri, size, number) in enumerate(zip(*fixed, strict=True)):
            path = uri.removeprefix("file:")
            values = {name: column[place] for name, column in folders.items()}
            if path.lower().endswith(COMPRESSED):
                if number == 0:
                    yield Piece(path, 0, size, size, values)
                continue
            start, end = (size * edge // self.count for edge in (number, number + 1))
            if start < end:
                yield Piece(path, start, end, size, values)
