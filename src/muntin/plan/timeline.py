"""The attribute that windows are cut by: how its values become integer ticks and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from muntin.errors import DataError, WindowError, did_you_mean
from muntin.expressions.storage import check_readable
from muntin.windows import DurationLike, Window, duration
from muntin.windows.duration import is_plain

Ticks = npt.NDArray[np.int64]

# Ticks of one unit in microseconds; finer units are floored to microseconds.
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_DAY = 86_400_000_000
# Twice a tick must fit 64 bits, so that no window arithmetic on ticks can overflow.
MAX_TICK = 2**61


@dataclass(frozen=True)
class Timeline:
    """A column of timestamps, dates or whole numbers, read as 64-bit ticks.

    A tick is a microsecond since the epoch (UTC), or one unit of a plain integer column.

    >>> Timeline("ts", pa.timestamp("ms", "UTC")).from_ticks(np.array([1_500_000]))
    <pyarrow.lib.TimestampArray object at ...>
    [
      1970-01-01 00:00:01.500Z
    ]
    """

    column: str
    type: pa.DataType

    @classmethod
    def of(cls, schema: pa.Schema, column: str) -> Timeline:
        """The timeline of a schema's column, found regardless of case as Spark does."""
        if not isinstance(column, str):
            raise DataError(
                f"time is {column!r}, not a name", hint='name the time column, as in time="ts"'
            )
        matches = [name for name in schema.names if name.lower() == column.lower()]
        exact = [name for name in matches if name == column] or matches
        if not exact:
            raise DataError(
                f"there is no time column {column!r}",
                hint=did_you_mean(column, schema.names) or "name it with time=",
            )
        if len(exact) > 1:
            raise DataError(f"the time column {column!r} is ambiguous", hint="rename one of them")
        check_readable(schema.field(exact[0]), DataError)
        timeline = cls(exact[0], schema.field(exact[0]).type)
        timeline._check_type()
        return timeline

    @property
    def plain(self) -> bool:
        """Whether ticks are plain integers rather than microseconds."""
        return bool(pa.types.is_integer(self.type))

    @property
    def resolution(self) -> int:
        """The smallest step, in ticks, that the column's type can show."""
        if pa.types.is_timestamp(self.type):
            return _MICROSECONDS.get(self.type.unit, 1)
        return _DAY if pa.types.is_date(self.type) else 1

    def lateness(self, lateness: DurationLike) -> int:
        """How far rows may be out of order, in ticks.

        >>> Timeline("ts", pa.timestamp("us")).lateness("10 seconds")
        10000000
        """
        ticks = duration(lateness)
        if ticks < 0:
            raise WindowError(f"lateness must be 0 or more, not {lateness!r}")
        if self.plain and not is_plain(lateness):
            raise WindowError(
                f"the time column {self.column!r} is a plain integer, the lateness a duration",
                hint="give lateness as a plain integer",
            )
        if not self.plain and is_plain(lateness) and ticks:
            raise WindowError(
                f"lateness is {lateness!r}, which has no unit", hint="write it as in '10 seconds'"
            )
        return ticks

    def silence(
        self, option: Literal["idle", "advance_when_idle"], limit: DurationLike | None
    ) -> int | None:
        """How long a stream is silent, in microseconds of the clock, before that means something.

        >>> Timeline("ts", pa.timestamp("us")).silence("advance_when_idle", "1 second")
        1000000
        """
        if limit is None:
            return None
        if option == "advance_when_idle" and self.plain:
            raise WindowError(
                f"the time column {self.column!r} is a plain integer, which no clock moves",
                hint="leave out advance_when_idle, or read times from a TIMESTAMP column",
            )
        if is_plain(limit) or duration(limit) <= 0:
            raise WindowError(
                f"{option} must be a positive duration, not {limit!r}",
                hint="write it as in '1 minute'",
            )
        return duration(limit)

    def _check_type(self) -> None:
        kinds = (pa.types.is_timestamp, pa.types.is_date, pa.types.is_integer)
        if not any(kind(self.type) for kind in kinds):
            raise DataError(
                f"column {self.column!r} of type {self.type} cannot be a time column",
                hint="use a timestamp, a date or an integer column",
            )

    def check(self, window: Window) -> None:
        """Refuse a window whose unit or bounds this column cannot express."""
        if window.measure == "rows":
            return
        if self.plain and window.unit == "duration":
            raise WindowError(
                f"the time column {self.column!r} is a plain integer, but the window is a duration",
                hint="give RANGE and SLIDE as plain integers, or make the column a timestamp",
            )
        if not self.plain and window.unit == "plain":
            raise WindowError(
                f"the time column {self.column!r} is a {self.type}, "
                "but the window is a plain integer",
                hint="give RANGE and SLIDE as durations, for example '5 minutes'",
            )
        slide = window.slide or window.range
        if any(ticks % self.resolution for ticks in (window.range, slide, window.phase)):
            raise WindowError(
                f"bounds of this window do not fit the time column {self.column!r} of type "
                f"{self.type}",
                hint="cast the column to a finer type, for example TIMESTAMP",
            )

    def to_ticks(self, values: pa.Array) -> pa.Array:
        """An int64 array of ticks, NULL where the time is NULL; finer units are floored."""
        if pa.types.is_timestamp(self.type):
            return self._timestamp_ticks(values)
        if pa.types.is_date32(self.type):
            return self._scaled(values.view(pa.int32()).cast(pa.int64()), _DAY)
        if pa.types.is_date64(self.type):
            # Milliseconds that should be whole days; what they are not is floored.
            days = self._in_range(values.view(pa.int64()), MAX_TICK // 1000)
            return _floor_divide(days, 86_400_000, _DAY)
        try:
            ticks = values.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise DataError(
                f"the time column {self.column!r} has a value beyond 64-bit integers",
                hint="filter such rows out before",
            ) from error
        return self._in_range(ticks)

    def _timestamp_ticks(self, values: pa.Array) -> pa.Array:
        raw = values.view(pa.int64())
        if self.type.unit == "ns":
            return _floor_divide(raw, 1000, 1)
        return self._scaled(raw, _MICROSECONDS[self.type.unit])

    def _scaled(self, units: pa.Array, ticks: int) -> pa.Array:
        if ticks == 1:
            return self._in_range(units)
        try:
            return self._in_range(pc.multiply_checked(units, ticks))
        except pa.ArrowInvalid as error:
            raise self._too_far() from error

    def _in_range(self, ticks: pa.Array, limit: int = MAX_TICK) -> pa.Array:
        bounds = pc.min_max(ticks)
        low, high = bounds["min"].as_py(), bounds["max"].as_py()
        if low is not None and (low < -limit or high > limit):
            raise self._too_far()
        return ticks

    def _too_far(self) -> DataError:
        return DataError(
            f"the time column {self.column!r} has a value more than 2**61 ticks from zero",
            hint="filter such rows out before",
        )

    def from_ticks(self, ticks: Ticks) -> pa.Array:
        """Window bounds in the type and zone of the column."""
        values: Any = pa.array(ticks, pa.int64())
        if pa.types.is_timestamp(self.type):
            if self.type.unit == "ns":
                return self._nanoseconds(values)
            if self.resolution > 1:
                values = pc.divide(values, self.resolution)
            return values.view(self.type)
        if pa.types.is_date(self.type):
            days = pc.divide(values, _DAY).cast(pa.int32()).view(pa.date32())
            return days.cast(self.type)
        try:
            return values.cast(self.type)
        except pa.ArrowInvalid as error:
            raise self._unfit("BIGINT") from error

    def _nanoseconds(self, values: pa.Array) -> pa.Array:
        try:
            return pc.multiply_checked(values, 1000).view(self.type)
        except pa.ArrowInvalid as error:
            raise self._unfit("microseconds") from error

    def _unfit(self, wider: str) -> DataError:
        return DataError(
            f"a window bound does not fit the type of {self.column!r}, {self.type}",
            hint=f"cast the time column to {wider}",
        )


def _floor_divide(values: pa.Array, divisor: int, factor: int) -> pa.Array:
    """Floor, not truncate: an instant before the epoch belongs to the earlier unit."""
    mask = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    units = np.floor_divide(values.fill_null(0).to_numpy(zero_copy_only=False), divisor)
    return pa.array(units * factor, mask=mask)


def check_one_clock(timelines: Mapping[str, Timeline]) -> None:
    """Refuse that an idle stream takes a watermark that is of another kind than its times."""
    plain = {each.plain: name for name, each in timelines.items()}
    if len(plain) > 1:
        raise WindowError(
            f"the times of stream {plain[True]} are numbers and those of stream {plain[False]} "
            "are not, so an idle one cannot take the watermark of the other",
            hint="leave out idle=, or give both streams times of one kind",
        )
