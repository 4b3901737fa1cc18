"""``muntin import``: a file of Spark's or Flink's window queries, as a Muntin file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from muntin.errors import Problem, QueryError
from muntin.pipelines.checks import QueryChecker
from muntin.pipelines.importers.declarations import DeclarationTranslator
from muntin.pipelines.importers.partners import join_partners
from muntin.pipelines.importers.queries import QueryTranslator, check_row_sink, check_sink
from muntin.pipelines.importers.reader import Dialect, Entry, detect, read_entries, roles
from muntin.pipelines.importers.statements import (
    ForeignQuery,
    ForeignTable,
    Note,
    Notes,
    SessionZone,
    Skipped,
)
from muntin.pipelines.importers.views import ViewWriter
from muntin.pipelines.importers.writer import block, query_text
from muntin.pipelines.model import Pipeline, PipelineError, plan_rows
from muntin.pipelines.reader import read
from muntin.queries import CreateQuery, CreateRows
from muntin.queries.reader import QueryNames
from muntin.queries.rows import sources, timeless
from muntin.queries.spec import is_path, read_text

NOTHING_HINT = "CREATE TABLE and SELECT over windows, in Spark's or Flink's SQL, are carried over"
ZONE_HINT = "a stream has one; import what belongs to the other from a file of its own"
SINK_HINT = "a sink that no query names would take the results of all"
_ROUNDS = 4


def import_sql(source: str | Path, dialect: Literal["auto", "spark", "flink"] = "auto") -> Imported:
    """Translate a file with window queries of Spark or Flink: its path, or SQL text.

    Raises:
        PipelineError: If the file cannot be read, or nothing of it can be carried over.

    >>> print(import_sql('''
    ...     CREATE TABLE trades (ts TIMESTAMP(3), vol BIGINT, WATERMARK FOR ts AS ts)
    ...       WITH ('connector' = 'filesystem', 'path' = '/data', 'format' = 'parquet');
    ...     SELECT sum(vol) AS v FROM trades
    ...       GROUP BY HOP(ts, INTERVAL '5' MINUTES, INTERVAL '12' MINUTES);
    ... ''').text)
    CREATE STREAM trades (ts TIMESTAMP_NTZ, vol BIGINT)
      WITH (format = 'parquet', path = '/data', time = 'ts');
    <BLANKLINE>
    CREATE QUERY q2 AS
      SELECT sum(vol) AS v
      FROM trades [RANGE '12 minutes' SLIDE '5 minutes' OFFSET '2 minutes'];
    <BLANKLINE>
    """
    path = str(source) if isinstance(source, Path) or is_path(source) else None
    try:
        text = read_text(Path(path) if path is not None else source)
    except QueryError as error:
        raise PipelineError(error.problems, path) from None
    chosen: Dialect = detect(text) if dialect == "auto" else dialect
    return _Importer(text, path, chosen).imported()


class _Importer:
    """The state of translating one file."""

    def __init__(self, text: str, file: str | None, dialect: Dialect) -> None:
        self.file = file
        self.dialect = dialect
        self.flink = dialect == "flink"
        self.entries: list[Entry]
        self.notes: Notes
        self.entries, self.notes = read_entries(text, dialect)
        # Statements for names that nothing declares, by kind and name.
        self.extra: dict[tuple[str, str], str] = {}

    def imported(self) -> Imported:
        """The whole translation."""
        self._remark_skipped()
        timezone = self._timezone()
        self._join_partners()
        self.written = ViewWriter(self.entries, self.notes).write()
        foreign = [one.foreign for one in self.entries if one.foreign is not None]
        self.roles = roles(foreign)
        folder = Path.cwd() if self.file is None else Path(self.file).absolute().parent
        self.declarations = DeclarationTranslator(
            self.notes, self.roles, self.flink, folder, timezone
        )
        self.joins: dict[int, CreateRows] = {}
        self.queries = self._queries()
        self._declare()
        self._check()
        self._write()
        pipeline = self._settled()
        notes = tuple(self.notes.sorted())
        return Imported(self._text(), notes, self.dialect, self.file, pipeline)

    def _remark_skipped(self) -> None:
        """Statements that are not part of a pipeline."""
        for number, entry in enumerate(self.entries):
            if isinstance(entry.foreign, Skipped):
                self.notes.statement = number
                self.notes.remark(entry.foreign.remark)
                entry.settled = True

    def _timezone(self) -> str | None:
        """The time zone that the file sets for its session."""
        found: str | None = None
        for number, entry in enumerate(self.entries):
            one = entry.foreign
            if not isinstance(one, SessionZone):
                continue
            entry.settled = True
            if found not in (None, one.name):
                self.notes.statement = number
                message = f"another time zone than {found}, {one.name}, is left out"
                self.notes.add(one.start, message, ZONE_HINT)
            found = found or one.name
        return found

    def _join_partners(self) -> None:
        """EXISTS and IN become joins, before views say what their columns stand for."""
        foreign = [one.foreign for one in self.entries]
        tables = {one.name.lower(): one for one in foreign if isinstance(one, ForeignTable)}
        for one in foreign:
            if isinstance(one, ForeignTable | ForeignQuery) and one.select is not None:
                join_partners(one.select, tables)

    def _queries(self) -> dict[int, CreateQuery]:
        foreign = [one.foreign for one in self.entries]
        views = [one.view for one in foreign if isinstance(one, ForeignQuery)]
        named = {name.lower() for name in views if name is not None}
        tables = {one.name.lower(): one for one in foreign if isinstance(one, ForeignTable)}
        types = self.declarations.types(list(tables.values()))
        translator = QueryTranslator(
            self.notes, self.roles, tables, types, self.flink, self.written
        )
        names = QueryNames(named)
        found: dict[int, CreateQuery] = {}
        for number, entry in enumerate(self.entries):
            one = entry.foreign
            if not isinstance(one, ForeignTable | ForeignQuery) or one.select is None:
                continue
            self.notes.statement = number
            for remark in one.remarks if isinstance(one, ForeignQuery) else ():
                self.notes.remark(remark)
            query = translator.translate(number, entry, names, named)
            if isinstance(query, CreateRows):
                self.joins[number] = query
            elif query is not None:
                found[number] = query
        for joined in self.joins.values():
            times = {one.stream.lower(): one.time for one in sources(joined.query.body)}
            self.declarations.times |= {name: time for name, time in times.items() if time}
        return found

    def _declare(self) -> None:
        """Streams and tables, declared ones where they stand, and others before all."""
        asked = [statement.query for statement in self.queries.values()]
        declared: set[str] = set()
        for number, entry in enumerate(self.entries):
            one = entry.foreign
            if isinstance(one, ForeignTable):
                declared.add(one.name.lower())
                self.notes.statement = number
                if self.roles[one.name.lower()] != "sink":
                    entry.texts.append(self.declarations.source(one, asked))
        for statement in self.queries.values():
            query, self.notes.statement = statement.query, -1
            read_from = [(query.source, statement.from_start)]
            read_from += [(join.table, join.start or statement.start) for join in query.joins]
            for name, start in read_from:
                if name.lower() not in declared:
                    declared.add(name.lower())
                    text = self.declarations.undeclared(name, start, asked)
                    self.extra["source", name.lower()] = text

    def _check(self) -> None:
        """Queries against the columns of their streams; those that cannot run are given up."""
        texts = [*self.extra.values(), *(text for entry in self.entries for text in entry.texts)]
        try:
            known = read("\n".join(texts) + "\n")
        except PipelineError:
            # What is wrong with a declaration is said when the whole text is settled.
            return
        tables = {table.name: table.schema for table in known.tables}
        names = {name: role for name, role in self.roles.items() if role != "sink"}
        checkers = {one.name: QueryChecker(one, tables, names) for one in known.streams}
        for number, statement in list(self.queries.items()):
            stream = known.stream(statement.query.source)
            query = statement.query
            if (query.time or "").lower() == stream.time.lower():
                self.queries[number] = replace(statement, query=replace(query, time=None))
            self.notes.statement = number
            for problem in checkers[stream.name].problems(statement):
                self.notes.take(problem)
                self.queries.pop(number, None)
        for number, joined in list(self.joins.items()):
            self.notes.statement = number
            try:
                plan_rows([joined.query], known.streams, known.tables)
            except QueryError as error:
                for problem in error.problems:
                    self.notes.take(problem)
                del self.joins[number]
            else:
                self.joins[number] = replace(joined, query=timeless(joined.query))

    def _write(self) -> None:
        """Queries where they stand, and the sinks that they go to."""
        asked: dict[int, CreateQuery | CreateRows] = {**self.queries, **self.joins}
        sinks = {one.sink.name.lower() for one in asked.values() if one.sink is not None}
        declared: dict[str, ForeignTable] = {}
        for number, entry in enumerate(self.entries):
            one, self.notes.statement = entry.foreign, number
            if not isinstance(one, ForeignTable) or self.roles[one.name.lower()] != "sink":
                continue
            declared[one.name.lower()] = one
            if one.name.lower() in sinks:
                entry.texts.append(self.declarations.sink(one))
            elif one.select is None:
                self.notes.add(one.start, "no query goes to this sink", SINK_HINT)
        for number, statement in asked.items():
            sink, self.notes.statement = statement.sink, number
            name = None if sink is None else sink.name
            if name is not None and name.lower() in declared:
                if isinstance(statement, CreateRows):
                    check_row_sink(statement, declared[name.lower()], self.notes)
                else:
                    check_sink(statement, declared[name.lower()], self.notes)
            elif name is not None and sink is not None and name.lower() in sinks:
                sinks.discard(name.lower())
                text = self.declarations.undeclared_sink(name, sink.start)
                self.extra["sink", name.lower()] = text
            self.entries[number].texts.append(query_text(statement.query, name))

    def _blocks(self) -> list[tuple[int, str]]:
        """The parts of the text, each with the number of its statement."""
        notes = self.notes.by_statement()
        found = [(-1, block([], notes.get(-1, []), list(self.extra.values()), None))]
        for number, entry in enumerate(self.entries):
            original = None if entry.texts or entry.settled else entry.original
            found.append(
                (number, block(entry.comments, notes.get(number, []), entry.texts, original))
            )
        return [(number, text) for number, text in found if text]

    def _text(self) -> str:
        return "\n\n".join(text for _, text in self._blocks()) + "\n"

    def _settled(self) -> Pipeline:
        """What the text says; statements that are refused are given up until none is."""
        for _ in range(_ROUNDS):
            if not self.extra and not any(entry.texts for entry in self.entries):
                break
            try:
                return read(self._text())
            except PipelineError as error:
                self._give_up(error)
        problems = [note.problem for note in self.notes.sorted()]
        nothing = Problem("nothing in the file can be translated", NOTHING_HINT)
        raise PipelineError([*problems, nothing], self.file)

    def _give_up(self, error: PipelineError) -> None:
        """Take the statements out that are refused, and note why."""
        line, starts = 1, list[tuple[int, int]]()
        for number, text in self._blocks():
            starts.append((line, number))
            line += text.count("\n") + 2
        for problem in error.problems:
            number = [number for first, number in starts if first <= problem.line][-1]
            self.notes.statement = number
            if number < 0:
                self.notes.add(0, problem.message, problem.hint or NOTHING_HINT)
                self.extra.clear()
                continue
            one = self.entries[number].foreign
            offset = 0 if one is None or isinstance(one, Skipped) else one.start
            self.notes.add(offset, problem.message, problem.hint or NOTHING_HINT)
            self.entries[number].texts.clear()
            self.queries.pop(number, None)
            self.joins.pop(number, None)
        self._drop_idle_sinks()

    def _drop_idle_sinks(self) -> None:
        """A sink that no query names would take the results of all."""
        asked: list[CreateQuery | CreateRows] = [*self.queries.values(), *self.joins.values()]
        used = {one.sink.name.lower() for one in asked if one.sink is not None}
        for entry in self.entries:
            one = entry.foreign
            name = one.name.lower() if isinstance(one, ForeignTable) else ""
            if self.roles.get(name) == "sink" and name not in used:
                entry.texts.clear()
        for kind, name in list(self.extra):
            if kind == "sink" and name not in used:
                del self.extra[kind, name]


@dataclass(frozen=True)
class Imported:
    """A foreign file, translated.

    Attributes:
        text: The Muntin file, which ``pipelines.read`` accepts.
        notes: What could not be carried over, in the order of the foreign file.
        dialect: ``spark`` or ``flink``.
        file: The path of the foreign file; None for text.
        pipeline: What the Muntin file says.
    """

    text: str
    notes: tuple[Note, ...]
    dialect: Dialect
    file: str | None
    pipeline: Pipeline

    @property
    def lost(self) -> tuple[Note, ...]:
        """The notes of what answers may depend on."""
        return tuple(note for note in self.notes if note.lost)
