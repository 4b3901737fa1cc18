"""A row query: one whose answers are rows with lifetimes, not aggregates of windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias

from sqlglot import exp

from muntin.aggregates.caps import UNSAID, Guarantees
from muntin.errors import Problem
from muntin.queries.query import (
    BOUNDS,
    Join,
    Output,
    column,
    distinct_calls,
    options_of,
    spelled_out,
)
from muntin.queries.source import SourceText, problem_at
from muntin.queries.sql.aggregate_calls import AggregateCall
from muntin.queries.sql.normalize import canonical_text, dotted, quote
from muntin.windows import duration_text
from muntin.windows.spec import Unit

RowJoin: TypeAlias = Literal["inner", "left", "right", "full"]
SetKind: TypeAlias = Literal["union all", "union", "except all", "except", "intersect"]
Show: TypeAlias = Literal["rows", "istream", "dstream"]
RowOutput: TypeAlias = Literal["final", "changes"]

OUTPUTS: tuple[RowOutput, ...] = ("final", "changes")
# No name of a column: what a selection lists where it takes all columns of a stream.
STAR = "*"


@dataclass(frozen=True, eq=False)
class RowSource:
    """A stream in FROM, whose rows live for ``range`` ticks.

    Attributes:
        stream: The stream's name.
        label: What qualifies its columns: its alias, or else the last part of its name.
        range: How long a row lives; None is one tick, ``[NOW]``.
        kind: How it is joined with all before it; the first one is ``inner``.
        on: The condition of ON; None for the first one, after a comma, or with USING.
        using: The columns of USING.
        using_starts: Where these were named in the query's text.
        whole: Whether an outer join pads only rows that never have a partner: EMIT UNMATCHED.
        time: The time column, if the query names it.
        start: Where the stream was named in the query's text.
    """

    stream: str
    label: str
    range: int | None
    kind: RowJoin = "inner"
    on: exp.Expr | None = None
    using: tuple[str, ...] = ()
    using_starts: tuple[int | None, ...] = ()
    whole: bool = False
    time: str | None = None
    start: int | None = None

    def columns_of_using(self, label: str = "") -> list[exp.Column]:
        """The columns of USING at their places, as those of one stream if it has a label."""
        starts = self.using_starts or (None,) * len(self.using)
        found = [column(name, start) for name, start in zip(self.using, starts, strict=True)]
        for each in found if label else ():
            each.set("table", exp.to_identifier(label))
        return found


@dataclass(frozen=True, eq=False)
class Existence:
    """``[NOT] EXISTS (SELECT ...)``; with a ``value``, ``value [NOT] IN (SELECT ...)``."""

    selection: Selection
    negated: bool = False
    value: exp.Expr | None = None


@dataclass(frozen=True, eq=False)
class Selection:
    """One SELECT over windowed streams.

    ``items`` are its columns; the name of one that stands for all columns of a stream, or of all
    streams, is ``*``. ``where`` and every one of ``exists`` must hold. ``tables`` have no windows:
    a row of a stream is joined with them as they are when it comes.
    """

    sources: tuple[RowSource, ...]
    items: tuple[Output, ...]
    where: exp.Expr | None = None
    exists: tuple[Existence, ...] = ()
    distinct: bool = False
    tables: tuple[Join, ...] = ()


@dataclass(frozen=True, eq=False)
class Aggregation:
    """What a query computes of the rows alive at each window end, instead of showing them.

    Attributes:
        select: What is computed, in the terms of :class:`muntin.Query`.
        group_by: The group columns, as expressions over columns of the streams.
        having: The condition a result row must satisfy.
        emit_empty: Whether windows without rows give a row too; without groups only.
        bounds: The names of the window's start and end in results.
    """

    select: tuple[Output, ...]
    group_by: tuple[Output, ...] = ()
    having: exp.Expr | None = None
    emit_empty: bool = False
    bounds: tuple[str, str] = BOUNDS

    @property
    def calls(self) -> tuple[AggregateCall, ...]:
        """The distinct aggregate calls of SELECT and HAVING, in order of appearance."""
        nodes = [output.node for output in self.select]
        return distinct_calls(nodes if self.having is None else [*nodes, self.having])

    @property
    def items(self) -> tuple[Output, ...]:
        """What SELECT lists: renamed bounds, groups, and what is computed, spelled out."""
        named = zip(BOUNDS, self.bounds, strict=True)
        bounds = [Output(name, exp.column(bound)) for bound, name in named if name != bound]
        computed = [
            Output(each.name, spelled_out(each.node, self.group_by)) for each in self.select
        ]
        return (*bounds, *self.group_by, *computed)


@dataclass(frozen=True, eq=False)
class Compound:
    """UNION, EXCEPT or INTERSECT of two answers; ``start`` is where the second one begins."""

    kind: SetKind
    left: Body
    right: Body
    start: int | None = None


Body: TypeAlias = Selection | Compound


@dataclass(frozen=True, eq=False, repr=False)
class RowQuery:
    """One query over rows that live as long as the windows they stand in.

    A row of a stream under ``[RANGE T]`` lives for ``[ts, ts + T)``; the answer at an instant is
    the relational query over the rows alive then. Two queries are equal when their canonical SQL
    is. Syntax trees are shared: do not change them in place.

    Attributes:
        name: Letters, digits and _; queries of one set differ in more than letter case.
        body: What is selected.
        slide: How far apart window ends are, if the query shows the answer at window ends.
        phase: Window ends are at ``phase`` modulo ``slide``.
        unit: Whether ranges are durations or plain numbers; None where only ``[NOW]`` is used.
        show: The answer itself; or ``istream`` and ``dstream``, what entered and what left it.
        internal: Results never end: the windows say only which rows meet.
        lasts: How long results live whatever their parts do: ``Wstream(...)[RANGE t]``.
        restore: Show what lived only between two window ends once, at the next.
        output: How results that end early are shown; None if not said.
        approximate: Whether sums of products of several streams' doubles may be products of sums.
        skew: ``replicate`` splits hot keys over several buckets on Spark.
        guarantees: Caps of windows' values, and whether bounds are shown, where it aggregates.
        aggregation: What is computed of the rows at each window end, if they are not shown; the
            body then is a selection without items.
        text: Where the query was written, for :func:`muntin.queries.problem_at`.

    >>> from muntin.queries import parse
    >>> (statement,) = parse("SELECT o.id FROM orders [RANGE 5] o JOIN paid [RANGE 9] p "
    ...                      "ON o.id=p.id WHERE p.amount>1")
    >>> print(statement.query)
    CREATE QUERY q1 AS SELECT o.id FROM orders [RANGE 5] AS o JOIN paid [RANGE 9] AS p \
ON o.id = p.id WHERE p.amount > 1
    >>> statement.query.streams
    ('orders', 'paid')
    """

    name: str
    body: Body
    slide: int | None = None
    phase: int = 0
    unit: Unit | None = None
    show: Show = "rows"
    internal: bool = False
    lasts: int | None = None
    restore: bool = False
    output: RowOutput | None = None
    approximate: bool = False
    skew: Literal["replicate"] | None = None
    guarantees: Guarantees = UNSAID
    aggregation: Aggregation | None = None
    text: SourceText = field(default_factory=SourceText)

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams it reads, each once, in order of appearance."""
        return tuple(dict.fromkeys(source.stream for source in sources(self.body)))

    @property
    def source(self) -> str:
        """The first stream in FROM: its time gives results their type and zone."""
        return self.streams[0]

    def sql(self) -> str:
        """The query as canonical SQL; reads back as an equal query."""
        return self._sql

    @cached_property
    def _sql(self) -> str:
        options = []
        if self.output is not None:
            options.append(f"output = '{self.output}'")
        if self.restore:
            options.append("restore = true")
        if self.approximate:
            options.append("approximate = true")
        if self.skew is not None:
            options.append(f"skew = '{self.skew}'")
        options += options_of(self.guarantees.given)
        said = f" WITH ({', '.join(options)})" if options else ""
        text = _Text(self).body(self.body)
        if self.lasts is not None:
            text = f"Wstream({text})[RANGE {self.extent(self.lasts)}]"
        elif self.show != "rows":
            text = f"{self.show.capitalize()}({text})"
        return f"CREATE QUERY {quote(self.name)}{said} AS {text}"

    def extent(self, ticks: int) -> str:
        """A length as SQL, in the unit of the query's windows."""
        return str(ticks) if self.unit == "plain" else f"'{duration_text(ticks)}'"

    def problem(self, node: exp.Expr | None, message: str, hint: str | None = None) -> Problem:
        """A problem that points at a node of this query, where it was written."""
        # What stands behind a dot are the rows that an aggregate reads.
        name = self.name.partition(".")[0]
        if node is None:
            return Problem(message, hint=hint, query=name)
        return problem_at(node, self.text, message, hint, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowQuery) and self._sql == other._sql

    def __hash__(self) -> int:
        return hash(self._sql)

    def __repr__(self) -> str:
        return f"<RowQuery {self._sql}>"

    def __str__(self) -> str:
        return self._sql


def filling(query: RowQuery) -> RowQuery:
    """The query with a row for windows without rows, if it has aggregates and no groups."""
    computed = query.aggregation
    if computed is None or computed.group_by:
        return query
    return replace(query, aggregation=replace(computed, emit_empty=True))


def selections(body: Body) -> Iterator[Selection]:
    """Every SELECT of an answer, those of EXISTS and IN included, in the order they are written."""
    if isinstance(body, Compound):
        yield from selections(body.left)
        yield from selections(body.right)
        return
    yield body
    for each in body.exists:
        yield from selections(each.selection)


def sources(body: Body) -> Iterator[RowSource]:
    """Every stream that an answer reads, in the order they are written."""
    for selection in selections(body):
        yield from selection.sources


def timeless(query: RowQuery) -> RowQuery:
    """A query over one SELECT whose windows do not name the time columns of their streams."""
    assert isinstance(query.body, Selection)
    return replace(query, body=_timeless(query.body))


def _timeless(selection: Selection) -> Selection:
    sources = tuple(replace(source, time=None) for source in selection.sources)
    inner = (replace(each, selection=_timeless(each.selection)) for each in selection.exists)
    return replace(selection, sources=sources, exists=tuple(inner))


class _Text:
    """The canonical text of one query."""

    def __init__(self, query: RowQuery) -> None:
        self.query = query

    def body(self, body: Body) -> str:
        if isinstance(body, Selection):
            return self.selection(body)
        # What stands on the left of a chain needs no parentheses, except before INTERSECT.
        left, right = self.body(body.left), self.body(body.right)
        if isinstance(body.left, Compound) and body.kind == "intersect" != body.left.kind:
            left = f"({left})"
        if isinstance(body.right, Compound):
            right = f"({right})"
        return f"{left} {body.kind.upper()} {right}"

    def selection(self, selection: Selection, inner: bool = False) -> str:
        computed = None if inner else self.query.aggregation
        listed = selection.items if computed is None else computed.items
        items = ", ".join(_item(item) for item in listed)
        # Without a second stream nothing is qualified, so that the alias says nothing.
        several = len(selection.sources) > 1 or bool(selection.tables)
        labelled = inner or several or bool(selection.exists)
        first, *others = (self.source(source, labelled) for source in selection.sources)
        joins = "".join(
            _joined(source, text)
            for source, text in zip(selection.sources[1:], others, strict=True)
        )
        joins += "".join(f" {table.sql()}" for table in selection.tables)
        words = [f"SELECT {'DISTINCT ' if selection.distinct else ''}{items} FROM {first}{joins}"]
        conditions = [] if selection.where is None else [_conjunct(selection.where)]
        conditions += [self.existence(each) for each in selection.exists]
        if conditions:
            words.append(f"WHERE {' AND '.join(conditions)}")
        if computed is not None:
            words += _clauses(computed)
        return " ".join(words)

    def source(self, source: RowSource, labelled: bool) -> str:
        named = source.label == source.stream.rpartition(".")[2]
        alias = f" AS {quote(source.label)}" if labelled and not named else ""
        return f"{dotted(source.stream)} {self.window(source)}{alias}"

    def window(self, source: RowSource) -> str:
        query = self.query
        words = ["NOW"] if source.range is None else ["RANGE", query.extent(source.range)]
        if query.slide is not None:
            words += ["SLIDE", query.extent(query.slide)]
            if query.phase:
                words += ["OFFSET", query.extent(query.phase)]
        if source.time is not None:
            words += ["WATTR", quote(source.time)]
        if query.internal and query.lasts is None:
            words.append("INTERNAL")
        return f"[{' '.join(words)}]"

    def existence(self, existence: Existence) -> str:
        inner = self.selection(existence.selection, inner=True)
        word = "NOT " if existence.negated else ""
        if existence.value is None:
            return f"{word}EXISTS ({inner})"
        return f"{_operand(existence.value)} {word}IN ({inner})"


def _clauses(computed: Aggregation) -> Iterator[str]:
    """What stands behind WHERE in a query with aggregates."""
    if computed.group_by:
        yield f"GROUP BY {', '.join(canonical_text(each.node) for each in computed.group_by)}"
    if computed.having is not None:
        yield f"HAVING {canonical_text(spelled_out(computed.having, computed.group_by))}"
    if computed.emit_empty:
        yield "EMIT EMPTY"


def _joined(source: RowSource, text: str) -> str:
    """A stream behind the first one, with how it is joined."""
    if source.on is None and not source.using:
        return f", {text}"
    join = "JOIN" if source.kind == "inner" else f"{source.kind.upper()} JOIN"
    if source.on is not None:
        on = f"ON {canonical_text(source.on)}"
    else:
        on = f"USING ({', '.join(quote(name) for name in source.using)})"
    return f" {join} {text} {on}{' EMIT UNMATCHED' if source.whole else ''}"


def _item(output: Output) -> str:
    text = canonical_text(output.node)
    named = isinstance(output.node, exp.Column) and output.node.name == output.name
    return text if output.name == STAR or named else f"{text} AS {quote(output.name)}"


def _conjunct(node: exp.Expr) -> str:
    text = canonical_text(node)
    return f"({text})" if isinstance(node, exp.Or) else text


def _operand(node: exp.Expr) -> str:
    text = canonical_text(node)
    return text if isinstance(node, exp.Column | exp.Literal | exp.Func) else f"({text})"
