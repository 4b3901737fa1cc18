"""From the SELECTs of a foreign file to Muntin's queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from sqlglot import exp

from muntin.display import count
from muntin.pipelines.importers.intervals import Interval, interval_of, make_windows
from muntin.pipelines.importers.partners import refuse_subqueries
from muntin.pipelines.importers.reader import Entry, Role
from muntin.pipelines.importers.shapes import check_shape
from muntin.pipelines.importers.statements import ForeignQuery, ForeignTable, Notes, spell_casts
from muntin.pipelines.importers.windows import Refusal, WindowTranslator
from muntin.queries import CreateQuery, CreateRows, Query, Reference, RowQuery
from muntin.queries.analysis.rows import analyze_rows
from muntin.queries.analysis.select import analyze
from muntin.queries.query import BOUNDS, is_column
from muntin.queries.reader import QueryNames
from muntin.queries.report import Report
from muntin.queries.source import position, shown
from muntin.queries.sql.aggregate_calls import AggregateCall, as_call
from muntin.queries.sql.normalize import is_plain

COLUMNS_HINT = "results are the bounds of the window, the groups, then the aggregates"
LOOKUP_HINT = "it is read again when its files change; see refresh in docs/sql-files.md"
LIFETIME_HINT = "a pair is alive while both its rows are: see docs/joins.md"
VIEW_HINT = "name its source there, and write its conditions and columns into the query"
VERSION_HINT = "join the table as it is now, or have the value in the rows of the stream"


class QueryTranslator:
    """Translates queries one by one; what cannot be carried over is noted.

    Args:
        notes: Takes it.
        roles: What each table of the file is for.
        tables: The declared tables, by their names in lower case.
        types: The types of each table's columns, all names in lower case.
        flink: Whether the file is Flink's.
        written: The names of views that are written out where FROM names them.
    """

    def __init__(
        self,
        notes: Notes,
        roles: Mapping[str, Role],
        tables: Mapping[str, ForeignTable],
        types: Mapping[str, Mapping[str, str]],
        flink: bool,
        written: AbstractSet[str] = frozenset(),
    ) -> None:
        self.notes = notes
        self.roles = roles
        self.tables = tables
        self.types = types
        self.flink = flink
        self.written = written

    def translate(
        self, number: int, entry: Entry, names: QueryNames, views: set[str]
    ) -> CreateQuery | CreateRows | None:
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
        query: Query | RowQuery | None
        try:
            is_joined = self._rewrite(select, foreign, views)
            if is_joined:
                query = analyze_rows(select, name, {}, report)
            else:
                query = analyze(select, name, report)
        except Refusal as refusal:
            report.add(refusal.node, refusal.message, refusal.hint)
            query = None
        for problem in report.problems:
            self.notes.take(problem)
        if query is None or report.problems:
            return None
        if isinstance(query, RowQuery):
            return CreateRows(query, False, sink, foreign.start)
        table = select.find(exp.Table)
        start = foreign.start if table is None else position(table.this)
        return CreateQuery(query, False, sink, foreign.start, start or foreign.start)

    def _rewrite(
        self, select: exp.Expr, foreign: ForeignQuery | ForeignTable, views: set[str]
    ) -> bool:
        """Bring a SELECT to what Muntin reads; whether it joins streams."""
        start = foreign.start
        while isinstance(select, exp.Subquery) and select.is_wrapper:
            select = select.this
        if not isinstance(select, exp.Select):
            return False
        if isinstance(foreign, ForeignQuery) and foreign.sink is not None:
            self._name_columns(select, foreign, foreign.sink)
        self._look_up(select)
        interval = interval_of(select, self.tables)
        WindowTranslator(select, start, self.notes).translate()
        tables = list(select.find_all(exp.Table))
        self._check_names(tables, views)
        refuse_subqueries(select)
        if interval is not None:
            self._join_streams(select, interval)
        else:
            check_shape(select)
        self._note_picks(select, start)
        spell_casts(select, self.flink)
        if self.flink:
            keep_whole(select, self._columns(tables))
        return interval is not None

    def _check_names(self, tables: Sequence[exp.Table], views: AbstractSet[str]) -> None:
        """Refuse what reads the results of queries, or views in places of tables."""
        for table in tables:
            name = table.name.lower()
            if name in views or self.roles.get(name) == "sink":
                message = f"{shown(table.name)} holds the results of another query"
                raise Refusal(table, message, "write one query over the stream itself")
            if name in self.written and name not in self.tables:
                message = f"{shown(table.name)} is a view, and stands in a join or a subquery"
                raise Refusal(table, message, VIEW_HINT)

    def _join_streams(self, select: exp.Select, interval: Interval) -> None:
        """An interval join, as a join of windowed streams; both must be declared."""
        sides = (select.args["from_"].this, select.args["joins"][0].this)
        times = ("", "") if interval.span is None else interval.span.times
        for table, time in zip(sides, times, strict=True):
            declared = self.tables.get(table.name.lower())
            if declared is None:
                message = f"nothing declares {shown(table.name)}"
                raise Refusal(table, message, "declare both streams of a join with CREATE TABLE")
            marks = [mark.column.lower() for mark in declared.watermarks]
            if marks and time and time.lower() not in marks:
                message = f"{shown(time)} is not the time of {shown(table.name)}"
                raise Refusal(table, message, "compare the columns that have watermarks")
        make_windows(select, interval)

    def _name_columns(self, select: exp.Select, foreign: ForeignQuery, sink: Reference) -> None:
        """A table is filled by position: its columns give their names to those of SELECT."""
        table = self.tables.get(sink.name.lower())
        names: Sequence[str] | None = foreign.columns
        if names is None and table is not None and table.columns is not None:
            names = [one.name for one in table.columns if one.computed is None]
        if names is None:
            return
        items = select.expressions
        if len(names) != len(items) or any(item.is_star for item in items):
            what = "a list of columns" if foreign.columns is not None else shown(sink.name)
            message = f"{what} has {count(len(names), 'column')}, and SELECT has {len(items)}"
            hint = "results keep the names of the query: check them"
            self.notes.add(sink.start, message, hint)
            return
        for item, name in zip(list(items), names, strict=True):
            rename(select, item, name)

    def _look_up(self, select: exp.Select) -> None:
        """Flink looks a table up when a row comes; here it is as it was last read."""
        source = select.args.get("from_")
        stream = self.tables.get(source.this.name.lower()) if source is not None else None
        times = [mark.column.lower() for mark in stream.watermarks] if stream is not None else []
        for join in select.args.get("joins") or ():
            moment = join.this.args.get("version")
            if moment is None:
                continue
            name = shown(join.this.name)
            if isinstance(moment, exp.Column) and moment.name.lower() in times:
                message = f"{name} is joined as it was at the time of a row"
                raise Refusal(join.this, message, VERSION_HINT)
            offset = position(join.this)
            message = f"{name} is a static table, not looked up for each row"
            self.notes.add(offset or 0, message, LOOKUP_HINT, lost=False)
            join.this.set("version", None)

    def _note_picks(self, select: exp.Expr, start: int) -> None:
        """What aggregates of the same name do otherwise: with NULL, and in what they show."""
        for call in select.find_all(exp.Anonymous):
            name, hint = call.name.lower(), "add IGNORE NULLS; see docs/from-flink.md"
            if not self.flink and name == "approx_top_k":
                message = "approx_top_k lists value, low, high and certain, Spark's item and count"
                hint = "read value and low; see docs/from-spark.md"
            elif not self.flink:
                continue
            elif name in ("first_value", "last_value"):
                message = f"{name} goes by event time, and keeps NULL"
            elif name == "array_agg" and call.find(exp.Distinct) and not call.find(exp.IgnoreNulls):
                message = "array_agg(DISTINCT x) leaves NULL out, which Flink lists once"
            else:
                continue
            offset = position(call)
            self.notes.add(start if offset is None else offset, message, hint)

    def _columns(self, tables: list[exp.Table]) -> dict[str, str]:
        """The types of all columns in reach; none for those that two tables have differently."""
        found: dict[str, str] = {}
        for table in tables:
            for name, kind in self.types.get(table.name.lower(), {}).items():
                found[name] = kind if found.get(name, kind) == kind else ""
        return found


def check_row_sink(statement: CreateRows, table: ForeignTable, notes: Notes) -> None:
    """Note that rows with lifetimes have two columns more than the table they went to."""
    message = f"results for {shown(table.name)} begin with valid_from and valid_to"
    notes.add(statement.start, message, LIFETIME_HINT, lost=False)


def check_sink(statement: CreateQuery, table: ForeignTable, notes: Notes) -> None:
    """Note where results have other columns than the table they were inserted into."""
    if table.columns is None or statement.sink is None:
        return
    declared = [column.name.lower() for column in table.columns if column.computed is None]
    given = [name.lower() for name in statement.query.columns]
    groups = given[len(BOUNDS) :]
    if declared not in (given, groups, [given[0], *groups], [given[1], *groups]):
        names = ", ".join(shown(name) for name in statement.query.columns)
        message = f"results for {shown(table.name)} have the columns {names}"
        # Under the names that the table has, only their order is another.
        notes.add(statement.start, message, COLUMNS_HINT, lost=not set(declared) <= set(given))


def rename(select: exp.Select, item: exp.Expr, name: str) -> None:
    """Gives a column of SELECT a name; what called it by its old one is written out.

    >>> from muntin.queries.sql.parser import parse_expression
    >>> select = exp.select(parse_expression("upper(k)").as_("u")).from_("t").group_by("u")
    >>> rename(select, select.expressions[0], "kind")
    >>> select.sql()
    'SELECT UPPER(k) AS kind FROM t GROUP BY UPPER(k)'
    """
    inner, old = item.unalias(), item.alias
    if old and old.lower() != name.lower():
        for clause in (select.args.get("group"), select.args.get("having")):
            for part in [] if clause is None else list(clause.find_all(exp.Column)):
                if is_column(part, old.lower()):
                    part.replace(inner.copy())
    item.replace(exp.alias_(inner.copy(), name, quoted=not is_plain(name)))


_WHOLE_NAMES = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_KEEPING = ("sum", "min", "max", "first_value", "last_value", "abs")
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.IntDiv)
_WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)
_WHOLE_TYPES = {exp.DataType.Type[name] for name in _WHOLE_NAMES}


def keep_whole(node: exp.Expr, types: Mapping[str, str]) -> None:
    """Rewrite what Flink computes otherwise: quotients and averages of whole numbers stay whole.

    ``types`` are those of the columns, by their names in lower case.

    >>> from muntin.queries import canonical_text, parse_expression
    >>> node = exp.Paren(this=parse_expression("avg(vol) / 2"))
    >>> keep_whole(node, {"vol": "BIGINT"})
    >>> canonical_text(node)
    '((sum(vol) DIV count(vol)) DIV 2)'
    >>> texts = exp.Paren(this=parse_expression("listagg(k)"))
    >>> keep_whole(texts, {})
    >>> canonical_text(texts)
    "(listagg(k, ','))"
    """
    nodes = list(node.walk(bfs=False))
    # From the leaves up, so that an operand is known to be whole before its quotient is met.
    for part in reversed(nodes):
        # A call and its FILTER are one: the outer of the two is replaced.
        inner = isinstance(part.parent, _WRAPPERS) and part.arg_key == "this"
        call = None if inner else as_call(part)
        averaged = call.args if call is not None and call.name in ("avg", "mean") else ()
        if len(averaged) == 1 and _is_whole(averaged[0], types):
            part.replace(_whole_average(part))
        if call is not None and call.name == "listagg" and not call.constants:
            # What Flink puts between texts; others put nothing there.
            function = part if isinstance(part, exp.Anonymous) else part.find(exp.Anonymous)
            assert function is not None
            function.append("expressions", exp.Literal.string(","))
        if call is not None and call.name == "array_agg" and not call.distinct:
            _respect_nulls(part, call)
        sides = [part.this, part.expression] if isinstance(part, exp.Div) else []
        if sides and all(_is_whole(side, types) for side in sides):
            part.replace(exp.IntDiv(this=sides[0], expression=sides[1]))


def _respect_nulls(part: exp.Expr, call: AggregateCall) -> None:
    """Say what is Flink's default: NULL is in a list like any other value."""
    function = part if isinstance(part, exp.Anonymous) else part.find(exp.Anonymous)
    assert function is not None
    said = (exp.IgnoreNulls, exp.RespectNulls)
    if call.ignore_nulls is None and not isinstance(function.expressions[0], said):
        part.replace(exp.RespectNulls(this=part.copy()))


def _whole_average(call: exp.Expr) -> exp.Expr:
    total, number = call.copy(), call.copy()
    for copied, name in ((total, "sum"), (number, "count")):
        function = copied if isinstance(copied, exp.Anonymous) else copied.find(exp.Anonymous)
        assert function is not None
        function.set("this", name)
    return exp.Paren(this=exp.IntDiv(this=total, expression=number))


def _is_whole(node: exp.Expr, types: Mapping[str, str]) -> bool:
    node = node.unnest()
    if isinstance(node, exp.Literal):
        return not node.is_string and node.name.isdigit()
    if isinstance(node, exp.Column):
        return types.get(node.name.lower()) in _WHOLE_NAMES
    if isinstance(node, exp.Cast):
        return node.args["to"].this in _WHOLE_TYPES
    if isinstance(node, _ARITHMETIC):
        return _is_whole(node.this, types) and _is_whole(node.expression, types)
    if isinstance(node, (exp.Neg, exp.Abs)):
        return _is_whole(node.this, types)
    call = as_call(node)
    if call is None:
        return False
    if call.name in ("count", "count_if"):
        return True
    return call.name in _KEEPING and len(call.args) == 1 and _is_whole(call.args[0], types)
