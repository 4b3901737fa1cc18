"""A query: one window, a filter, groups, and what to compute for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from sqlglot import exp

from muntin.aggregates.caps import UNSAID, Guarantees
from muntin.errors import Problem
from muntin.queries.source import SourceText, problem_at
from muntin.queries.sql.aggregate_calls import AggregateCall, aggregate_calls, as_call
from muntin.queries.sql.normalize import canonical_text, dotted, is_plain, normalize, quote
from muntin.queries.sql.spellings import window_text
from muntin.windows import Window

BOUNDS = ("window_start", "window_end")
PREFERENCES = ("throughput", "latency")


@dataclass(frozen=True, repr=False)
class Output:
    """A result column: its name, and the expression that gives its value."""

    name: str
    node: exp.Expr

    def __repr__(self) -> str:
        return f"Output({self.name!r}, {canonical_text(self.node)!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Query:
    """One aggregate query over a window, as the parser or the builder made it.

    Results have the columns of ``bounds``, then those of ``group_by``, then those of ``select``.
    Two queries are equal when their canonical SQL is: the spelling of the window, of keywords
    and of parentheses makes no difference, names do.

    Syntax trees are shared: do not change them in place.

    Attributes:
        name: Letters, digits and _; queries of one set differ in more than letter case.
        window: The window.
        select: What is computed. Outside aggregate calls, a column stands for the group column
            of that name; inside, for a column of the input.
        where: The condition a row must satisfy, over columns of the input.
        group_by: The group columns, as expressions over columns of the input.
        having: The condition a result row must satisfy, in the same terms as ``select``.
        emit_empty: Whether windows without rows give a row too; ungrouped queries only.
        source: The name in FROM, with dots if it is qualified.
        alias: The alias of that name, if it has one.
        time: The time column, if the query names one.
        bounds: The names of the window's start and end in results.
        joins: Tables that rows are joined with. Columns keep their qualifiers then, which are
            aliases if there are some; without joins columns are stored without them.
        technique: The final technique of all its aggregates; chosen by the planner if not given.
        prefer: What the planner chooses by: ``throughput`` or ``latency``; None if not said.
        kept: Whether it answers with the accumulators of its aggregates, for a join to combine.
        guarantees: Caps of windows' values, and whether bounds are shown.
        text: Where the query was written, for :func:`muntin.queries.problem_at`.

    >>> from muntin.queries import queries
    >>> (query,) = queries("SELECT sum(vol) FROM trades [RANGE 60 SLIDE 20] WHERE vol>0")
    >>> query.columns
    ('window_start', 'window_end', 'sum(vol)')
    >>> query.sql()
    'CREATE QUERY q1 AS SELECT sum(vol) AS `sum(vol)` FROM trades [RANGE 60 SLIDE 20] WHERE vol > 0'
    """

    name: str
    window: Window
    select: tuple[Output, ...]
    where: exp.Expr | None = None
    group_by: tuple[Output, ...] = ()
    having: exp.Expr | None = None
    emit_empty: bool = False
    source: str = "input"
    alias: str | None = None
    time: str | None = None
    joins: tuple[Join, ...] = ()
    bounds: tuple[str, str] = BOUNDS
    technique: str | None = None
    prefer: Literal["throughput", "latency"] | None = None
    kept: bool = False
    guarantees: Guarantees = UNSAID
    text: SourceText = field(default_factory=SourceText)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the result's columns, in order."""
        return (*self.bounds, *(output.name for output in (*self.group_by, *self.select)))

    @property
    def calls(self) -> tuple[AggregateCall, ...]:
        """The distinct aggregate calls of SELECT and HAVING, in order of appearance."""
        nodes = [output.node for output in self.select]
        if self.having is not None:
            nodes.append(self.having)
        return distinct_calls(nodes)

    def sql(self) -> str:
        """The query as canonical SQL, with its window in brackets; reads back as an equal query."""
        return self._sql

    @cached_property
    def _sql(self) -> str:
        bounds = zip(BOUNDS, self.bounds, strict=True)
        items = [f"{bound} AS {quote(name)}" for bound, name in bounds if name != bound]
        items += [_item(output.node, output.name) for output in self.group_by]
        items += [_item(self._spelled_out(output.node), output.name) for output in self.select]
        options = options_text(self.technique, self.prefer, self.guarantees)
        head = f"CREATE QUERY {quote(self.name)}{options}"
        words = [f"{head} AS SELECT {', '.join(items)}"]
        words.append(f"FROM {self._source_text()} {window_text(self.window, self.time)}")
        words += [join.sql() for join in self.joins]
        if self.where is not None:
            words.append(f"WHERE {canonical_text(self.where)}")
        if self.group_by:
            groups = ", ".join(canonical_text(output.node) for output in self.group_by)
            words.append(f"GROUP BY {groups}")
        if self.having is not None:
            words.append(f"HAVING {canonical_text(self._spelled_out(self.having))}")
        if self.emit_empty:
            words.append("EMIT EMPTY")
        return " ".join(words)

    def _source_text(self) -> str:
        # Without joins no column is qualified, so that the alias says nothing.
        alias = f" AS {quote(self.alias)}" if self.joins and self.alias else ""
        return dotted(self.source) + alias

    def _spelled_out(self, node: exp.Expr) -> exp.Expr:
        return spelled_out(node, self.group_by)

    def alike(self, name: str, window: Window, where: exp.Expr | None, text: SourceText) -> Query:
        """The query with another name, window and condition, written elsewhere.

        By hand: `dataclasses.replace` would take as long as all else that is read of such a query.
        """
        return Query(
            name,
            window,
            self.select,
            where,
            self.group_by,
            self.having,
            self.emit_empty,
            self.source,
            self.alias,
            self.time,
            self.joins,
            self.bounds,
            self.technique,
            self.prefer,
            self.kept,
            self.guarantees,
            text,
        )

    def problem(self, node: exp.Expr, message: str, hint: str | None = None) -> Problem:
        """A problem that points at a node of this query, where it was written."""
        # What stands behind a dot tells the sides of a join apart, which users do not know.
        return problem_at(node, self.text, message, hint, self.name.partition(".")[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Query) and self._sql == other._sql

    def __hash__(self) -> int:
        return hash(self._sql)

    def __repr__(self) -> str:
        return f"<Query {self._sql}>"

    def __str__(self) -> str:
        return self._sql


def spelled_out(node: exp.Expr, group_by: Iterable[Output]) -> exp.Expr:
    """A copy with each group column replaced by the expression it stands for."""
    groups = {output.name: output.node for output in group_by}
    root = exp.Paren(this=node.copy())
    for part in list(root.walk(prune=lambda part: as_call(part) is not None)):
        if isinstance(part, exp.Column):
            part.replace(exp.Paren(this=groups[part.name].copy()))
    return normalize(root)


def distinct_calls(nodes: Iterable[exp.Expr]) -> tuple[AggregateCall, ...]:
    """The aggregate calls of some expressions, each once, in order of appearance."""
    found = {call: call for node in nodes for call in aggregate_calls(node)}
    return tuple(found.values())


def options_text(technique: str | None, prefer: str | None, guarantees: Guarantees = UNSAID) -> str:
    """What stands between a query's name and AS, with a space before it.

    >>> options_text("daba", None), options_text(None, None, Guarantees(bounds=True, cap_values=9))
    (" WITH (technique = 'daba')", ' WITH (bounds = true, cap_values = 9)')
    """
    said = {"technique": technique, "prefer": prefer, **guarantees.given}
    options = ", ".join(options_of(said))
    return f" WITH ({options})" if options else ""


def options_of(said: Mapping[str, str | bool | int | None]) -> list[str]:
    """Options as they stand in WITH; None is nothing said."""
    return [f"{key} = {_option(value)}" for key, value in said.items() if value is not None]


def _option(value: str | bool | int) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).lower()


def _item(node: exp.Expr, name: str) -> str:
    if isinstance(node, exp.Column) and node.name == name:
        return canonical_text(node)
    return f"{canonical_text(node)} AS {quote(name)}"


def is_column(node: exp.Expr, *names: str) -> bool:
    """Whether a node is a column of one of these names, in any letter case, unqualified."""
    return isinstance(node, exp.Column) and not node.table and node.name.lower() in names


def column(name: str, start: int | None = None) -> exp.Column:
    """A column of this name, placed at an offset of the text it stands in."""
    identifier = exp.Identifier(this=name, quoted=not is_plain(name))
    if start is not None:
        identifier.meta["start"] = start
    return exp.Column(this=identifier)


JoinKind: TypeAlias = Literal["inner", "left"]


@dataclass(frozen=True, repr=False)
class Join:
    """One table of FROM beside the stream, and the equalities that find its rows.

    Attributes:
        table: The table's name, with dots if it is qualified.
        alias: What the query's columns call it: its alias, or else the last part of its name.
        kind: ``inner`` drops rows without a match, ``left`` keeps them, with NULLs.
        on: Pairs that must be equal: an expression over the stream and the tables before this
            one, and a column of this table. In a pair of one name, as USING makes it, the name on
            its own means the first of the two.
        start: Where the table was named in the query's text.

    >>> from muntin.queries import queries
    >>> (query,) = queries("SELECT max(cp) FROM s [RANGE 5 SLIDE 5] LEFT JOIN close c USING (k)")
    >>> query.joins
    (Join(LEFT JOIN close AS c ON k = c.k),)
    """

    table: str
    alias: str
    kind: JoinKind
    on: tuple[tuple[exp.Expr, exp.Expr], ...]
    start: int | None = field(default=None, compare=False)

    def sql(self) -> str:
        """The join as SQL, which reads back as an equal one."""
        named = self.alias == self.table.rpartition(".")[2]
        table = dotted(self.table) + ("" if named else f" AS {quote(self.alias)}")
        keys = [f"{canonical_text(left)} = {canonical_text(right)}" for left, right in self.on]
        words = "LEFT JOIN" if self.kind == "left" else "JOIN"
        return f"{words} {table} ON {' AND '.join(keys)}"

    def __repr__(self) -> str:
        return f"Join({self.sql()})"
