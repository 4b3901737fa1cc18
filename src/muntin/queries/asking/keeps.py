"""A keep: what of a stream is kept, for how long and how finely, so that it can be asked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from sqlglot import exp

from muntin.errors import Problem
from muntin.queries.query import Output, Query
from muntin.queries.report import Report
from muntin.queries.source import problem_at
from muntin.queries.sql.aggregate_calls import as_call
from muntin.queries.sql.normalize import canonical_text
from muntin.windows import Window

GRID_HINT = "write [RANGE '1 hour' SLIDE '1 second']: for how long, and how finely"
# No name of a column: what tells the rows of a cut apart.
CUT_NAME = "$cut{}"


@dataclass(frozen=True, eq=False, repr=False)
class Keep:
    """Aggregates of groups per slice of a grid, kept for a span of time. It emits nothing.

    Two keeps are equal when their canonical SQL is.

    Attributes:
        query: What is kept: its RANGE is the span, its SLIDE the grid.
        cuts: Conditions that questions may ask by, beside those on group columns and in FILTER.

    >>> from muntin.queries import keeps
    >>> (keep,) = keeps("CREATE KEEP k AS SELECT max(v) FROM s [RANGE 60 SLIDE 5] CUT (v>7)")
    >>> keep.name, keep.span, keep.slide
    ('k', 60, 5)
    >>> print(keep)
    CREATE KEEP k AS SELECT max(v) AS `max(v)` FROM s [RANGE 60 SLIDE 5] CUT (v > 7)
    """

    query: Query
    cuts: tuple[exp.Expr, ...] = ()

    @property
    def name(self) -> str:
        """Its name; keeps of one stream differ in more than letter case."""
        return self.query.name

    @property
    def source(self) -> str:
        """The stream it is kept of."""
        return self.query.source

    @property
    def span(self) -> int:
        """How long slices are kept, in ticks."""
        return self.query.window.range

    @property
    def slide(self) -> int:
        """The width of a slice, in ticks."""
        return self.query.window.period

    @property
    def phase(self) -> int:
        """Where slices begin: at ticks t with ``t mod slide = phase``."""
        return self.query.window.phase

    @cached_property
    def grid(self) -> Query:
        """The query whose windows are the slices: every cut is a FILTER of it."""
        window = self.query.window
        tumbling = Window(self.slide, self.slide, self.phase, unit=window.unit)
        cuts = tuple(
            Output(CUT_NAME.format(number), _counted(cut)) for number, cut in enumerate(self.cuts)
        )
        return replace(self.query, window=tumbling, select=(*self.query.select, *cuts))

    def sql(self) -> str:
        """The keep as canonical SQL, which reads back as an equal one."""
        cuts = ", ".join(canonical_text(cut) for cut in self.cuts)
        text = "CREATE KEEP" + self.query.sql().removeprefix("CREATE QUERY")
        return f"{text} CUT ({cuts})" if cuts else text

    def problem(self, node: exp.Expr, message: str, hint: str | None = None) -> Problem:
        """A problem that points at a node of this keep, where it was written."""
        return problem_at(node, self.query.text, message, hint, self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Keep) and self.sql() == other.sql()

    def __hash__(self) -> int:
        return hash(self.sql())

    def __repr__(self) -> str:
        return f"<Keep {self.sql()}>"

    def __str__(self) -> str:
        return self.sql()


def _counted(cut: exp.Expr) -> exp.Expr:
    call = exp.Anonymous(this="count", expressions=[exp.Star()])
    return exp.Filter(this=call, expression=exp.Where(this=cut.copy()))


@dataclass(frozen=True)
class CreateKeep:
    """CREATE [OR REPLACE] KEEP; ``start`` is the offset of the statement."""

    keep: Keep
    replace: bool = False
    start: int = field(default=0, compare=False, repr=False)
    from_start: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True)
class DropKeep:
    """DROP KEEP."""

    name: str
    start: int = field(default=0, compare=False, repr=False)


def check_keep(query: Query, report: Report) -> bool:
    """Report what a keep cannot have; whether there is nothing."""
    before = len(report.problems)
    window = query.window
    if window.measure == "rows" or not window.periodic:
        report.add(None, "a keep needs a span and a grid in time", GRID_HINT)
    elif window.period > window.range:
        report.add(None, "a keep's SLIDE is longer than its RANGE", GRID_HINT)
    if query.having is not None:
        report.add(query.having, "a keep has no HAVING", "put it into the questions")
    if query.emit_empty:
        report.add(None, "a keep emits nothing, so EMIT EMPTY says nothing", "leave it out")
    if query.time is not None:
        report.add(None, "a keep goes by the time of its stream", "leave out WATTR")
    for output in query.select:
        if as_call(output.node) is None:
            hint = "keep the aggregates on their own; questions may compute with them"
            report.add(output.node, "a keep keeps aggregates, not expressions of them", hint)
    return len(report.problems) == before
