"""Results of bounded input as Spark DataFrames: small ones sent anew, large ones where they are."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from muntin.spark.bounded.messages import Part, rows_of_query
from muntin.spark.frames import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Results that nobody holds any more. Python may notice in the middle of a call to the JVM, which
# is no moment for another one.
_forgotten: deque[tuple[DataFrame, Any]] = deque()


class KeptResults:
    """What stage B gave, kept by the executors for as long as somebody holds a result."""

    def __init__(self, frame: DataFrame, broadcast: Any) -> None:
        self.frame = frame
        held = weakref.finalize(self, _forgotten.append, (frame, broadcast))
        held.atexit = False
        self._held = held

    def release(self) -> None:
        """Let the executors forget at once."""
        if self._held.alive:
            self._held()
        release_forgotten()


def release_forgotten() -> None:
    """Let the executors forget what nobody holds."""
    while _forgotten:
        frame, broadcast = _forgotten.popleft()
        if frame.sparkSession.sparkContext._jsc is not None:  # noqa: SLF001  no public name
            frame.unpersist()
            broadcast.unpersist()


@dataclass(frozen=True)
class SmallAnswer:
    """A result that the driver holds, put together when it is asked for."""

    session: SparkSession
    schema: Callable[[], pa.Schema]
    parts: Sequence[Part]

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return sum(part.count for part in self.parts)

    def table(self) -> pa.Table:
        """All rows."""
        return self._table

    @cached_property
    def _table(self) -> pa.Table:
        found = [part.table() for part in self.parts]
        return pa.concat_tables([self.schema().empty_table(), *found]).combine_chunks()

    def head(self, rows: int) -> pa.Table:
        """A few rows."""
        return self._table.slice(0, rows)

    def frame(self) -> DataFrame:
        """All rows as a Spark DataFrame."""
        return self.session.createDataFrame(self._table, spark_schema(self._table.schema))


@dataclass(frozen=True)
class KeptAnswer:
    """A result that the executors hold."""

    kept: KeptResults
    place: int
    schema: pa.Schema
    num_rows: int

    def table(self) -> pa.Table:
        """All rows, collected."""
        rows = self._own().select("queries", "counts", "small", "large").toArrow()
        found = list(rows_of_query(self.place, rows.to_batches()))
        return pa.Table.from_batches(found, self.schema)

    def head(self, rows: int) -> pa.Table:
        """A few rows."""
        return self.frame().limit(rows).toArrow().cast(self.schema)

    def frame(self) -> DataFrame:
        """All rows as a Spark DataFrame."""
        frame = self._own().mapInArrow(
            partial(rows_of_query, self.place), spark_schema(self.schema)
        )
        # Whoever holds the frame holds what it is read from.
        frame.__dict__["_muntin_kept"] = self.kept
        return frame

    def _own(self) -> DataFrame:
        """What executors hold of this query, with others."""
        from pyspark.sql import functions as f  # noqa: PLC0415  imported when it is used

        return self.kept.frame.where(f.array_contains("queries", self.place))
