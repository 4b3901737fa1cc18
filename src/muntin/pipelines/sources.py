"""From declarations to streams, tables and sinks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from muntin.errors import DataError, MuntinError, Problem
from muntin.pipelines.formats import FILE_FORMATS, KAFKA_SERVERS, RATE_COLUMNS
from muntin.pipelines.inference import infer
from muntin.pipelines.model import Place, SinkSpec, StreamSpec, TableSpec
from muntin.pipelines.options import OptionReader
from muntin.plan.timeline import Timeline
from muntin.queries import CreateSink, CreateSource
from muntin.windows import DurationLike, duration
from muntin.windows.duration import is_plain

_COMMON = (
    "time",
    "lateness",
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
        """The stream, or None after its problems are kept."""
        reader, form, options = self._options(statement)
        schema = self._schema(statement, reader, form, options)
        stream = None
        if schema is not None:
            self._check_stream(reader, schema, options)
        if schema is not None and not reader.problems:
            stream = StreamSpec(
                name=statement.name,
                format=form,
                schema=schema,
                declared=statement.columns is not None,
                time=Timeline.of(schema, options["time"]).column,
                lateness=options["lateness"],
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
    ) -> None:
        if "time" not in options:
            return
        try:
            timeline = Timeline.of(schema, options["time"])
        except MuntinError as error:
            hint = error.hint if error.hint and "=" not in error.hint else None
            reader.problem(error.message, hint or "name it: time = 'ts'", "time")
            return
        _check_length(reader, "lateness", options["lateness"], timeline)
        _check_idle(reader, options["advance_when_idle"], timeline)
        if not timeline.plain:
            _check_length(reader, "max_ahead", options["max_ahead"], timeline)


def _own(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in _COMMON}


def _check_idle(reader: OptionReader, value: DurationLike | None, timeline: Timeline) -> None:
    key = "advance_when_idle"
    if value is not None and timeline.plain:
        message = f"the time column {timeline.column} is a plain integer, which no clock moves"
        reader.problem(message, f"leave out {key}", key)
    elif value is not None and (is_plain(value) or duration(value) <= 0):
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
