"""``pipelines.read``: from a SQL file to a pipeline, or to all that is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from muntin.errors import MuntinError, Problem, QueryError, did_you_mean
from muntin.pipelines.checks import QueryChecker
from muntin.pipelines.model import (
    Pipeline,
    PipelineError,
    Place,
    SinkSpec,
    StreamSpec,
    TableSpec,
    plan_kept,
    plan_rows,
)
from muntin.pipelines.sources import Declarations
from muntin.queries import (
    CreateKeep,
    CreateQuery,
    CreateRows,
    CreateSink,
    CreateSource,
    DropKeep,
    DropQuery,
    Keep,
    ParsedFile,
    RowQuery,
    SourceText,
    parse_file,
)
from muntin.queries.asking.keeps import slice_keep
from muntin.queries.rows import selections
from muntin.queries.source import Lines, shown
from muntin.queries.spec import is_path, read_text
from muntin.sinks.databases.live import LIVE_HINT

EMPTY_HINT = "declare a stream and a query: CREATE STREAM ..., CREATE QUERY ..."


def read(source: str | Path, variables: Mapping[str, str] | None = None) -> Pipeline:
    """Read a SQL file: its path, or SQL text.

    Queries are checked against the columns of their streams and tables. Columns that a file does
    not declare are found out from the first of the files that its path leads to. Paths are
    relative to the folder of the SQL file, or to the working directory for text.

    Args:
        source: The path of a ``.sql`` file, or SQL text.
        variables: Values for ``${name}`` in options.

    Raises:
        PipelineError: With everything that is wrong.

    >>> pipeline = read('''
    ...     CREATE STREAM trades WITH (format = 'rate', rows_per_second = ${speed});
    ...     CREATE QUERY volume AS SELECT sum(vol) AS v
    ...       FROM trades [RANGE '1 minute' SLIDE '10 seconds']''', {"speed": "500"})
    >>> pipeline.stream("trades").options["rows_per_second"], len(pipeline.queries["trades"])
    (500, 1)
    """
    path = str(source) if isinstance(source, Path) or is_path(source) else None
    try:
        text = read_text(source)
    except QueryError as error:
        raise PipelineError(error.problems, path) from None
    reader = _Reader(text, path, variables or {})
    pipeline = reader.pipeline()
    if reader.problems or pipeline is None:
        raise PipelineError(sorted(dict.fromkeys(reader.problems), key=_position), path)
    return pipeline


def _position(problem: Problem) -> tuple[int, int]:
    return problem.line, problem.column


class _Reader:
    """The state of reading one file."""

    def __init__(self, text: str, file: str | None, variables: Mapping[str, str]) -> None:
        self.file = file
        self.parsed: ParsedFile = parse_file(text)
        self.lines = Lines(text)
        self.problems = list(self.parsed.problems)
        folder = Path.cwd() if file is None else Path(file).absolute().parent
        self.declarations = Declarations(file, folder, variables)
        self.queries: dict[str, CreateQuery | CreateRows] = {}
        self.streams: dict[str, StreamSpec] = {}
        self.tables: dict[str, TableSpec] = {}

    def pipeline(self) -> Pipeline | None:
        """The pipeline, or None after all problems are collected."""
        if not self.parsed.statements and not self.problems:
            self.problems.append(
                Problem("the file contains no statement", EMPTY_HINT, line=1, column=1)
            )
        self._declare()
        self._apply()
        routed = self._route()
        kept = self._keeps()
        sinks = self._sinks()
        self._check_live(sinks)
        self.problems += self.declarations.problems
        if self.problems:
            return None
        places = {one.query.name: self._place(one.start) for one in self.queries.values()}
        pipeline = Pipeline(
            file=self.file,
            streams=tuple(self.streams.values()),
            tables=tuple(self.tables.values()),
            queries={
                stream.name: tuple(one.query for one in routed[name])
                for name, stream in self.streams.items()
            },
            sinks=sinks,
            places=places,
            rows=tuple(one.query for one in self.queries.values() if isinstance(one, CreateRows)),
            keeps=kept,
        )
        self._check_together(pipeline)
        return pipeline

    def _check_together(self, pipeline: Pipeline) -> None:
        """Problems of streams that run together, and differ in what is one for all."""
        for run in pipeline.runs():
            option = run.difference()
            if option is not None:
                statement = self.queries[run.rows[0].name.lower()]
                names = " and ".join(stream.name for stream in run.streams)
                message = f"{names} run together, and differ in {option}"
                self._report(statement.start, message, f"give them one {option}")

    def _place(self, start: int) -> Place:
        return Place(self.file, *self.lines.slice(start, start).place(start))

    def _report(self, start: int, message: str, hint: str, text: SourceText | None = None) -> None:
        where = self.lines.slice(start, start) if text is None else text
        self.problems.append(where.problem(start, message, hint))

    def _declare(self) -> None:
        """Streams and tables, whose names are in one space."""
        seen: set[str] = set()
        for statement in self.parsed.statements:
            if not isinstance(statement, CreateSource):
                continue
            name = statement.name.lower()
            if name in seen:
                message = f"there are two streams or tables named {shown(statement.name)}"
                self._report(
                    statement.start, message, "rename one: letter case makes no difference"
                )
                continue
            seen.add(name)
            if statement.kind == "stream":
                stream = self.declarations.stream(statement)
                if stream is not None:
                    self.streams[name] = stream
            else:
                table = self.declarations.table(statement)
                if table is not None:
                    self.tables[name] = table

    def _apply(self) -> None:
        """Queries as they are after the last statement."""
        for statement in self.parsed.statements:
            if isinstance(statement, CreateQuery | CreateRows):
                self.queries[statement.query.name.lower()] = statement
            elif isinstance(statement, DropQuery):
                dropped = self.queries.pop(statement.name.lower(), None)
                if dropped is None and statement.name.lower() not in self.parsed.names["QUERY"]:
                    known = [one.query.name for one in self.queries.values()]
                    hint = did_you_mean(statement.name, known) or "there are no queries before"
                    message = f"there is no query named {shown(statement.name)}"
                    self._report(statement.start, message, hint)

    def _route(self) -> dict[str, list[CreateQuery]]:
        """The queries over each stream, checked against its columns."""
        names = self.parsed.names
        declared = {
            **dict.fromkeys(names["TABLE"], "table"),
            **dict.fromkeys(names["STREAM"], "stream"),
        }
        schemas = {table.name: table.schema for table in self.tables.values()}
        checkers = {
            name: QueryChecker(stream, schemas, declared) for name, stream in self.streams.items()
        }
        routed: dict[str, list[CreateQuery]] = {name: [] for name in self.streams}
        for statement in self.queries.values():
            if isinstance(statement, CreateRows):
                self._check_rows(statement.query)
                continue
            source = statement.query.source.lower()
            if source in checkers:
                routed[source].append(statement)
                self.problems += checkers[source].problems(statement)
            elif declared.get(source) != "stream":
                self._no_stream(statement, declared)
        return routed

    def _keeps(self) -> dict[str, tuple[Keep, ...]]:
        """What is kept of each stream after the last statement, checked against its columns."""
        found: dict[str, CreateKeep] = {}
        for one in self.parsed.statements:
            if isinstance(one, CreateKeep):
                name = one.keep.name
                if name.lower() in found and not one.replace:
                    message = f"there are two keeps named {shown(name)}"
                    self._report(one.start, message, "rename one, or write CREATE OR REPLACE KEEP")
                found[name.lower()] = one
            elif isinstance(one, DropKeep) and found.pop(one.name.lower(), None) is None:
                known = [each.keep.name for each in found.values()]
                hint = did_you_mean(one.name, known) or "no keep is defined before it"
                self._report(one.start, f"there is no keep named {shown(one.name)}", hint)
        kept: dict[str, tuple[Keep, ...]] = {}
        for each in found.values():
            stream = self._stream_of_keep(each)
            if stream is not None:
                kept[stream.name] = (*kept.get(stream.name, ()), slice_keep(each.keep))
        return kept

    def _stream_of_keep(self, statement: CreateKeep) -> StreamSpec | None:
        """The stream that something is kept of; None after all problems are reported."""
        keep = statement.keep
        stream = self.streams.get(keep.source.lower())
        if stream is None:
            if keep.source.lower() not in self.parsed.names["STREAM"]:
                hint = did_you_mean(keep.source, self.parsed.names["STREAM"].values())
                message = f"there is no stream {shown(keep.source)}"
                fallback = f"declare it: CREATE STREAM {shown(keep.source)} (...) WITH (...)"
                self._report(statement.from_start, message, hint or fallback)
            return None
        try:
            plan_kept(slice_keep(keep), stream, self.tables.values())
        except QueryError as error:
            self.problems += [
                each if each.line else self._at(statement.start, each) for each in error.problems
            ]
            return None
        except MuntinError as error:
            self._report(statement.from_start, error.message, error.hint or "correct it")
            return None
        return stream

    def _at(self, start: int, problem: Problem) -> Problem:
        where = self.lines.slice(start, start)
        return where.problem(start, problem.message, problem.hint, problem.query)

    def _check_rows(self, query: RowQuery) -> None:
        """Problems of a row query; none while a stream that it reads cannot be read itself."""
        names = [name.lower() for name in query.streams]
        if any(name in self.parsed.names["STREAM"] and name not in self.streams for name in names):
            return
        joined = [each.table.lower() for one in selections(query.body) for each in one.tables]
        if any(name in self.parsed.names["TABLE"] and name not in self.tables for name in joined):
            return
        try:
            plan_rows([query], self.streams.values(), self.tables.values())
        except QueryError as error:
            self.problems += error.problems

    def _no_stream(self, statement: CreateQuery, declared: Mapping[str, str]) -> None:
        query = statement.query
        message = f"there is no stream {shown(query.source)}"
        known = self.parsed.names["STREAM"].values()
        fallback = f"declare it: CREATE STREAM {shown(query.source)} (...) WITH (...)"
        hint = did_you_mean(query.source, known) or fallback
        if query.source.lower() in declared:
            message = f"{shown(query.source)} is a table, and a window ranges over a stream"
            hint = f"name a stream in FROM, and JOIN {shown(query.source)}"
        problem = query.text.problem(statement.from_start, message, hint, query.name)
        self.problems.append(problem)

    def _sinks(self) -> tuple[SinkSpec, ...]:
        inserted: dict[str, list[str]] = {}
        declared = self.parsed.names["SINK"]
        for statement in self.queries.values():
            sink = statement.sink
            if sink is None:
                continue
            inserted.setdefault(sink.name.lower(), []).append(statement.query.name)
            if sink.name.lower() not in declared:
                fallback = f"declare it: CREATE SINK {shown(sink.name)} WITH (format = '...')"
                hint = did_you_mean(sink.name, declared.values()) or fallback
                self._report(sink.start, f"there is no sink {shown(sink.name)}", hint)
        found: dict[str, SinkSpec | None] = {}
        for each in self.parsed.statements:
            if isinstance(each, CreateSink):
                self._sink(each, inserted.get(each.name.lower(), []), found)
        return tuple(sink for sink in found.values() if sink is not None)

    def _check_live(self, sinks: tuple[SinkSpec, ...]) -> None:
        """Problems of queries whose rows come too late for the live table they go to."""
        if self.problems or self.declarations.problems:
            return
        for sink in sinks:
            taken = {name.lower() for name in (self.queries if sink.takes_all else sink.queries)}
            for name, statement in self.queries.items():
                if not sink.options.get("live") or name not in taken:
                    continue
                if not isinstance(statement, CreateRows) or statement.query.aggregation:
                    continue  # windows are not rows that live
                plan = plan_rows([statement.query], self.streams.values(), self.tables.values())
                if plan.finals[0].shown == "final":
                    message = (
                        f"query {statement.query.name} shows a row once it has ended, so its live "
                        f"table in {sink.name} would be empty"
                    )
                    self._report(statement.start, message, LIVE_HINT)

    def _sink(
        self, statement: CreateSink, inserted: list[str], found: dict[str, SinkSpec | None]
    ) -> None:
        if statement.name.lower() in found:
            message = f"there are two sinks named {shown(statement.name)}"
            self._report(statement.start, message, "rename one: letter case makes no difference")
            return
        names = dict.fromkeys(inserted)
        for asked in statement.queries:
            created = self.queries.get(asked.name.lower())
            if created is not None:
                names[created.query.name] = None
            elif asked.name.lower() not in self.parsed.names["QUERY"]:
                known = [one.query.name for one in self.queries.values()]
                hint = did_you_mean(asked.name, known) or "name queries of this file"
                self._report(asked.start, f"there is no query named {shown(asked.name)}", hint)
        found[statement.name.lower()] = self.declarations.sink(statement, tuple(names))
