"""Files as bounded input: workers read them, or Spark's reader where it must."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pyarrow as pa

from muntin.engine import SAMPLE_ROWS
from muntin.plan.nodes import SharedPlan
from muntin.planner import Draft
from muntin.planner.placement.homes import with_homes
from muntin.results import Outcome
from muntin.spark.bounded.job import cores_of, run_job
from muntin.spark.bounded.messages import MESSAGES_DDL
from muntin.spark.bounded.shipped import Shipped
from muntin.spark.bounded.source import FrameSource, check_plan
from muntin.spark.bounded.tasks import fold
from muntin.spark.environment.zones import session_zone
from muntin.spark.files.columns import UnlikeSparkError
from muntin.spark.files.files import Files
from muntin.spark.files.listing import LISTING, Listing, load, read_schema
from muntin.spark.files.parquet import read_parquet
from muntin.spark.files.pieces import Piece, Reader, cut, read_piece
from muntin.spark.files.text import TextFormat
from muntin.spark.frames import arrow_schema, spark_schema
from muntin.spark.session import session as current_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

logger = logging.getLogger("muntin.spark")

_CSV = {"header", "enforceschema", "inferschema", "samplingratio", "sep", "delimiter"}
# Options that workers know the meaning of, or that only matter for the schema.
_KNOWN: dict[str, set[str]] = {
    "parquet": {*LISTING, "mergeschema"},
    "csv": {*LISTING, *_CSV},
    "json": {*LISTING, "samplingratio", "primitivesasstring"},
}


class FilesSource:
    """Files of one format."""

    def __init__(self, files: Files, timezone: str | None = None) -> None:
        self._files = files
        self._session = current_session()
        self.zone = session_zone(self._session, timezone)
        self._options = {name.lower(): value for name, value in files.options}
        self._listing = Listing.of(self._session, files, self.zone.name)
        self._footer = footer = self._read_footer()
        if footer is None or self._listing.folders:
            self.schema = arrow_schema(self._frame.schema)
        else:
            self.schema = arrow_schema(footer)

    def _read_footer(self) -> StructType | None:
        """The columns of the files, where the first one tells them without Spark."""
        files = self._files
        if files.format != "parquet" or files.schema is not None or "mergeschema" in self._options:
            return None
        try:
            return read_schema(self._session, self._listing.paths()[0])
        except (UnlikeSparkError, IndexError):
            return None

    @cached_property
    def _frame(self) -> DataFrame:
        """The files through Spark's reader, told the columns where they are known."""
        files = self._files
        schema = self._footer if files.schema is None else files.schema
        reader = self._session.read.format(files.format).options(**self._reading(files))
        return load(reader if schema is None else reader.schema(schema), files)

    def _reading(self, files: Files) -> dict[str, str]:
        """The options that Spark's reader is given: times without a zone are in ours."""
        return {"timeZone": self.zone.name, **dict(files.options)}

    def sample(self) -> pa.Table | None:
        """The first rows of the first file, if workers can read it."""
        try:
            first = next(self._read(self._tasks[0][0], self.schema), None)
        except (UnlikeSparkError, IndexError):
            return None
        return None if first is None else first.slice(0, SAMPLE_ROWS)

    def restore(self, table: pa.Table) -> DataFrame:
        """A table as a Spark DataFrame."""
        return self._session.createDataFrame(table, spark_schema(table.schema))

    def placed(self, plan: SharedPlan, method: str | None, draft: Draft) -> SharedPlan:
        """The plan with its trees without groups on as many buckets as tasks run at once."""
        cores = cores_of(self._session)
        return with_homes(plan, cores, method=method, draft=draft)

    def run(
        self,
        plan: SharedPlan,
        tables: Mapping[str, pa.Table],
        *,
        buckets: int | None = None,
    ) -> Outcome:
        """Answer the queries of a plan."""
        check_plan(plan)
        try:
            return self._run(plan, tables, buckets)
        except UnlikeSparkError as error:
            logger.warning("the files go through Spark's reader: %s", error.message)
        return FrameSource(self._frame, self.zone.name).run(plan, tables, buckets=buckets)

    def _run(
        self, plan: SharedPlan, tables: Mapping[str, pa.Table], buckets: int | None
    ) -> Outcome:
        schema = pa.schema([plan.source.field(name) for name in plan.columns()])
        tasks, read = self._tasks, self._read
        numbers = self._session.range(0, len(tasks), 1, max(len(tasks), 1))

        def stage_a(shipped: Shipped) -> DataFrame:
            folded = partial(fold_pieces, shipped, read, schema, tasks)
            return numbers.mapInArrow(folded, MESSAGES_DDL)

        return run_job(self._session, plan, tables, stage_a, buckets=buckets)

    @cached_property
    def _tasks(self) -> list[list[Piece]]:
        unknown = sorted(self._options.keys() - _KNOWN[self._files.format])
        if unknown:
            raise UnlikeSparkError(f"workers do not know the option {unknown[0]}")
        paths = self._listing.paths()
        values = self._listing.values(self.schema)
        return cut(paths, values, self._session.sparkContext.defaultParallelism)

    @cached_property
    def _read(self) -> Reader:
        if self._files.format == "parquet":
            return read_parquet
        folders = {name.lower() for name in self._listing.folders}
        fields = tuple(name for name in self._frame.columns if name.lower() not in folders)
        separator = self._options.get("sep", self._options.get("delimiter", ","))
        if len(separator) != 1 or separator in '"\\\r\n':
            raise UnlikeSparkError(f"the separator is {separator!r}")
        header = self._files.format == "csv" and self._options.get("header") == "true"
        named = self._options.get("enforceschema") != "true"
        return TextFormat(self._files.format, fields, header, separator, self.zone, named).read


def fold_pieces(
    shipped: Shipped,
    read: Reader,
    schema: pa.Schema,
    tasks: Sequence[Sequence[Piece]],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Stage A over the pieces of the tasks whose numbers come."""
    numbers = [number for batch in batches for number in batch.column(0).to_pylist()]
    pieces = [piece for number in numbers for piece in tasks[number]]
    return fold(shipped, (table for piece in pieces for table in read_piece(read, piece, schema)))
