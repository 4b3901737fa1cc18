"""Spark's schemas as Arrow schemas, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from muntin.errors import DataError
from muntin.spark.environment.existing import is_connect, refuse_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

# What stands for types that Arrow or Muntin has no columns of: no expression accepts it.
_OPAQUE = pa.struct([])


def arrow_schema(schema: StructType) -> pa.Schema:
    """The columns as ``toArrow`` gives them; one of a type that Arrow lacks stays, unusable."""
    return pa.schema([pa.field(field.name, _arrow_type(field)) for field in schema.fields])


def _arrow_type(field: Any) -> pa.DataType:
    from pyspark.errors import PySparkException  # noqa: PLC0415  imported when it is used
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415

    try:
        return to_arrow_type(field.dataType, timezone="UTC")
    except PySparkException:
        return _OPAQUE


def spark_schema(schema: pa.Schema) -> StructType:
    """Spark's columns for the columns of a result."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    return from_arrow_schema(schema)


def check_bounded(frame: DataFrame) -> DataFrame:
    """The frame itself, unless it is a stream or belongs to Spark Connect."""
    if is_connect(frame):
        raise refuse_connect("this DataFrame")
    if frame.isStreaming:
        raise DataError(
            "this DataFrame is a stream, and aggregate() answers when its input ends",
            hint="use muntin.run(...) for streams",
        )
    repeated = sorted({name for name in frame.columns if frame.columns.count(name) > 1})
    if repeated:
        raise DataError(
            f"columns {', '.join(repeated)} appear more than once", hint="rename one of each"
        )
    return frame


def quoted(name: str) -> str:
    """A column's name as Spark's expressions spell it.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"
