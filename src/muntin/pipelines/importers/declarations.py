"""From CREATE TABLE of Spark and Flink to CREATE STREAM, TABLE and SINK."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from sqlglot import exp

from muntin.errors import MuntinError
from muntin.expressions.types import NAMES, is_decimal, name_of
from muntin.pipelines.importers.options import CONSOLE_HINT, OptionTranslator
from muntin.pipelines.importers.reader import Role
from muntin.pipelines.importers.statements import ForeignTable, Notes, Watermark, column_type
from muntin.pipelines.importers.writer import declaration
from muntin.pipelines.options import FILE_FORMATS
from muntin.pipelines.sources import infer
from muntin.queries import Query, canonical_text
from muntin.queries.source import shown
from muntin.queries.sql.aggregate_calls import as_call
from muntin.windows import duration, duration_text

GUESS_HINT = "its columns are guessed from the queries: check their types, and where its rows are"
TIME_HINT = "say which column holds it: time = 'ts'"
LATENESS_HINT = "add lateness = '10 seconds', as much as withWatermark says"
_TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE")


class DeclarationTranslator:
    """Translates declarations; what cannot be carried over is noted.

    Args:
        notes: Takes it.
        roles: What each table is for.
        flink: Whether the file is Flink's.
        folder: What paths are relative to.
        timezone: That of the file's session, if it sets one.
    """

    def __init__(
        self,
        notes: Notes,
        roles: Mapping[str, Role],
        flink: bool,
        folder: Path,
        timezone: str | None = None,
    ) -> None:
        self.notes = notes
        self.zone = {} if timezone is None else {"timezone": timezone}
        self.roles = roles
        self.flink = flink
        self.folder = folder
        # The times that joins of streams compare, by the streams' names in lower case.
        self.times: dict[str, str] = {}

    def types(self, tables: Sequence[ForeignTable]) -> dict[str, dict[str, str]]:
        """The types of the declared columns of each table; names are in lower case."""
        return {
            table.name.lower(): {
                column.name.lower(): column_type(column, self.flink) or ""
                for column in table.columns or ()
            }
            for table in tables
        }

    def source(self, table: ForeignTable, queries: Sequence[Query]) -> str:
        """CREATE STREAM or CREATE TABLE."""
        for remark in table.remarks:
            self.notes.remark(remark)
        kind = self.roles[table.name.lower()]
        options = OptionTranslator(table, self.notes, self.flink).source(kind)
        time = self._time(table, queries) if kind == "stream" else None
        if table.columns is not None:
            columns = self._columns(table, time)
        else:
            columns = self._found(table, options, queries, time)
        if kind == "stream":
            options |= self._stream_options(table, columns, time)
        return declaration(kind.upper(), table.name, columns, options)

    def undeclared(self, name: str, start: int, queries: Sequence[Query]) -> str:
        """A stream or table that queries read, and nothing declares."""
        kind = self.roles[name.lower()]
        self.notes.add(start, f"nothing declares {shown(name)}", GUESS_HINT)
        times = [query.time for query in queries if query.source.lower() == name.lower()]
        time = next((time for time in times if time), "ts") if kind == "stream" else None
        stream = {"time": time} | self.zone if time else {}
        options = {"format": "json", "path": name} | stream
        columns = guess_columns(name, queries, time) or [("key", "STRING")]
        return declaration(kind.upper(), name, columns, options)

    def sink(self, table: ForeignTable) -> str:
        """CREATE SINK."""
        for remark in table.remarks:
            self.notes.remark(remark)
        options = OptionTranslator(table, self.notes, self.flink).sink()
        return declaration("SINK", table.name, [], options)

    def undeclared_sink(self, name: str, start: int) -> str:
        """A sink that results go to, and nothing declares."""
        self.notes.add(start, f"nothing declares {shown(name)}", CONSOLE_HINT)
        return declaration("SINK", name, [], {"format": "console"})

    def _time(self, table: ForeignTable, queries: Sequence[Query]) -> str | None:
        """The time column: of the watermark, of a query, or the only one that can be it."""
        for extra in table.watermarks[1:]:
            self.notes.add(extra.start, "a second watermark", "a stream has one time column")
        if table.watermarks:
            return table.watermarks[0].column
        name = table.name.lower()
        if name in self.times:
            return self.times[name]
        used = [query.time for query in queries if query.source.lower() == name and query.time]
        if used:
            return used[0]
        found = [
            column.name
            for column in table.columns or ()
            if column_type(column, self.flink) in _TIMES
        ]
        return found[0] if len(found) == 1 else None

    def _columns(self, table: ForeignTable, time: str | None) -> list[tuple[str, str]]:
        columns = []
        for column in table.columns or ():
            kind = column_type(column, self.flink)
            name, is_time = shown(column.name), column.name.lower() == (time or "").lower()
            if column.computed is not None or column.metadata:
                what = "computed" if column.computed is not None else "metadata"
                if is_time:
                    hint = "have it in the rows as a TIMESTAMP"
                    self.notes.add(column.start, f"the time {name} is {what}", hint)
                    columns.append((column.name, kind or "TIMESTAMP"))
                elif column.metadata:
                    hint = "have it in the rows, or leave it out"
                    self.notes.add(column.start, f"column {name} is metadata", hint)
            elif kind is None:
                message = f"column {name} has a type {shown(column.written)}, which is left out"
                hint = "have its fields in columns of their own"
                self.notes.add(column.start, message, hint)
            else:
                columns.append((column.name, kind))
        return columns

    def _found(
        self,
        table: ForeignTable,
        options: Mapping[str, str],
        queries: Sequence[Query],
        time: str | None,
    ) -> list[tuple[str, str]]:
        """Columns that are not declared: those of the files, or else a guess."""
        path = options.get("path", "")
        where = path if "://" in path else str(self.folder / Path(path).expanduser())
        reading = {
            "header": options.get("header") == "TRUE",
            "delimiter": options.get("delimiter", ","),
        }
        try:
            if options["format"] in FILE_FORMATS:
                schema = infer(where, options["format"], reading)
                usable = [one for one in schema if one.type in NAMES or is_decimal(one.type)]
                return [(one.name, name_of(one.type)) for one in usable]
        except MuntinError:
            # There are no such files on this machine.
            pass
        self.notes.add(
            table.start, f"nothing says what columns {shown(table.name)} has", GUESS_HINT
        )
        return guess_columns(table.name, queries, time) or [("key", "STRING")]

    def _stream_options(
        self, table: ForeignTable, columns: Sequence[tuple[str, str]], time: str | None
    ) -> dict[str, str]:
        if time is None:
            time = next((name for name, kind in columns if kind in _TIMES), "ts")
            message = f"{shown(table.name)} does not say what its time is"
            self.notes.add(table.start, message, TIME_HINT)
        options = {"time": time} | self.zone
        for mark in table.watermarks[:1]:
            lateness = self._lateness(mark)
            options |= {"lateness": lateness} if lateness else {}
        if not self.flink:
            message = f"no SQL says how late rows of {shown(table.name)} may be"
            self.notes.add(table.start, message, LATENESS_HINT, lost=False)
        return options

    def _lateness(self, mark: Watermark) -> str | None:
        """The lateness of WATERMARK FOR ts AS ts - INTERVAL '5' SECOND."""
        node = mark.expression.unnest()
        if isinstance(node, exp.Column) and node.name.lower() == mark.column.lower():
            return None
        delay = node.expression.unnest() if isinstance(node, exp.Sub) else None
        if isinstance(delay, exp.Interval) and isinstance(node.this, exp.Column):
            try:
                return duration_text(duration(canonical_text(delay)))
            except MuntinError:
                pass
        hint = "write lateness = '5 seconds': how far rows may be out of order"
        self.notes.add(mark.start, "the watermark is more than a delay", hint)
        return None


_NUMBERS = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Neg, exp.Abs, exp.Round)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)
_SUMS = ("sum", "avg", "mean", "product", "geo_mean", "value_range")
_MOMENTS = ("var", "std")
# What says most about a column comes first.
_RANKS = ("TIMESTAMP", "DOUBLE", "BOOLEAN", "STRING")


def guess_columns(
    name: str, queries: Iterable[Query], time: str | None = None
) -> list[tuple[str, str]]:
    """Names and types of the columns that queries read from a stream or a table.

    A column in arithmetic or next to a number is a DOUBLE, the time column a TIMESTAMP, what
    stands for a condition a BOOLEAN, and all others are STRINGs.

    >>> from muntin.queries import queries
    >>> text = "SELECT k, sum(v) AS s FROM t [RANGE '1 h' SLIDE '1 m'] WHERE w > 1.5 GROUP BY k"
    >>> guess_columns("t", queries(text), "ts")
    [('ts', 'TIMESTAMP'), ('k', 'STRING'), ('w', 'DOUBLE'), ('v', 'DOUBLE')]
    """
    found: dict[str, tuple[str, str]] = {} if time is None else {time.lower(): (time, "TIMESTAMP")}
    for query in queries:
        for column in _columns(name, query):
            key, kind = column.name.lower(), _kind(column)
            known = found.get(key)
            if known is None or _RANKS.index(kind) < _RANKS.index(known[1]):
                found[key] = (column.name, kind)
    return list(found.values())


def _columns(name: str, query: Query) -> Iterator[exp.Column]:
    """The columns of a query that belong to a stream or table; a bare one is the stream's."""
    labels = [join.alias.lower() for join in query.joins if join.table.lower() == name.lower()]
    own = query.source.lower() == name.lower()
    labels += [(query.alias or query.source).lower()] if own else []
    nodes = [*(group.node for group in query.group_by), query.where]
    nodes += [part for call in query.calls for part in (call.node, call.filter)]
    nodes += [side for join in query.joins for pair in join.on for side in pair]
    for node in nodes:
        for column in node.find_all(exp.Column) if node is not None else ():
            if column.table.lower() in labels or (own and not column.table):
                yield column


def _kind(column: exp.Column) -> str:
    child: exp.Expr = column
    parent = column.parent
    while isinstance(parent, exp.Paren):
        child, parent = parent, parent.parent
    if parent is None or isinstance(parent, (exp.And, exp.Or, exp.Not, exp.Where)):
        # A group column on its own has no parent either, and may be of any type.
        return "STRING" if parent is None else "BOOLEAN"
    if isinstance(parent, _COMPARISONS):
        others = [part for part in parent.iter_expressions() if part is not child]
        return "DOUBLE" if any(_is_number(part) for part in others) else "STRING"
    call = as_call(parent)
    if call is not None:
        return "DOUBLE" if call.name in _SUMS or call.name.startswith(_MOMENTS) else "STRING"
    return "DOUBLE" if isinstance(parent, _NUMBERS) else "STRING"


def _is_number(node: exp.Expr) -> bool:
    inner = node.unnest()
    if isinstance(inner, exp.Literal):
        return not inner.is_string
    return isinstance(inner, _NUMBERS)
