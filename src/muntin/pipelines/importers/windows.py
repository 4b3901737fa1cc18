"""Windows as Spark and Flink write them, brought to a spelling that Muntin reads."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from muntin.display import count
from muntin.pipelines.importers.grammar import FIXED_HINT
from muntin.pipelines.importers.statements import Notes
from muntin.queries.query import BOUNDS, column, is_column
from muntin.queries.source import position
from muntin.queries.sql.clauses import WindowClause
from muntin.queries.sql.spellings import is_window_call

ORDER_HINT = "results come window by window; sort them where they are read"
CLOCK_HINT = "every window is over event time: have the time of a row in the row, and name it"
_CALLS = {"hop": 3, "tumble": 2}
_AUXILIARY = {f"{call}_{bound}": f"window_{bound}" for call in _CALLS for bound in ("start", "end")}
_TIMES = {
    "window_time",
    *(f"{call}_{kind}" for call in _CALLS for kind in ("rowtime", "proctime")),
}

_CLOCKS = (exp.CurrentTimestamp, exp.CurrentTimestampLTZ, exp.Localtimestamp)
_CLOCK_NAMES = ("proctime", "now", "current_timestamp", "current_row_timestamp", "localtimestamp")


def is_processing_time(node: exp.Expr) -> bool:
    """Whether a node is the moment at which a row is looked at.

    >>> is_processing_time(exp.Paren(this=exp.Anonymous(this="PROCTIME")))
    True
    """
    inner = node.unnest()
    named = isinstance(inner, exp.Anonymous) and inner.name.lower() in _CLOCK_NAMES
    return named or isinstance(inner, _CLOCKS)


class Refusal(Exception):  # noqa: N818 - a query that is given up, not a fault
    """A query that cannot be carried over, and where it says so."""

    def __init__(self, node: exp.Expr, message: str, hint: str) -> None:
        super().__init__(message)
        self.node = node
        self.message = message
        self.hint = hint


class WindowTranslator:
    """Rewrites one SELECT in place; what it leaves out is noted.

    Args:
        select: The query.
        start: Where it stands, for parts that have no place of their own.
        notes: Takes what cannot be carried over.
    """

    def __init__(self, select: exp.Select, start: int, notes: Notes) -> None:
        self.select = select
        self.start = start
        self.notes = notes

    def translate(self) -> None:
        """Rewrite all that is spelled in another way.

        Raises:
            Refusal: If the query means something that Muntin does not have.
        """
        self._shorten_names()
        self._check_times()
        self._drop_order()
        self._name_window()
        self._rewrite_calls()
        self._drop_times()
        self._bare_bounds()
        self._check_grouping()
        self._name_bounds()

    def _note(self, node: exp.Expr, message: str, hint: str, *, lost: bool = True) -> None:
        offset = position(node)
        self.notes.add(self.start if offset is None else offset, message, hint, lost=lost)

    def _shorten_names(self) -> None:
        """Streams and tables are known by the last part of their names."""
        for table in self.select.find_all(exp.Table):
            table.set("db", None)
            table.set("catalog", None)

    def _check_times(self) -> None:
        """Flink's windows may be over its own clock, in FROM and in GROUP BY."""
        clauses = self.select.find_all(WindowClause)
        calls = [
            call
            for call in self.select.find_all(exp.Anonymous)
            if call.name.lower() in (*_CALLS, "window", "session")
        ]
        times = [clause.args.get("time") for clause in clauses]
        times += [call.expressions[0] for call in calls if call.expressions]
        for time in times:
            if time is not None and is_processing_time(time):
                raise Refusal(time, "processing time is not event time", CLOCK_HINT)

    def _drop_order(self) -> None:
        order = self.select.args.get("order")
        if order is not None and not self.select.args.get("limit"):
            self._note(order, "ORDER BY is left out", ORDER_HINT)
            order.pop()

    def _groups(self) -> list[exp.Expr]:
        group = self.select.args.get("group")
        return [] if group is None else list(group.expressions)

    def _name_window(self) -> None:
        """Spark: window(...) AS w, then GROUP BY w or its number, and w.start."""
        for number, item in enumerate(self.select.expressions, 1):
            if not is_window_call(item.unalias()):
                continue
            alias = item.alias.lower()
            for group in self._groups():
                ordinal = isinstance(group, exp.Literal) and group.name == str(number)
                if ordinal or (alias and is_column(group, alias)):
                    group.replace(item.unalias().copy())
            for part in list(self.select.find_all(exp.Column)):
                if (
                    alias
                    and part.table.lower() == alias
                    and f"window_{part.name}".lower() in BOUNDS
                ):
                    part.replace(column(f"window_{part.name}".lower(), position(part)))

    def _rewrite_calls(self) -> None:
        """Flink's older HOP(ts, slide, size) in GROUP BY, and HOP_START of the same."""
        for group in self._groups():
            name = group.name.lower() if isinstance(group, exp.Anonymous) else ""
            if name in _CALLS:
                group.replace(self._window_call(group, name))
            elif name in ("session_window", "cumulate"):
                raise Refusal(group, f"{name.upper()} windows have no counterpart", FIXED_HINT)
        for call in list(self.select.find_all(exp.Anonymous)):
            if call.name.lower() in _AUXILIARY:
                call.replace(column(_AUXILIARY[call.name.lower()], position(call)))
        for dot in list(self.select.find_all(exp.Dot)):
            bound = f"window_{dot.expression.name}".lower()
            if is_window_call(dot.this) and bound in BOUNDS:
                dot.replace(column(bound, position(dot)))

    def _window_call(self, call: exp.Expr, name: str) -> exp.Expr:
        arguments = call.expressions
        if len(arguments) not in (_CALLS[name], _CALLS[name] + 1):
            hint = "write HOP(ts, slide, size) or TUMBLE(ts, size)"
            raise Refusal(call, f"{name.upper()} has {count(len(arguments), 'argument')}", hint)
        time, *extents = [argument.copy() for argument in arguments]
        if name == "hop":
            extents[:2] = extents[1::-1]
        elif len(extents) == 2:
            extents.insert(1, extents[0].copy())
        window = exp.Anonymous(this="window", expressions=[time, *extents])
        offset = position(call)
        window.meta["start"] = self.start if offset is None else offset
        return window

    def _drop_times(self) -> None:
        """The last moment of a window is not a column of its own."""
        for node in [*self.select.expressions, *self._groups()]:
            inner = node.this if isinstance(node, exp.Alias) else node
            name = inner.name.lower() if isinstance(inner, exp.Anonymous | exp.Column) else ""
            if name in _TIMES:
                self._note(node, f"{name} is left out", "compute it from window_end")
                node.pop()

    def _bare_bounds(self) -> None:
        """The bounds of the window belong to no table: b.window_start is window_start."""
        source = self.select.args.get("from_")
        label = "" if source is None else source.this.alias_or_name.lower()
        for part in list(self.select.find_all(exp.Column)):
            if part.name.lower() in BOUNDS and part.table and part.table.lower() == label:
                part.replace(column(part.name.lower(), position(part)))

    def _check_grouping(self) -> None:
        """Flink aggregates over all windows together unless GROUP BY names them."""
        source = self.select.args.get("from_")
        table = None if source is None else source.this
        clause = table.args.get("window") if isinstance(table, exp.Table) else None
        if clause is None:
            return
        if clause.args["spelling"] in ("HOP", "TUMBLE") and not any(self._bounds_of_groups()):
            message = "GROUP BY does not name the window, so all windows are one"
            raise Refusal(clause, message, "add GROUP BY window_start, window_end")

    def _bounds_of_groups(self) -> Iterator[bool]:
        items = self.select.expressions
        for group in self._groups():
            node = group
            if isinstance(node, exp.Literal) and node.name.isdigit() and len(node.name) < 5:
                node = items[int(node.name) - 1] if 0 < int(node.name) <= len(items) else node
            yield isinstance(node.unalias(), exp.Column) and node.unalias().name.lower() in BOUNDS

    def _name_bounds(self) -> None:
        """The bounds on their own, under the names they have; Spark's struct becomes the two."""
        for item in list(self.select.expressions):
            inner, alias = item.unalias(), item.alias
            if isinstance(inner, exp.Column) and f"{inner.table}_{inner.name}".lower() in BOUNDS:
                bound = f"{inner.table}_{inner.name}".lower()
            elif isinstance(inner, exp.Column) and inner.name.lower() in BOUNDS:
                bound = inner.name.lower()
            elif is_window_call(inner) or is_column(inner, "window"):
                message = "the window is two columns, window_start and window_end"
                self._note(item, message, "read them instead of the fields of one column")
                item.replace(inner.copy())
                continue
            else:
                continue
            for group in self._groups():
                if alias and is_column(group, alias.lower()):
                    group.replace(column(bound, position(group)))
            inner.replace(column(bound, position(inner)))
