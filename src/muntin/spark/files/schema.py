"""The columns of Parquet files, read off a footer without a Spark job."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from muntin.spark.frames import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_WRITTEN_BY_SPARK = b"org.apache.spark.sql.parquet.row.metadata"
# Settings that change what Spark makes of a column; with others than these, it is asked.
_USUAL = {
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.mergeSchema": "false",
}
_PHYSICAL = {
    "BOOLEAN": pa.bool_(),
    "INT32": pa.int32(),
    "INT64": pa.int64(),
    "INT96": pa.timestamp("us", "UTC"),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BYTE_ARRAY": pa.binary(),
    "FIXED_LEN_BYTE_ARRAY": pa.binary(),
}
_INTEGERS = {
    (8, True): pa.int8(),
    (16, True): pa.int16(),
    (32, True): pa.int32(),
    (64, True): pa.int64(),
    (8, False): pa.int16(),
    (16, False): pa.int32(),
    (32, False): pa.int64(),
    (64, False): pa.decimal128(20, 0),
}


def read_schema(session: SparkSession, path: str) -> StructType | None:
    """What Spark's reader takes the file's columns to be; None where only Spark can tell."""
    if any(session.conf.get(name, usual) != usual for name, usual in _USUAL.items()):
        return None
    try:
        with pq.ParquetFile(path) as file:
            return _schema_of(file)
    except (pa.ArrowException, OSError):
        return None


def _schema_of(file: pq.ParquetFile) -> StructType | None:
    from pyspark.sql.types import StructType  # noqa: PLC0415  imported when it is used

    written = (file.metadata.metadata or {}).get(_WRITTEN_BY_SPARK)
    if written is not None:
        return StructType.fromJson(json.loads(written))
    fields = []
    for place in range(len(file.schema)):
        column = file.schema.column(place)
        kind = _arrow_type(column)
        if kind is None or column.max_repetition_level or column.path != column.name:
            return None
        fields.append(pa.field(column.name, kind))
    return spark_schema(pa.schema(fields))


def _arrow_type(column: Any) -> pa.DataType | None:
    """The type of a flat column, by what is written beside it."""
    logical = json.loads(column.logical_type.to_json())
    match logical["Type"]:
        case "None":
            return _PHYSICAL[column.physical_type]
        case "Int":
            return _INTEGERS[logical["bitWidth"], logical["isSigned"]]
        case "String" | "Enum" | "JSON":
            return pa.string()
        case "Date":
            return pa.date32()
        case "Decimal" if logical["precision"] <= 38:
            return pa.decimal128(logical["precision"], logical["scale"])
        case "Timestamp" if logical["timeUnit"] in ("milliseconds", "microseconds"):
            return pa.timestamp("us", "UTC" if logical["isAdjustedToUTC"] else None)
        case _:
            return None
