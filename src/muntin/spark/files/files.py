"""Files that workers read themselves, so that their rows never enter the JVM."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from muntin.errors import DataError, did_you_mean

Format = Literal["parquet", "csv", "json"]
FORMATS: tuple[Format, ...] = ("parquet", "csv", "json")


@dataclass(frozen=True)
class Files:
    """What :func:`files` describes: where the files are, and how Spark's reader is told to read.

    Attributes:
        paths: Files, folders or patterns, as Spark's readers take them.
        format: ``parquet``, ``csv`` or ``json``.
        schema: The columns, if they are not to be found out.
        options: Options of Spark's reader, those that the format begins with among them.
    """

    paths: tuple[str, ...]
    format: Format
    schema: Any
    options: tuple[tuple[str, str], ...]

    def in_zone(self, name: str) -> Files:
        """The same files, read with times in this zone where text and folders do not say theirs.

        >>> files("close.csv", "csv").in_zone("Asia/Tokyo").options[-1]
        ('timeZone', 'Asia/Tokyo')
        """
        if any(option.lower() == "timezone" for option, _ in self.options):
            return self
        return replace(self, options=(*self.options, ("timeZone", name)))

    def toArrow(self) -> pa.Table:  # noqa: N802  as Spark DataFrames call it
        """All rows, collected."""
        from muntin.spark.session import session  # noqa: PLC0415  only when rows are asked for

        reader = session().read.format(self.format).options(**dict(self.options))
        if self.schema is not None:
            reader = reader.schema(self.schema)
        return reader.load(list(self.paths)).toArrow()


def files(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    format: Format = "parquet",  # noqa: A002  as Spark's reader calls it
    *,
    schema: Any = None,
    **options: str | bool | int,
) -> Files:
    """Files that Spark's workers read themselves, so that no row passes through the JVM.

    Answers are the same as with Spark's reader. Where workers might read something differently
    (another file system, an unusual option, a value in unusual notation), Spark's reader is used.

    Args:
        path: A file, a folder, a pattern, or a list of these. Folders named ``column=value``
            become columns, as in Spark.
        format: ``parquet``, ``csv`` or ``json`` (one object per line).
        schema: The columns, as Spark's readers take them: ``"ts TIMESTAMP, price DOUBLE"`` or a
            StructType; or a pyarrow Schema. Without it, CSV and JSON are read once more to find
            the types.
        options: Options of Spark's reader. CSV begins with ``header=True``, with
            ``enforceSchema=False``, so that a file whose line of names gives other columns fails,
            and with ``inferSchema=True`` where there is no schema.

    >>> files("trades.csv", "csv", schema="ts TIMESTAMP, price DOUBLE").options
    (('header', 'true'), ('enforceSchema', 'false'))
    """
    if format not in FORMATS:
        raise DataError(
            f"there is no format {format!r}",
            hint=did_you_mean(str(format), FORMATS) or f"use one of {', '.join(FORMATS)}",
        )
    given = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not given:
        raise DataError("there are no paths", hint="give a file, a folder, or a list of them")
    # Spark would take columns by their place, whatever the line of names says.
    settings = {"header": "true", "enforceSchema": "false"} if format == "csv" else {}
    if format == "csv" and schema is None:
        settings["inferSchema"] = "true"
    settings |= {name: _text(value) for name, value in options.items()}
    paths = tuple(os.fspath(each) for each in given)
    return Files(paths, format, _spark_schema(schema), tuple(settings.items()))


def _spark_schema(schema: Any) -> Any:
    if not isinstance(schema, pa.Schema):
        return schema
    from muntin.spark.frames import spark_schema  # noqa: PLC0415  it brings pyspark

    return spark_schema(schema)


def _text(value: str | bool | int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
