"""Expressions that polars evaluates."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from muntin.expressions import types as t
from muntin.expressions.binding.bound import Bound
from muntin.expressions.evaluation.compiler import Compiler
from muntin.expressions.evaluation.evaluator import Evaluated, single
from muntin.expressions.nested import extract
from muntin.expressions.storage import spark_type, standard

# Below this many rows, polars' optimizer takes longer than the work it saves.
SMALL = 30_000
# Any column of the frame: beside it, outputs that polars finds to be constant get its height.
_HEIGHT = pl.first().alias("height")


class Program:
    """Polars expressions for a list of bounds, evaluated together."""

    def __init__(self, bounds: Sequence[Bound]) -> None:
        self._bounds = bounds
        compiler = Compiler()
        parts = [compiler.compile(bound.root) for bound in bounds]
        self._names = compiler.names
        self._nested = compiler.nested
        self._stages = compiler.stages
        self._outputs = [part.value.alias(f"v{i}") for i, part in enumerate(parts)] + [
            part.failed.alias(f"e{i}") for i, part in enumerate(parts) if part.failed is not None
        ]
        self._can_fail = [part.failed is not None for part in parts]
        read = {
            name
            for expression in [*self._outputs, *(e for stage in self._stages for e in stage)]
            for name in expression.meta.root_names()
        }
        self._constants = [one for name, one in compiler.constants.items() if name in read]

    def run(self, table: pa.Table) -> list[Evaluated]:
        """Evaluate on a batch."""
        if not self._bounds:
            return []
        try:
            frame = self._select(self._frame(table))
        except pl.exceptions.PolarsError as error:
            raise self._fault(str(error)) from error
        self._check_height(frame, table.num_rows)
        return [self._output(frame, index) for index in range(len(self._bounds))]

    def _select(self, frame: pl.DataFrame) -> pl.DataFrame:
        if frame.height < SMALL:
            for stage in self._stages:
                frame = frame.with_columns(stage)
            return frame.select(_HEIGHT, *self._outputs)
        lazy = frame.lazy()
        for stage in self._stages:
            lazy = lazy.with_columns(stage)
        return lazy.select(_HEIGHT, *self._outputs).collect()

    def _frame(self, table: pa.Table) -> pl.DataFrame:
        columns = {ours: incoming(table.column(name)) for name, ours in self._names.items()}
        for step, ours in self._nested.items():
            values, failed = extract(table, step)
            columns |= {ours: incoming(values), f"{ours}_failed": pa.array(failed)}
        if not columns:
            columns = {"": table.column(0)}
        frame = pl.from_arrow(pa.table(columns), rechunk=False)
        assert isinstance(frame, pl.DataFrame)
        return frame.hstack([one.new_from_index(0, frame.height) for one in self._constants])

    def _check_height(self, frame: pl.DataFrame, rows: int) -> None:
        """Every output has a value for every row: whatever has not is a bug of ours."""
        for column in frame.get_columns():
            if len(column) != rows:
                raise self._fault(f"{len(column)} values for {rows} rows")

    def _fault(self, what: str) -> RuntimeError:
        keys = ", ".join(bound.key for bound in self._bounds)
        return RuntimeError(f"internal error: {what} in one of {keys}")

    def _output(self, frame: pl.DataFrame, index: int) -> Evaluated:
        values = outgoing(frame.get_column(f"v{index}"), self._bounds[index].type)
        if not self._can_fail[index]:
            return Evaluated(values)
        failed = frame.get_column(f"e{index}")
        if not failed.any():
            return Evaluated(values)
        errors = failed.to_arrow()
        return Evaluated(pc.if_else(errors, pa.scalar(None, values.type), values), errors)


def incoming(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column as polars shall see it: dates and timestamps as integers, strings as stored.

    Many small chunks become one: every operation costs a little for each chunk.
    """
    kind = spark_type(column.type)
    if column.num_chunks > 1 and len(column) < column.num_chunks * SMALL:
        column = pa.chunked_array([column.combine_chunks()])
    if kind == t.STRING and not pa.types.is_dictionary(column.type):
        return column
    column = standard(column, kind)
    if kind == t.DATE:
        return column.cast(pa.int32())
    return column.cast(pa.int64()) if t.is_time(kind) else column


def outgoing(series: pl.Series, kind: pa.DataType) -> pa.Array:
    """A computed column as an Arrow array of exactly this type."""
    if t.is_decimal(kind):
        unscaled = series.cast(pl.Decimal(38, 0)).to_arrow()
        # Only the type changes: both hold unscaled 128-bit integers.
        return pa.Array.from_buffers(
            kind, len(unscaled), unscaled.buffers(), unscaled.null_count, unscaled.offset
        )
    array = series.to_arrow()
    return array if array.type == kind else single(pa.chunked_array([array.cast(kind)]))
