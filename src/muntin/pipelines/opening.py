"""From what a file declares to what Spark reads: streams and tables that are opened."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any, cast

import muntin
from muntin.errors import DataError, MuntinError
from muntin.pipelines import rate
from muntin.pipelines.model import StreamSpec, TableSpec

_KAFKA_HINT = (
    "give Spark its Kafka source: "
    "--conf spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:{version}"
)


def open_stream(session: Any, spec: StreamSpec) -> Any:
    """The stream, as ``muntin.run`` takes it: files that arrive, or a streaming DataFrame."""
    if spec.format == "rate":
        return _rate(session, spec)
    if spec.format == "kafka":
        return decoded(_kafka(session, spec), spec)
    path = cast("str", spec.path)
    _check_there(path, f"stream {spec.name}")
    if spec.format == "parquet":
        return muntin.files(path, "parquet", schema=spec.schema, **spec.spark_options())
    # Spark's reader makes NULLs of text that is no value, so that a torn line is one bad row.
    from muntin.spark.frames import spark_schema  # noqa: PLC0415  it brings pyspark

    reader = session.readStream.format(spec.format).schema(spark_schema(spec.schema))
    return reader.options(**spec.spark_options()).load(path)


def open_table(spec: TableSpec) -> Any:
    """The table, as files that are read when they are asked for, and then again."""
    _check_there(spec.path, f"table {spec.name}")
    return muntin.files(
        spec.path, cast("Any", spec.format), schema=spec.schema, **spec.spark_options()
    )


def _check_there(path: str, what: str) -> None:
    # What lies elsewhere, Spark looks up.
    if "://" not in path and not Path(path).exists() and not glob.glob(path, recursive=True):
        raise DataError(
            f"{what}: there is nothing at {path}", hint="make the folder first, or mend the path"
        )


def _rate(session: Any, spec: StreamSpec) -> Any:
    reader = session.readStream.format("rate")
    numbered = reader.option("rowsPerSecond", spec.options["rows_per_second"]).load()
    return rate.trades(numbered, symbols=spec.options["symbols"], seed=spec.options["seed"])


def _kafka(session: Any, spec: StreamSpec) -> Any:
    try:
        return session.readStream.format("kafka").options(**spec.spark_options()).load()
    except Exception as error:
        # Only Spark's own errors have a condition; others are no fault of the declaration.
        condition = getattr(error, "getCondition", lambda: None)()
        if condition is None:
            raise
        reason = str(error).strip().splitlines()[0]
        hint = _KAFKA_HINT.format(version=session.version)
        raise MuntinError(f"stream {spec.name}: {reason}", hint=hint) from error


def decoded(frame: Any, spec: StreamSpec) -> Any:
    """The declared columns, from the messages that a column ``value`` holds.

    A message that is not understood gives NULLs, so that it is a bad row.
    """
    from muntin.spark.frames import quoted, spark_schema  # noqa: PLC0415  it brings pyspark

    fields = spark_schema(spec.schema).fields
    columns = ", ".join(f"{quoted(each.name)} {each.dataType.simpleString()}" for each in fields)
    text = columns.replace("\\", "\\\\").replace("'", "\\'")
    there = f", map('timeZone', '{spec.timezone}')" if spec.timezone is not None else ""
    reader = f"from_{spec.options['value_format']}(CAST(value AS STRING), '{text}'{there})"
    return frame.selectExpr(f"{reader} AS message").select("message.*")
