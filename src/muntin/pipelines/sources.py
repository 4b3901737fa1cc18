"""From declarations to streams, tables and sinks."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from muntin.errors import DataError, MuntinError, Problem
from muntin.expressions import types as t
from muntin.expressions.storage import spark_type
from muntin.expressions.tree import BindingError
from muntin.pipelines.model import Place, SinkSpec, StreamSpec, TableSpec
from muntin.pipelines.options import FILE_FORMATS, KAFKA_SERVERS, RATE_COLUMNS, OptionReader
from muntin.plan.timeline import Timeline
from muntin.queries import CreateSink, CreateSource
from muntin.queries.secrets import masked
from muntin.queries.source import shown
from muntin.windows import DurationLike, duration
from muntin.windows.duration import is_plain

_COMMON = (
    "time",
    "lateness",
    "idle",
    "advance_when_idle",
    "on_bad_row",
    "on_error",
    "max_ahead",
    "side_output",
    "timezone",
    "path",
    "refresh",
)
_PATHS = ("path", "side_output")


class Declarations:
    """Reads declarations; what is wrong with them is kept in ``problems``.

    Args:
        file: The path of the SQL file as it was given; None for text.
        folder: What paths are relative to.
        variables: Values for ``${name}``.
    """

    def __init__(self, file: str | None, folder: Path, variables: Mapping[str, str]) -> None:
        self._file = file
        self._folder = folder
        self._variables = variables
        self.problems: list[Problem] = []

    def stream(self, statement: CreateSource) -> StreamSpec | None:
        """The stream, after its problems are kept; None if not even queries can be checked.

        Options with problems have their defaults: a file with problems is never run.
        """
        reader, form, options = self._options(statement)
        schema = self._schema(statement, reader, form, options)
        stream = None
        timeline = None
        if schema is not None:
            timeline = self._check_stream(reader, schema, options)
        if schema is not None and timeline is not None:
            stream = StreamSpec(
                name=statement.name,
                format=form,
                schema=schema,
                declared=statement.columns is not None,
                time=timeline.column,
                lateness=options["lateness"],
                idle=options["idle"],
                advance_when_idle=options["advance_when_idle"],
                on_bad_row=options["on_bad_row"],
                on_error=options["on_error"],
                max_ahead=options["max_ahead"],
                side_output=options["side_output"],
                timezone=options["timezone"],
                path=options.get("path"),
                options=_own(options),
                place=self._place(statement),
            )
        self.problems += reader.problems
        return stream

    def table(self, statement: CreateSource) -> TableSpec | None:
        """The table, or None after its problems are kept."""
        reader, form, options = self._options(statement)
        schema = self._schema(statement, reader, form, options)
        self.problems += reader.problems
        if schema is None or reader.problems:
            return None
        return TableSpec(
            name=statement.name,
            format=form,
            schema=schema,
            declared=statement.columns is not None,
            path=options["path"],
            refresh=options["refresh"],
            options=_own(options),
            place=self._place(statement),
        )

    def sink(self, statement: CreateSink, queries: tuple[str, ...]) -> SinkSpec | None:
        """The sink of some queries, or None after its problems are kept."""
        reader, form, options = self._options(statement)
        self.problems += reader.problems
        if reader.problems:
            return None
        place = self._place(statement)
        takes_all = not queries and not statement.queries
        return SinkSpec(statement.name, form, options, queries, takes_all, place)

    def _options(
        self, statement: CreateSource | CreateSink
    ) -> tuple[OptionReader, str, dict[str, Any]]:
        reader = OptionReader(statement, self._variables)
        form, options = reader.read()
        for name in _PATHS:
            if options.get(name):
                options[name] = self._absolute(options[name])
        return reader, form, options

    def _absolute(self, path: str) -> str:
        return path if "://" in path else str(self._folder / Path(path).expanduser())

    def _place(self, statement: CreateSource | CreateSink) -> Place:
        return Place(self._file, *statement.text.place(statement.start))

    def _schema(
        self, statement: CreateSource, reader: OptionReader, form: str, options: dict[str, Any]
    ) -> pa.Schema | None:
        if form == "rate":
            if statement.columns is not None:
                columns = ", ".join(RATE_COLUMNS.names)
                hint = f"leave them out: they are {columns}"
                reader.problem("a rate stream has columns of its own", hint)
            return RATE_COLUMNS
        if statement.columns is not None:
            _check_nested(statement, reader, options.get("value_format", form))
            return statement.columns
        if form == "kafka":
            hint = "declare those of its messages: CREATE STREAM name (ts TIMESTAMP, ...)"
            reader.problem("a kafka stream needs columns", hint, KAFKA_SERVERS)
        if form not in FILE_FORMATS or reader.problems:
            return None
        try:
            return infer(options["path"], form, options)
        except DataError as error:
            reader.problem(error.message, error.hint, "path")
            return None

    def _check_stream(
        self, reader: OptionReader, schema: pa.Schema, options: dict[str, Any]
    ) -> Timeline | None:
        """The times of the stream, after problems of its options; None where there are none."""
        if "time" not in options:
            return None
        try:
            timeline = Timeline.of(schema, options["time"])
        except MuntinError as error:
            hint = error.hint if error.hint and "=" not in error.hint else None
            reader.problem(error.message, hint or "name it: time = 'ts'", "time")
            return None
        _check_length(reader, "lateness", options["lateness"], timeline)
        if options["advance_when_idle"] is not None and timeline.plain:
            message = f"the time column {timeline.column} is a plain integer, which no clock moves"
            reader.problem(message, "leave out advance_when_idle", "advance_when_idle")
        for key in ("idle", "advance_when_idle"):
            _check_clock(reader, key, options[key])
        if not timeline.plain:
            _check_length(reader, "max_ahead", options["max_ahead"], timeline)
        return timeline


def _check_nested(statement: CreateSource, reader: OptionReader, form: str) -> None:
    """Report arrays and structs where there are none: in lines of text, and in tables."""
    assert statement.columns is not None
    nested = [each for each in statement.columns if pa.types.is_nested(each.type)]
    if nested and (form == "csv" or statement.kind == "table"):
        where = "a table" if statement.kind == "table" else "CSV"
        message = f"{where} has no arrays and structs, and the column {nested[0].name} is one"
        reader.problem(message, "streams of json, parquet and kafka have them")


def _own(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in _COMMON}


def _check_clock(reader: OptionReader, key: str, value: DurationLike | None) -> None:
    if value is not None and (is_plain(value) or duration(value) <= 0):
        reader.problem(f"{key} is {value!r}", "write a duration, as in '1 minute'", key)


def _check_length(
    reader: OptionReader, key: str, value: DurationLike | None, timeline: Timeline
) -> None:
    if value is None or not duration(value):
        return
    if timeline.plain and not is_plain(value):
        message = f"{key} is a duration, but the time column {timeline.column} a plain integer"
        reader.problem(message, f"write {key} as a number", key)
    if not timeline.plain and is_plain(value):
        reader.problem(f"{key} is {value}, which has no unit", "write it as in '10 seconds'", key)


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
