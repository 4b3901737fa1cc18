"""Views that only filter and compute, written out in the queries that read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from muntin.pipelines.importers.reader import Entry
from muntin.pipelines.importers.statements import ForeignQuery, ForeignTable, Notes
from muntin.pipelines.importers.windows import is_processing_time
from muntin.queries.source import position, shown
from muntin.queries.sql.aggregate_calls import aggregate_calls

_CLAUSES = {"expressions", "from_", "where"}
_READING = ("where", "group", "having")


@dataclass(frozen=True)
class View:
    """Rows of ``source`` that satisfy ``where``.

    ``columns`` are what its names stand for, in lower case; a name that is not among them is one
    of the source's own.
    """

    source: str
    columns: Mapping[str, exp.Expr]
    where: exp.Expr | None = None


def plain_view(select: exp.Expr) -> View | None:
    """The view that a SELECT is, or None where it aggregates, joins, sorts or has subqueries."""
    source = select.args.get("from_") if isinstance(select, exp.Select) else None
    table = None if source is None else source.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        return None
    others = [key for key, value in select.args.items() if value and key not in _CLAUSES]
    if others or table.args.get("window") is not None:
        return None
    columns: dict[str, exp.Expr] = {}
    for item in select.expressions:
        node = item.unalias()
        if node.is_star:
            star = node.this if isinstance(node, exp.Column) else node
            if any(star.args.values()):
                # * EXCEPT and * REPLACE give other columns than the source has.
                return None
            continue
        if any(aggregate_calls(node)) or not item.alias_or_name:
            return None
        columns[item.alias_or_name.lower()] = bare(node)
    where = select.args.get("where")
    if any(part.find(exp.Query, exp.Exists) for part in (*select.expressions, where) if part):
        # Written out elsewhere, a subquery would see other names around it.
        return None
    return View(table.name, columns, None if where is None else bare(where.this))


def expand(select: exp.Select, views: Mapping[str, View]) -> None:
    """Write out the views that a SELECT reads, in place; also WITH and a subquery in FROM."""
    views = {**views, **_common(select)}
    source = select.args.get("from_")
    seen: set[str] = set()
    while source is not None:
        table = source.this
        if isinstance(table, exp.Subquery):
            view = plain_view(table.this)
            alias = table.alias
            if view is None:
                return
            table = exp.Table(this=exp.to_identifier(alias or view.source))
            source.set("this", table)
        elif isinstance(table, exp.Table) and table.name.lower() not in seen:
            # A stream with computed columns is read through a view of its own name.
            seen.add(table.name.lower())
            view = views.get(table.name.lower())
        else:
            return
        if view is None or (view.where is not None and _pads_first(select)):
            return
        _inline(select, table, view)


def _pads_first(select: exp.Select) -> bool:
    """Whether a join pads the first table: its conditions then say more behind the join."""
    joins = select.args.get("joins") or ()
    return any(join.args.get("side") in ("RIGHT", "FULL") for join in joins)


def _common(select: exp.Select) -> dict[str, View]:
    """The plain ones of WITH, which is taken out if all of it is plain."""
    clause = select.args.get("with_")
    if clause is None:
        return {}
    found = {each.alias.lower(): plain_view(each.this) for each in clause.expressions}
    plain = {name: view for name, view in found.items() if view is not None}
    if len(plain) == len(found) and not clause.args.get("recursive"):
        clause.pop()
    return plain


def _inline(select: exp.Select, table: exp.Table, view: View) -> None:
    label = table.alias_or_name
    roots = [*select.expressions, *(select.args.get(key) for key in _READING)]
    joins = [join.args.get("on") for join in select.args.get("joins") or ()]
    parts = [part for root in roots + joins if root is not None for part in root.walk()]
    # Next to joined tables, what a view stands for says which of them it is of.
    qualifier = label if joins else None
    for part in parts:
        if isinstance(part, exp.Column) and part.table.lower() in ("", label.lower()):
            _put(part, view, qualifier)
    clause = table.args.get("window")
    time = None if clause is None else clause.args.get("time")
    renamed = view.columns.get(time.name.lower()) if time is not None else None
    if time is not None and isinstance(renamed, exp.Column):
        time.set("this", renamed.name)
    elif time is not None and renamed is not None and is_processing_time(renamed):
        clock = renamed.copy()
        clock.meta["start"] = position(time)
        time.replace(clock)
    if not table.alias and joins:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(label)))
    start = position(table)
    table.set("this", exp.to_identifier(view.source))
    if start is not None:
        table.this.meta["start"] = start
    if view.where is not None:
        own = select.args.get("where")
        terms = [_qualified(view.where, qualifier), *([own.this] if own is not None else [])]
        select.set("where", exp.Where(this=exp.and_(*terms, copy=False)))


def _put(part: exp.Column, view: View, qualifier: str | None) -> None:
    meant = view.columns.get(part.name.lower())
    if meant is None or (isinstance(meant, exp.Column) and meant.name == part.name):
        return
    start = position(part)
    copied = _qualified(meant, qualifier)
    if not isinstance(meant, exp.Column):
        copied = exp.Paren(this=copied)
    if start is not None:
        copied.meta["start"] = start
    parent = part.parent
    item = isinstance(parent, exp.Select) and part.arg_key == "expressions"
    part.replace(exp.alias_(copied, part.name, quoted=True) if item else copied)


def _qualified(node: exp.Expr, qualifier: str | None) -> exp.Expr:
    """A copy whose columns are qualified."""
    copied = node.copy()
    for part in list(copied.find_all(exp.Column)) if qualifier is not None else ():
        part.set("table", exp.to_identifier(qualifier))
    return copied


def bare(node: exp.Expr) -> exp.Expr:
    """A copy without places and qualifiers: it will stand elsewhere."""
    copied = node.copy()
    for part in copied.walk():
        part.meta.pop("start", None)
        if isinstance(part, exp.Column):
            part.set("table", None)
    return copied


VIEW_HINT = "queries that read it read its source, with its conditions and columns"


class ViewWriter:
    """Writes out views that only filter and compute, and computed columns, where they are read.

    A view that aggregates or joins stays a query. One that nothing reads is lost: it would be a
    query over rows, and may as well be a leftover.

    Args:
        entries: All statements of the file, which are changed in place.
        notes: Takes what becomes of views.
    """

    def __init__(self, entries: Sequence[Entry], notes: Notes) -> None:
        self.entries = entries
        self.notes = notes
        self._views: dict[str, View] = {}
        # The statement that makes each view, and those whose views each statement reads.
        self._makers: dict[str, int] = {}
        self._reads: dict[int, set[int]] = {}

    def write(self) -> frozenset[str]:
        """Write out all views, and give the names of these."""
        made: dict[int, ForeignQuery] = {}
        for number, entry in enumerate(self.entries):
            one = entry.foreign
            if not isinstance(one, ForeignTable | ForeignQuery):
                continue
            if isinstance(one, ForeignTable) and (computed := _computed(one)):
                # A stream with computed columns is read through a view of its own name.
                self._views[one.name.lower()] = View(one.name, computed)
            if one.select is not None:
                self._reads[number] = self._expand(one.select)
            name = one.view if isinstance(one, ForeignQuery) else None
            view = plain_view(one.select) if name and one.select is not None else None
            if name and view is not None and isinstance(one, ForeignQuery):
                self._views[name.lower()], self._makers[name.lower()] = view, number
                made[number], entry.foreign = one, None
        read = self._read_by(self._reads.keys() - made.keys())
        for number, one in made.items():
            self._note(number, one, is_read=number in read)
        return frozenset(self._makers)

    def _expand(self, select: exp.Expr) -> set[int]:
        """Write views out in one SELECT, and give the statements that made those it names."""
        names = {table.name.lower() for table in select.find_all(exp.Table)}
        if isinstance(select, exp.Select):
            expand(select, self._views)
        return {self._makers[name] for name in names if name in self._makers}

    def _read_by(self, queries: Iterable[int]) -> set[int]:
        """The views that queries read, also through other views."""
        found: set[int] = set()
        left = list(queries)
        while left:
            new = self._reads.get(left.pop(), set()) - found
            found |= new
            left += new
        return found

    def _note(self, number: int, one: ForeignQuery, *, is_read: bool) -> None:
        self.notes.statement = number
        if is_read:
            self.notes.add(one.start, "the view is written out", VIEW_HINT, lost=False)
            self.entries[number].settled = True
            return
        source = one.select.args["from_"].this.name
        hint = (
            f"leave it out, or write CREATE QUERY ... FROM {shown(source)} [NOW] to show its rows"
        )
        self.notes.add(one.start, f"no query reads the view {shown(str(one.view))}", hint)


def _computed(table: ForeignTable) -> dict[str, exp.Expr]:
    """The computed columns of a table; its time must stand in the rows."""
    times = [mark.column.lower() for mark in table.watermarks]
    return {
        column.name.lower(): bare(column.computed)
        for column in table.columns or ()
        if column.computed is not None and column.name.lower() not in times
    }
