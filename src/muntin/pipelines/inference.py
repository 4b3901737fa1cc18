"""The columns of files, found out from the first of them; without Spark."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from muntin.errors import DataError
from muntin.expressions import types as t
from muntin.expressions.problems import BindingError
from muntin.expressions.storage import spark_type
from muntin.queries.secrets import masked
from muntin.queries.source import shown

DECLARE_HINT = "check the path, or declare the columns after the name: (ts TIMESTAMP, ...)"
_BLOCK = 1 << 16


def infer(path: str, form: str, options: Mapping[str, Any]) -> pa.Schema:
    """The columns of Parquet, CSV or JSON files, in Spark's types.

    Folders named ``column=value`` give columns too. What CSV and JSON files hold is judged by
    the beginning of the first file; times in them are UTC.

    Raises:
        DataError: If there are no files, or the first cannot be read.
    """
    import pyarrow.dataset as ds  # noqa: PLC0415 - takes a while, and most files declare columns

    if "://" in path:
        raise DataError(f"the columns of {masked(path)} are not looked up", hint=DECLARE_HINT)
    found = _find(path)
    if found is None:
        raise DataError(f"there are no files at {shown(path)}", hint=DECLARE_HINT)
    hive = "hive" if isinstance(found, str) and Path(found).is_dir() else None
    try:
        if form == "json":
            names = ds.dataset(found, schema=pa.schema([]), format=form, partitioning=hive).files
            _check_first_object(names[0] if names else None)
        dataset = ds.dataset(found, format=_format(form, options), partitioning=hive)
        schema = dataset.schema
        empty = not schema.names  # a name may hold bytes that are no text
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        message = f"{masked(path)} cannot be read as {form}: {reason}"
        raise DataError(message, hint=DECLARE_HINT) from None
    if empty:
        raise DataError(f"there are no columns in the files at {masked(path)}", hint=DECLARE_HINT)
    bare = form == "csv" and not options["header"]
    return _as_spark(schema, zoned=form != "parquet", bare=bare)


def has_files(path: str) -> bool:
    """Whether anything is at a path or matches a pattern; so it is taken to be where others are.

    >>> has_files("no/such/folder"), has_files("no/*.csv"), has_files("s3://bucket/trades")
    (False, False, True)
    """
    return "://" in path or _find(path) is not None


def _find(path: str) -> str | list[str] | None:
    try:
        if Path(path).exists():
            return path
        matches = sorted(glob.glob(path, recursive=True))
    except (OSError, ValueError):
        # A name that no file can have.
        return None
    if matches and Path(matches[0]).is_dir():
        return matches[0]
    return [match for match in matches if Path(match).is_file()] or None


def _format(form: str, options: Mapping[str, Any]) -> Any:
    import pyarrow.dataset as ds  # noqa: PLC0415 - as above

    if form != "csv":
        return form
    from pyarrow import csv  # noqa: PLC0415 - only for CSV

    return ds.CsvFileFormat(
        parse_options=csv.ParseOptions(delimiter=options["delimiter"]),
        read_options=csv.ReadOptions(autogenerate_column_names=not options["header"]),
    )


def _check_first_object(path: str | None) -> None:
    """Refuse JSON that begins with anything but an object: Arrow ends the process at ``null``."""
    if path is None:
        return
    with pa.input_stream(path, compression="detect") as stream:
        start = b""
        while not start and (block := stream.read(_BLOCK)):
            start = block.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
    if start and not start.startswith(b"{"):
        shown_start = start[:20].decode(errors="replace").partition("\n")[0]
        raise ValueError(f"it begins with {shown_start!r}, and a line must be an object")


def _as_spark(schema: pa.Schema, *, zoned: bool, bare: bool) -> pa.Schema:
    fields = []
    for place, field in enumerate(schema):
        # Spark calls columns without a header _c0, _c1, ...; those of folders keep their names.
        name = f"_c{place}" if bare and field.name == f"f{place}" else field.name
        fields.append(pa.field(name, _type(field.type, zoned)))
    return pa.schema(fields)


def _type(stored: pa.DataType, zoned: bool) -> pa.DataType:
    if pa.types.is_null(stored):
        return t.STRING
    try:
        kind = spark_type(stored)
    except BindingError:
        # A column that no query can use; it does no harm.
        return stored
    return t.TIMESTAMP if zoned and kind == t.TIMESTAMP_NTZ else kind
