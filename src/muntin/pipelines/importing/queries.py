"""From the SELECTs of a foreign file to Muntin's queries."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from muntin.pipelines.importing.notes import Notes
from muntin.pipelines.importing.numbers import keep_whole
from muntin.pipelines.importing.reading import Entry
from muntin.pipelines.importing.roles import Role
from muntin.pipelines.importing.statements import ForeignQuery, ForeignTable
from muntin.pipelines.importing.types import spell_casts
from muntin.pipelines.importing.windows import Refusal, WindowTranslator
from muntin.queries import CreateQuery, Reference
from muntin.queries.analyze import analyze
from muntin.queries.query import BOUNDS
from muntin.queries.report import Report
from muntin.queries.source import position, shown
from muntin.queries.statement_reader import QueryNames

COLUMNS_HINT = "results are the bounds of the window, the groups, then the aggregates"


class QueryTranslator:
    """Translates queries one by one; what cannot be carried over is noted.

    Args:
        notes: Takes it.
        roles: What each table of the file is for.
        types: The types of each table's columns, all names in lower case.
        flink: Whether the file is Flink's.
    """

    def __init__(
        self,
        notes: Notes,
        roles: Mapping[str, Role],
        types: Mapping[str, Mapping[str, str]],
        flink: bool,
    ) -> None:
        self.notes = notes
        self.roles = roles
        self.types = types
        self.flink = flink

    def translate(
        self, number: int, entry: Entry, names: QueryNames, views: set[str]
    ) -> CreateQuery | None:
        """The query of a statement, or None after it is noted why there is none."""
        foreign = entry.foreign
        assert isinstance(foreign, ForeignQuery | ForeignTable)
        select = foreign.select
        assert select is not None
        view = foreign.view if isinstance(foreign, ForeignQuery) else None
        sink = foreign.sink if isinstance(foreign, ForeignQuery) else Reference(foreign.name)
        if sink is not None:
            name = names.after(sink.name)
        else:
            name = view if view is not None else names.numbered(number + 1)
        names.used.add(name.lower())
        text = self.notes.lines.slice(foreign.start, foreign.start + len(entry.original))
        report = Report(text, name, foreign.start)
        try:
            self._rewrite(select, foreign.start, views)
            query = analyze(select, name, report)
        except Refusal as refusal:
            report.add(refusal.node, refusal.message, refusal.hint)
            query = None
        for problem in report.problems:
            self.notes.take(problem)
        if query is None or report.problems:
            return None
        table = select.find(exp.Table)
        start = foreign.start if table is None else position(table.this)
        return CreateQuery(query, False, sink, foreign.start, start or foreign.start)

    def _rewrite(self, select: exp.Expr, start: int, views: set[str]) -> None:
        while isinstance(select, exp.Subquery) and select.is_wrapper:
            select = select.this
        if not isinstance(select, exp.Select):
            return
        WindowTranslator(select, start, self.notes).translate()
        tables = list(select.find_all(exp.Table))
        for table in tables:
            name = table.name.lower()
            if name in views or self.roles.get(name) == "sink":
                message = f"{shown(table.name)} holds the results of another query"
                raise Refusal(table, message, "write one query over the stream itself")
        self._note_picks(select, start)
        spell_casts(select, self.flink)
        if self.flink:
            keep_whole(select, self._columns(tables))

    def _note_picks(self, select: exp.Expr, start: int) -> None:
        """Flink takes the first and last of rows that are not NULL, as they arrive."""
        for call in select.find_all(exp.Anonymous) if self.flink else ():
            if call.name.lower() in ("first_value", "last_value"):
                message = f"{call.name.lower()} goes by event time, and keeps NULL"
                hint = "add IGNORE NULLS; see docs/from-flink.md"
                offset = position(call)
                self.notes.add(start if offset is None else offset, message, hint)

    def _columns(self, tables: list[exp.Table]) -> dict[str, str]:
        """The types of all columns in reach; none for those that two tables have differently."""
        found: dict[str, str] = {}
        for table in tables:
            for name, kind in self.types.get(table.name.lower(), {}).items():
                found[name] = kind if found.get(name, kind) == kind else ""
        return found


def check_sink(statement: CreateQuery, table: ForeignTable, notes: Notes) -> None:
    """Note where results have other columns than the table they were inserted into."""
    if table.columns is None or statement.sink is None:
        return
    declared = [column.name.lower() for column in table.columns]
    given = [name.lower() for name in statement.query.columns]
    if declared != given and declared != given[len(BOUNDS) :]:
        names = ", ".join(shown(name) for name in statement.query.columns)
        message = f"results for {shown(table.name)} have the columns {names}"
        notes.add(statement.start, message, COLUMNS_HINT)
