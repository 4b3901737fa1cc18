"""A keep: what of a stream is kept, for how long and how finely, so that it can be asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from sqlglot import exp

from muntin.errors import Problem, QueryError
from muntin.queries.query import Output, Query
from muntin.queries.report import Report
from muntin.queries.source import problem_at
from muntin.queries.sql.aggregate_calls import as_call
from muntin.queries.sql.clauses import MAX_DIGITS
from muntin.queries.sql.normalize import canonical_text, dotted, quote
from muntin.queries.sql.spellings import to_window
from muntin.windows import Window

# A window of more rows is one in time, or kept elsewhere.
MOST_ROWS = 100_000
SYNOPSES = ("running", "interval", "basic_interval", "timegram", "ordered_sharing")
# Buckets of a TimeGram between a number and its double.
BUCKETS = 64
MOST_BUCKETS = 4096
GRID_HINT = "write [RANGE '1 hour' SLIDE '1 second']: for how long, and how finely"
ROWS_HINT = "write CREATE KEEP last AS SELECT * FROM t [ROWS 500], or [PARTITION BY k ROWS 10]"
# No name of a column: what tells the rows of a cut apart.
CUT_NAME = "$cut{}"


@dataclass(frozen=True, eq=False, repr=False)
class Keep:
    """Aggregates of groups per slice of a grid, kept for a span of time. It emits nothing.

    Two keeps are equal when their canonical SQL is.

    Attributes:
        query: What is kept: its RANGE is the span, its SLIDE the grid.
        cuts: Conditions that questions may ask by, beside those on group columns and in FILTER.
        synopsis: By which structure ranges of slices are answered; chosen for each part if None.
        buckets: Of a TimeGram: how many lie between a number and its double.

    >>> from muntin.queries import keeps
    >>> (keep,) = keeps("CREATE KEEP k AS SELECT max(v) FROM s [RANGE 60 SLIDE 5] CUT (v>7)")
    >>> keep.name, keep.span, keep.slide
    ('k', 60, 5)
    >>> print(keep)
    CREATE KEEP k AS SELECT max(v) AS `max(v)` FROM s [RANGE 60 SLIDE 5] CUT (v > 7)
    """

    query: Query
    cuts: tuple[exp.Expr, ...] = ()
    synopsis: str | None = None
    buckets: int | None = None

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
        text = f"{text} CUT ({cuts})" if cuts else text
        return f"{text}{self.options}"

    @property
    def options(self) -> str:
        """WITH and its options, as they stand at the end; nothing where there are none."""
        if self.synopsis is None:
            return ""
        buckets = "" if self.buckets is None else f", buckets = {self.buckets}"
        return f" WITH (synopsis = '{self.synopsis}'{buckets})"

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
class RowKeep:
    """The latest rows of a stream, or of each partition of it. It emits nothing.

    Attributes:
        name: Its name; keeps of one stream differ in more than letter case.
        source: The stream it is kept of.
        rows: How many rows are kept.
        partition: The columns whose values tell partitions apart; none for the whole stream.
        columns: The columns that are kept; None for all.

    >>> print(RowKeep("last", "trades", 10, ("symbol",)))
    CREATE KEEP last AS SELECT * FROM trades [PARTITION BY symbol ROWS 10]
    """

    name: str
    source: str
    rows: int
    partition: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None

    def sql(self) -> str:
        """The keep as canonical SQL, which reads back as an equal one."""
        shown = "*" if self.columns is None else ", ".join(map(quote, self.columns))
        by = f"PARTITION BY {', '.join(map(quote, self.partition))} " if self.partition else ""
        return (
            f"CREATE KEEP {quote(self.name)} AS SELECT {shown} FROM {dotted(self.source)} "
            f"[{by}ROWS {self.rows}]"
        )

    def __str__(self) -> str:
        return self.sql()


AnyKeep: TypeAlias = Keep | RowKeep


@dataclass(frozen=True)
class CreateKeep:
    """CREATE [OR REPLACE] KEEP; ``start`` is the offset of the statement."""

    keep: AnyKeep
    replace: bool = False
    start: int = field(default=0, compare=False, repr=False)
    from_start: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True)
class DropKeep:
    """DROP KEEP."""

    name: str
    start: int = field(default=0, compare=False, repr=False)


def slice_keep(keep: AnyKeep) -> Keep:
    """A keep of slices; one of rows is refused, which streams in one process have only."""
    if isinstance(keep, RowKeep):
        message = (
            "a run on Spark keeps slices, not the latest rows: "
            "its tasks do not preserve the order of rows"
        )
        hint = f"{GRID_HINT}; or keep rows in a muntin.stream"
        raise QueryError([Problem(message, hint, keep.name)])
    return keep


def read_options(options: Sequence[exp.Expr], report: Report) -> tuple[str | None, int | None]:
    """The synopsis of a keep and its buckets; what is wrong with them is reported."""
    given = {option.name: option for option in options}
    if len(given) < len(options):
        report.add(options[-1], "an option is given twice", "leave one out")
    known = f"write WITH (synopsis = '{SYNOPSES[0]}'), or {' or '.join(SYNOPSES[1:])}"
    chosen, count = given.get("synopsis"), given.get("buckets")
    synopsis = None if chosen is None else str(chosen.args["value"]).lower()
    if synopsis is not None and synopsis not in SYNOPSES:
        report.add(chosen, f"there is no synopsis {synopsis!r}", known)
    if count is not None and synopsis != "timegram":
        hint = "write WITH (synopsis = 'timegram', buckets = 64)"
        report.add(count, "only a TimeGram has buckets", hint)
    if synopsis != "timegram":
        return synopsis, None
    text = BUCKETS if count is None else count.args["value"]
    buckets = int(text) if len(str(text)) < MAX_DIGITS else 0
    if not 1 <= buckets <= MOST_BUCKETS or buckets & (buckets - 1):
        message = f"buckets must be a power of two up to {MOST_BUCKETS:,}, not {text}"
        report.add(count, message, "write buckets = 64: values are known to one part in 64")
    return synopsis, buckets


def read_row_keep(node: exp.Expr, name: str, report: Report) -> RowKeep | None:
    """A keep of rows as it is written, or None after its problems are reported."""
    select = node.this if isinstance(node, exp.Subquery) else node
    source = select.args.get("from_") if isinstance(select, exp.Select) else None
    clause = None if source is None else source.this.args.get("window")
    if clause is None or clause.args["measure"] != "rows":
        report.add(node, "a keep keeps aggregates of groups, or the latest rows", ROWS_HINT)
        return None
    assert isinstance(select, exp.Select)
    assert source is not None
    rest = {key for key, value in select.args.items() if value} - {"expressions", "from_", "kind"}
    if rest or clause.args.get("slide") is not None or clause.args.get("time") is not None:
        report.add(node, "a keep of rows has columns and a number of rows, nothing else", ROWS_HINT)
        return None
    columns: tuple[str, ...] | None = None
    if not any(isinstance(each, exp.Star) for each in select.expressions):
        if not all(isinstance(each, exp.Column) for each in select.expressions):
            report.add(node, "a keep of rows keeps columns as they are", ROWS_HINT)
            return None
        columns = tuple(each.name for each in select.expressions)
    window = to_window(clause, report)
    if window is None:
        return None
    if not 1 <= window.range <= MOST_ROWS:
        report.add(node, f"a keep has 1 to {MOST_ROWS:,} rows, not {window.range:,}", ROWS_HINT)
        return None
    partition = tuple(each.name for each in clause.args.get("partition") or ())
    return RowKeep(name, source.this.name, window.range, partition, columns)


def check_keep(query: Query, report: Report) -> bool:
    """Report what a keep cannot have; whether there is nothing."""
    before = len(report.problems)
    window = query.window
    if window.measure == "rows" or not window.periodic:
        report.add(None, "a keep needs a RANGE and a SLIDE over time", GRID_HINT)
    elif window.period > window.range:
        report.add(None, "a keep's SLIDE is longer than its RANGE", GRID_HINT)
    if query.having is not None:
        report.add(query.having, "a keep has no HAVING", "put it into the questions")
    if query.emit_empty:
        report.add(None, "a keep emits nothing, so EMIT EMPTY has no effect", "leave it out")
    if query.time is not None:
        report.add(None, "a keep uses the time of its stream", "leave out WATTR")
    for output in query.select:
        if as_call(output.node) is None:
            hint = "keep the aggregates on their own; questions may compute with them"
            report.add(output.node, "a keep keeps aggregates, not expressions of them", hint)
    return len(report.problems) == before
