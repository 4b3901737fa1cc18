"""Where a stream's rows come from: a streaming DataFrame, and only the columns that are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from muntin.errors import DataError
from muntin.expressions.zones import Zone
from muntin.spark.environment.existing import is_connect, refuse_connect
from muntin.spark.files.files import Files
from muntin.spark.frames import quoted
from muntin.spark.session import session as current_session
from muntin.spark.streaming.tasks.stage_a import Reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class StreamSource:
    """A streaming DataFrame, and the columns of its rows as Arrow has them.

    Columns of types that Arrow lacks are not there for queries. Where the DataFrame carries names
    of files, ``reader`` gives the function that reads some columns of them in tasks.
    """

    frame: DataFrame
    schema: pa.Schema
    reader: Callable[[Sequence[str]], Reader] | None = None

    @property
    def session(self) -> SparkSession:
        """The session that the stream belongs to."""
        return self.frame.sparkSession

    def select(self, columns: Sequence[str]) -> DataFrame:
        """What Spark hands to tasks so that they get these columns."""
        if self.reader is not None:
            return self.frame
        return self.frame.select(*(quoted(name) for name in columns))

    def read(self, columns: Sequence[str]) -> Reader | None:
        """What turns that into rows; None where it is the rows."""
        return None if self.reader is None else self.reader(columns)


def log_places(frames: Sequence[DataFrame], first: int = 0) -> list[int | None]:
    """The number of the log that Spark keeps of each source of these frames, in order.

    A source that occurs again has an offset of its own and no log, which is None here. ``first``
    is the number of the first log.
    """
    known: list[Any] = []
    found: list[int | None] = []
    for frame in frames:
        leaves = frame._jdf.queryExecution().analyzed().collectLeaves()  # noqa: SLF001  no other way
        for leaf in map(leaves.apply, range(leaves.size())):
            if leaf.isStreaming():
                is_known = any(leaf.equals(other) for other in known)
                found.append(None if is_known else first + len(known))
                known += [] if is_known else [leaf]
    return found


def session_of(data: Any) -> SparkSession:
    """The session that a stream belongs to, which Spark can read as one."""
    if isinstance(data, Files):
        return current_session()
    if is_connect(data):
        raise refuse_connect("this DataFrame")
    if not hasattr(data, "isStreaming"):
        raise DataError(
            f"cannot run over data of type {type(data).__name__}",
            hint="give a streaming DataFrame, as spark.readStream returns it, or "
            "muntin.files(...); muntin.aggregate is for bounded data",
        )
    session: SparkSession = data.sparkSession
    return session


def stream_source(data: Any, zone: Zone) -> StreamSource:
    """The source that a streaming DataFrame is, or files that arrive; its times are in a zone."""
    session_of(data)
    if isinstance(data, Files):
        from muntin.spark.streaming.driver.files import files_source  # noqa: PLC0415  it imports this

        return files_source(data, zone)
    if not data.isStreaming:
        raise DataError(
            "the DataFrame is bounded, not a stream",
            hint="read it with spark.readStream, or answer the queries with muntin.aggregate",
        )
    names = [name.lower() for name in data.columns]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if len(set(data.columns)) < len(names):
        raise DataError(
            f"columns {', '.join(repeated)} appear more than once", hint="rename one of each"
        )
    return StreamSource(data, arrow_schema(data, zone))


def arrow_schema(frame: DataFrame, zone: Zone) -> pa.Schema:
    """The columns of a DataFrame as Arrow has them; timestamps are shown in a zone."""
    from pyspark.errors import PySparkException  # noqa: PLC0415  imported when it is used
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415

    fields = []
    for column in frame.schema.fields:
        try:
            kind = to_arrow_type(column.dataType, timezone=zone.name)
        except (PySparkException, TypeError):
            continue
        fields.append(pa.field(column.name, kind))
    return pa.schema(fields)
