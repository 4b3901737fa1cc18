"""What a SQL file says, as values: streams, tables, sinks, and the queries over each stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pyarrow as pa

from muntin.errors import MuntinError, Problem, QueryError, did_you_mean
from muntin.expressions.zone_names import zone
from muntin.plan import SharedPlan, Strategy
from muntin.plan.operators import RowPlan, StreamSchema
from muntin.plan.timeline import Timeline
from muntin.planner import build_plan
from muntin.planner.rows import row_plan
from muntin.queries import AnyQuery, Keep, Query, RowQuery
from muntin.windows import DurationLike

if TYPE_CHECKING:
    from muntin.synopses import Kept

# What Spark's readers call our options.
_SPARK_NAMES = {"header": "header", "delimiter": "sep", "files_per_batch": "maxFilesPerTrigger"}


@dataclass(frozen=True)
class Place:
    """Where something was written: a file (None for text), and line and column from 1.

    >>> str(Place("trades.sql", 3, 8))
    'trades.sql:3:8'
    """

    file: str | None
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file or 'text'}:{self.line}:{self.column}"


@dataclass(frozen=True)
class StreamSpec:
    """A stream.

    Attributes:
        name: What FROM calls it.
        format: ``parquet``, ``csv``, ``json``, ``rate`` or ``kafka``.
        schema: Its columns, as declared, or as found in its files.
        declared: Whether the file declares them.
        time: The column of event times, as the schema spells it.
        lateness: How far rows may be out of order.
        idle: How long it may be silent before it holds streams that are joined with it back no
            longer; None for ever.
        advance_when_idle: How long it may be silent before the clock moves it; None for ever.
        on_bad_row: ``skip`` or ``fail``.
        on_error: What a value that fails does: ``null`` or ``fail``.
        max_ahead: How far ahead of the clock a time may be; None for any.
        side_output: The folder that rows go to which are late or bad; None for nowhere.
        timezone: Where local times are; None for that of the Spark session.
        path: Files, a folder or a pattern; absolute unless it has a scheme. None for other
            formats.
        options: The format's own options, under the names that files give them.
        place: Where it was declared.
    """

    name: str
    format: str
    schema: pa.Schema
    declared: bool
    time: str
    lateness: DurationLike
    idle: DurationLike | None
    advance_when_idle: DurationLike | None
    on_bad_row: Literal["skip", "fail"]
    on_error: Literal["null", "fail"]
    max_ahead: DurationLike | None
    side_output: str | None
    timezone: str | None
    path: str | None
    # Options of Kafka may hold credentials.
    options: Mapping[str, Any] = field(repr=False)
    place: Place

    def spark_options(self) -> dict[str, str]:
        """The options under the names that Spark's sources give them."""
        options = _spark_options(self.format, self.options)
        if self.timezone is not None and self.format in ("csv", "json"):
            options["timeZone"] = self.timezone
        return options


@dataclass(frozen=True)
class TableSpec:
    """A table that queries may join: ``parquet``, ``csv`` or ``json`` files.

    ``refresh`` says how often its files are looked at for a change; None for never.
    """

    name: str
    format: str
    schema: pa.Schema
    declared: bool
    path: str
    refresh: DurationLike | None
    options: Mapping[str, Any]
    place: Place

    def spark_options(self) -> dict[str, str]:
        """The options under the names that Spark's readers give them."""
        return _spark_options(self.format, self.options)


@dataclass(frozen=True)
class SinkSpec:
    """A place that results go to.

    ``queries`` are the names of those it takes; all, where the file names none.
    """

    name: str
    format: str
    options: Mapping[str, Any]
    queries: tuple[str, ...]
    takes_all: bool
    place: Place


@dataclass(frozen=True)
class RunSpec:
    """Streams that run together, with all queries over them.

    A stream is a run of its own, unless queries over rows read it: these connect streams.
    """

    streams: tuple[StreamSpec, ...]
    queries: tuple[Query, ...]
    rows: tuple[RowQuery, ...] = ()
    keeps: tuple[Keep, ...] = ()

    # What streams that run together must agree in.
    SHARED: ClassVar = ("on_error", "on_bad_row", "max_ahead", "side_output", "timezone")

    @property
    def name(self) -> str:
        """The stream, or all of them."""
        return "+".join(stream.name for stream in self.streams)

    @property
    def asked(self) -> tuple[AnyQuery, ...]:
        """All queries."""
        return (*self.queries, *self.rows)

    def difference(self) -> str | None:
        """An option that the streams must have in common, and have not."""
        first, *others = self.streams
        for option in self.SHARED:
            if any(getattr(each, option) != getattr(first, option) for each in others):
                return option
        return None


@dataclass(frozen=True)
class Pipeline:
    """A SQL file: each stream is a run of its own, unless row queries connect it with others.

    Attributes:
        file: The path of the file as it was given; None for text.
        streams: The streams, in order.
        tables: The tables, in order.
        queries: The queries over each stream, by the stream's name.
        sinks: The sinks, in order.
        places: Where each query was written, by its name.
        rows: Queries over rows with lifetimes, which may read several streams.
        keeps: What is kept of each stream to be asked, by the stream's name.
    """

    file: str | None
    streams: tuple[StreamSpec, ...]
    tables: tuple[TableSpec, ...]
    queries: Mapping[str, tuple[Query, ...]]
    sinks: tuple[SinkSpec, ...]
    places: Mapping[str, Place]
    rows: tuple[RowQuery, ...] = ()
    keeps: Mapping[str, tuple[Keep, ...]] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """What paths in the file are relative to."""
        return Path.cwd() if self.file is None else Path(self.file).absolute().parent

    def stream(self, name: str) -> StreamSpec:
        """The stream of a name, in any letter case."""
        for stream in self.streams:
            if stream.name.lower() == name.lower():
                return stream
        names = [stream.name for stream in self.streams]
        hint = did_you_mean(name, names) or f"there are {len(names)} streams"
        raise MuntinError(f"there is no stream {name}", hint=hint)

    def runs(self) -> tuple[RunSpec, ...]:
        """The streams that run together, in order; those without queries among them.

        >>> from muntin.pipelines import read
        >>> stream = "CREATE STREAM {} (ts BIGINT, k BIGINT) WITH (format = 'csv', path = '{}');"
        >>> pipeline = read("".join(stream.format(name, name) for name in "abc") + '''
        ...     CREATE QUERY q AS SELECT x.k FROM a [RANGE 5] x, c [RANGE 5] y WHERE x.k = y.k''')
        >>> [run.name for run in pipeline.runs()]
        ['a+c', 'b']
        """
        groups = [{stream.name.lower()} for stream in self.streams]
        for query in self.rows:
            read = {name.lower() for name in query.streams}
            met = [group for group in groups if group & read]
            groups = [group for group in groups if not group & read] + [set().union(*met)]
        order = [stream.name.lower() for stream in self.streams]
        found = []
        for group in sorted(groups, key=lambda group: min(map(order.index, group))):
            streams = tuple(each for each in self.streams if each.name.lower() in group)
            queries = tuple(query for each in streams for query in self.queries[each.name])
            rows = tuple(query for query in self.rows if query.source.lower() in group)
            kept = tuple(keep for each in streams for keep in self.keeps.get(each.name, ()))
            found.append(RunSpec(streams, queries, rows, kept))
        return tuple(found)

    def sinks_of(self, query: str) -> tuple[SinkSpec, ...]:
        """The sinks that take the results of a query; none if they go nowhere but the screen."""
        return tuple(
            sink
            for sink in self.sinks
            if sink.takes_all or query.lower() in (name.lower() for name in sink.queries)
        )

    def schemas(self) -> dict[str, pa.Schema]:
        """The columns of the tables, by name."""
        return {table.name: table.schema for table in self.tables}

    def plan(self, stream: str, *, strategy: Strategy = "cells") -> SharedPlan:
        """What the queries over a stream share."""
        source = self.stream(stream)
        return build_plan(
            self.queries[source.name],
            source.schema,
            source.time,
            strategy=strategy,
            tables=self.schemas(),
            zone=zone(source.timezone or "UTC"),
        )

    def kept(self, stream: str) -> list[Kept]:
        """What is kept of a stream, planned."""
        source = self.stream(stream)
        return [plan_kept(keep, source, self.tables) for keep in self.keeps.get(source.name, ())]

    def row_plan(self) -> RowPlan:
        """The operators of the queries over rows with lifetimes."""
        return plan_rows(self.rows, self.streams, self.tables)


def plan_rows(
    queries: Iterable[RowQuery], streams: Iterable[StreamSpec], tables: Iterable[TableSpec] = ()
) -> RowPlan:
    """The plan of row queries over streams of a file, and its tables."""
    known = list(streams)
    schemas = {
        each.name: StreamSchema(each.schema, Timeline.of(each.schema, each.time)) for each in known
    }
    local = next((each.timezone for each in known if each.timezone), None)
    joined = {each.name: each.schema for each in tables}
    return row_plan(queries, schemas, zone(local or "UTC"), joined)


def plan_kept(keep: Keep, stream: StreamSpec, tables: Iterable[TableSpec]) -> Kept:
    """The plan of what is kept of a stream."""
    from muntin.synopses import plan_keep  # noqa: PLC0415 - it brings numba

    return plan_keep(
        keep,
        stream.schema,
        stream.time,
        tables={each.name: each.schema for each in tables},
        zone=zone(stream.timezone or "UTC"),
    )


def _spark_options(form: str, options: Mapping[str, Any]) -> dict[str, str]:
    given = {name: value for name, value in options.items() if value is not None}
    if form == "kafka":
        return {name: str(value) for name, value in given.items() if name != "value_format"}
    return {
        _SPARK_NAMES[name]: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in given.items()
        if name in _SPARK_NAMES
    }


class PipelineError(QueryError):
    """Everything wrong with a SQL file; its text shows every problem.

    Args:
        problems: What is wrong, in the order of the file.
        file: The path of the file as the user wrote it; None for text.

    >>> print(PipelineError([Problem("no column vl", "did you mean vol?", "a", 3, 8, "SELECT vl")],
    ...                     "trades.sql"))
    trades.sql:3:8: query a: no column vl
      SELECT vl
             ^
      Hint: did you mean vol?
    """

    def __init__(self, problems: Sequence[Problem], file: str | None = None) -> None:
        super().__init__(problems)
        self.file = file
        self.message = "\n".join(located(problem, file) for problem in self.problems)

    def __reduce__(self) -> tuple[type[PipelineError], tuple[tuple[Problem, ...], str | None]]:  # type: ignore[override]
        return type(self), (self.problems, self.file)


def located(problem: Problem, file: str | None) -> str:
    """A problem with its place first, as compilers write it, so that editors find it."""
    place = file or "text"
    if problem.line:
        place += f":{problem.line}:{problem.column}"
    name = f"query {problem.query}: " if problem.query else ""
    lines = [f"{place}: {name}{problem.message}"]
    if problem.source is not None and problem.line:
        lines += [f"  {problem.source}", f"  {' ' * (problem.column - 1)}^"]
    if problem.hint:
        lines.append(f"  Hint: {problem.hint}")
    return "\n".join(lines)
