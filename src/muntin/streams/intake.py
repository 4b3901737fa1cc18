"""Batches as they come in: brought to the declared types, rows too far ahead set aside."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from muntin.errors import DataError
from muntin.faults import bad_rows
from muntin.frames import read_frame
from muntin.plan import Timeline


@dataclass(frozen=True)
class Batch:
    """One batch that came in.

    Attributes:
        kept: The rows that the engine sees, with the types that the stream was declared with.
        rows: How many rows came.
        ahead: How many of them were set aside: their time is too far ahead of the clock.
        restore: The way back to the kind of frame the batch came in.
    """

    kept: pa.Table
    rows: int
    ahead: int
    restore: Callable[[pa.Table], Any]


class Intake:
    """What takes in the batches of one stream.

    Args:
        source: The declared columns.
        timeline: The time column.
        max_ahead: How far ahead of the clock a time may be, in microseconds; None for any.
    """

    def __init__(self, source: pa.Schema, timeline: Timeline, max_ahead: int | None) -> None:
        self.source = source
        self.timeline = timeline
        self.max_ahead = None if timeline.plain else max_ahead

    def read(self, batch: Any) -> Batch:
        """A batch, or a DataError where it cannot be read, which changes nothing."""
        given = read_frame(batch)
        rows = self._fitted(given.table())
        kept = self._within_horizon(rows)
        return Batch(kept, rows.num_rows, rows.num_rows - kept.num_rows, given.restore)

    def check_columns(self, batch: Batch, read: Iterable[str]) -> None:
        """Whether a batch has a time, and the columns that row queries read."""
        for name in dict.fromkeys([self.timeline.column, *read]):
            if name not in batch.kept.column_names:
                raise DataError(
                    f"the batch has no column {name!r}",
                    hint="queries read it: add it, or fill it with NULLs",
                )

    def timely(self, batch: Batch, watermark: int | None) -> tuple[pa.Table, int | None]:
        """The rows that have a time and are not late, and the largest time of all.

        Late rows count there as well: a stream that has some is not silent.
        """
        ticks = self.timeline.to_ticks(batch.kept[self.timeline.column].combine_chunks())
        wanted = ticks.is_valid()
        if watermark is not None:
            wanted = pc.and_kleene(wanted, pc.greater_equal(ticks, watermark)).fill_null(False)
        largest: int | None = pc.max(ticks).as_py()
        return batch.kept.filter(wanted), largest

    def bad_rows(self, batch: Batch) -> int:
        """How many rows have no time that can be used."""
        column = self.timeline.column
        kept = batch.kept
        missing = kept[column].null_count if column in kept.column_names else 0
        return int(missing + batch.ahead)

    def bad_rows_error(self, rows: int) -> DataError:
        """What to say where such rows end the stream."""
        return bad_rows(rows, f"column {self.timeline.column!r}")

    def _fitted(self, rows: pa.Table) -> pa.Table:
        """The rows with the types that the stream was declared with."""
        for place, name in enumerate(rows.column_names):
            wanted = self.source.field(name).type if name in self.source.names else rows[name].type
            if rows[name].type == wanted:
                continue
            try:
                if not _is_alike(rows[name].type, wanted):
                    raise pa.ArrowInvalid("values of another kind are not converted")
                column = rows[name].cast(wanted)
            except pa.ArrowException as error:
                raise DataError(
                    f"column {name!r} is of type {rows[name].type}, but the stream's is {wanted}",
                    hint=f"cast it first: {error}",
                ) from error
            rows = rows.set_column(place, name, column)
        return rows

    def _within_horizon(self, rows: pa.Table) -> pa.Table:
        """The rows whose time is not too far ahead of the clock."""
        if self.max_ahead is None or self.timeline.column not in rows.column_names:
            return rows
        horizon = clock.time_ns() // 1000 + self.max_ahead
        ticks = self.timeline.to_ticks(rows[self.timeline.column].combine_chunks())
        latest = pc.max(ticks).as_py()
        if latest is None or latest <= horizon:
            return rows
        return rows.filter(pc.less_equal(ticks, horizon).fill_null(True))

    def tick(self, at: Any) -> int:
        """A moment as a tick: a timestamp, a date or a number, as in the time column."""
        timeline = self.timeline
        try:
            if at is None or (isinstance(at, float) and not at.is_integer()):
                raise ValueError(f"give a value of type {timeline.type}")
            found = timeline.to_ticks(pa.array([at], timeline.type)).to_pylist()[0]
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise DataError(
                f"{at!r} is not a time of the column {timeline.column!r}, of type {timeline.type}",
                hint=str(error),
            ) from error
        return int(found)


def _is_alike(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a type may stand for those of another: the same kind in another width.

    pandas has whole numbers beside NULLs as doubles; those are exact, or the cast is refused.
    """
    kinds = (
        (pa.types.is_integer, pa.types.is_floating),
        (pa.types.is_decimal, pa.types.is_integer),
        (pa.types.is_timestamp,),
        (pa.types.is_date,),
        (pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary),
        (pa.types.is_binary, pa.types.is_large_binary),
        (pa.types.is_nested,),
    )
    return pa.types.is_null(given) or any(
        any(check(given) for check in kind) and any(check(wanted) for check in kind)
        for kind in kinds
    )
