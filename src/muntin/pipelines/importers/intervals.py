"""Interval joins of Spark and Flink: two streams, and bounds on how far their times are apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from muntin.pipelines.importers.bounds import (
    BOUND_HINT,
    Bound,
    BoundReader,
    Unclear,
    comparisons,
)
from muntin.pipelines.importers.statements import ForeignTable
from muntin.pipelines.importers.windows import Refusal
from muntin.queries.analysis.joins import conjuncts
from muntin.queries.sql.clauses import Extent, WindowClause
from muntin.windows import duration_text

ROWS_HINT = "aggregate each stream by itself, or the results of the join"
DISTINCT_HINT = "leave DISTINCT out, and drop what occurs twice where results are read"
BEHIND_HINT = "move the bounds to ON; in WHERE they drop rows without a partner, as JOIN does"
_CLAUSES = {"expressions", "from_", "joins", "where"}
_OUTER = ("LEFT", "RIGHT", "FULL")


@dataclass
class _Span:
    """What is said of two columns: bounds on the right less the left, inclusive.

    ``bounds`` are the conditions that say nothing else; a key keeps its own (``exact``).
    """

    times: tuple[str, str]
    low: int | None = None
    high: int | None = None
    bounds: list[exp.Expr] = field(default_factory=list)
    exact: bool = True

    @property
    def is_closed(self) -> bool:
        return self.low is not None and self.high is not None

    def tighten(self, bound: Bound) -> None:
        """Take one more bound."""
        kind, apart = bound.kind, bound.apart
        self.exact = self.exact and bound.exact
        if kind in (exp.GT, exp.GTE, exp.EQ):
            least = apart + (kind is exp.GT)
            self.low = least if self.low is None else max(self.low, least)
        if kind in (exp.LT, exp.LTE, exp.EQ):
            most = apart - (kind is exp.LT)
            self.high = most if self.high is None else min(self.high, most)


@dataclass(frozen=True)
class Interval:
    """Two streams, how they are joined, and how far apart the times of partners are.

    Attributes:
        labels: What qualifies their columns.
        side: INNER, LEFT, RIGHT, FULL, SEMI or ANTI.
        span: The times that are compared, and their bounds; None if there are none.
        unclear: Conditions on times that are no bounds.
        behind: A bound in WHERE, behind an outer join.
    """

    labels: tuple[str, str]
    side: str
    span: _Span | None
    unclear: tuple[Unclear, ...] = ()
    behind: exp.Expr | None = None

    @property
    def ranges(self) -> tuple[int, int] | None:
        """How long rows of each side live, so that all pairs within the bounds meet."""
        if self.span is None or self.span.low is None or self.span.high is None:
            return None
        left, right = max(self.span.high, 0), max(-self.span.low, 0)
        if self.side == "SEMI":
            # From its first partner to its end a row always has one: it is shown once.
            right += left
        return left + 1, right + 1


def interval_of(select: exp.Expr, tables: Mapping[str, ForeignTable]) -> Interval | None:
    """The interval join that a SELECT is; None if it compares no times of two tables.

    Args:
        select: The query.
        tables: The declared tables by their names in lower case.
    """
    joins: list[exp.Expr] = list(select.args.get("joins") or ())
    source = select.args.get("from_")
    if not isinstance(select, exp.Select) or source is None or len(joins) != 1:
        return None
    sides = [source.this, joins[0].this]
    plain = all(isinstance(each, exp.Table) and not each.args.get("version") for each in sides)
    if not plain or any(each.args.get("window") is not None for each in sides):
        return None
    reader = BoundReader([(each.alias_or_name, tables.get(each.name.lower())) for each in sides])
    side = joins[0].args.get("side") or "INNER"
    on, where = joins[0].args.get("on"), select.args.get("where")
    roots = [] if on is None else [on]
    if where is not None and side == "INNER":
        roots.append(where.this)
    # A query that groups may join a table whose key is a time.
    grouped = select.args.get("group") is not None
    spans, unclear = _spans(reader, roots, with_keys=not grouped)
    span = _chosen(spans, reader)
    behind = None
    if side in _OUTER and where is not None and (span is None or not span.is_closed):
        others = _spans(reader, [where.this], with_keys=False)[0]
        behind = next((node for each in others for node in each.bounds), None)
    if span is None and (grouped or not (unclear or behind)):
        return None
    return Interval(reader.labels, side, span, tuple(unclear), behind)


def _spans(
    reader: BoundReader, roots: Iterable[exp.Expr], *, with_keys: bool
) -> tuple[list[_Span], list[Unclear]]:
    """All pairs of columns that conditions bound, and the conditions that are not understood."""
    spans: dict[tuple[str, str], _Span] = {}
    unclear: list[Unclear] = []
    for node in (part for root in roots for part in conjuncts(root)):
        said = [reader.read(part) for part in comparisons(node)]
        bounds = [each for each in said if isinstance(each, Bound)]
        unclear += [each for each in said if isinstance(each, Unclear)]
        touched: list[_Span] = []
        for bound in bounds:
            if bound.exact and not with_keys:
                continue
            key = (bound.times[0].lower(), bound.times[1].lower())
            touched.append(spans.setdefault(key, _Span(bound.times)))
            touched[-1].tighten(bound)
        # What says more than bounds on two columns, or may be a key, stays as it is.
        whole = len(touched) == len(said) and all(each is touched[0] for each in touched)
        if whole and not any(bound.exact for bound in bounds):
            touched[0].bounds.append(node)
    return list(spans.values()), unclear


def _chosen(spans: list[_Span], reader: BoundReader) -> _Span | None:
    """The columns that are the times: those with watermarks, or with bounds both ways."""

    def weight(span: _Span) -> tuple[bool, bool, bool]:
        return reader.is_marked(span.times), span.is_closed, not span.exact

    return max(spans, key=weight, default=None)


def make_windows(select: exp.Select, interval: Interval) -> None:
    """Give both streams of an interval join windows in which all its pairs meet, and no others.

    Windows say how far the right time may be before and after the left one; a bound that they do
    not imply stays as a condition. An outer join pads rows that never have a partner, and those
    are what an ANTI JOIN shows.

    Raises:
        Refusal: If a bound is missing, or it is more than a join.
    """
    join = select.args["joins"][0]
    others = [key for key, value in select.args.items() if value and key not in _CLAUSES]
    ranges, span = interval.ranges, interval.span
    if ranges is None or span is None:
        raise _unbounded(join, interval)
    if others:
        what = {"group": "GROUP BY", "order": "ORDER BY"}.get(others[0], others[0].upper())
        hint = DISTINCT_HINT if others[0] == "distinct" else ROWS_HINT
        raise Refusal(join.this, f"{what} above a join by time", hint)
    sides = (select.args["from_"].this, join.this)
    for table, time, length in zip(sides, span.times, ranges, strict=True):
        table.set("window", _clause(length, time))
    if interval.side in _OUTER:
        join.set("whole", True)
    _replace_bounds(select, join, interval, span)
    if interval.side == "ANTI":
        _pad(select, join, exp.column(span.times[1], interval.labels[1]))


def _unbounded(join: exp.Expr, interval: Interval) -> Refusal:
    """Why an interval join has no windows."""
    if interval.behind is not None:
        message = f"the times are compared in WHERE, behind {interval.side} JOIN"
        return Refusal(interval.behind, message, BEHIND_HINT)
    if interval.unclear:
        unclear = interval.unclear[0]
        return Refusal(unclear.node, unclear.message, unclear.hint)
    which = "lower" if interval.span is None or interval.span.low is None else "upper"
    return Refusal(join.this, f"the difference of the times has no {which} bound", BOUND_HINT)


def _pad(select: exp.Select, join: exp.Expr, time: exp.Column) -> None:
    """ANTI JOIN: of the outer join, the rows whose partner has no time."""
    join.set("side", "LEFT")
    join.set("whole", True)
    where = select.args.get("where")
    terms = [] if where is None else [where.this]
    select.set(
        "where", exp.Where(this=_connected([*terms, exp.Is(this=time, expression=exp.Null())]))
    )


def _replace_bounds(select: exp.Select, join: exp.Expr, interval: Interval, span: _Span) -> None:
    """Take out the bounds that the windows imply, and spell the others without intervals."""
    left, right = (
        exp.Anonymous(this="unix_micros", expressions=[exp.column(time, label)])
        for time, label in zip(span.times, interval.labels, strict=True)
    )
    apart = exp.Sub(this=right, expression=left)
    bounds: list[exp.Expr] = []
    assert interval.ranges is not None
    assert span.low is not None
    assert span.high is not None
    if span.low > 1 - interval.ranges[1]:
        bounds.append(exp.GTE(this=apart.copy(), expression=_number(span.low)))
    if span.high < interval.ranges[0] - 1:
        bounds.append(exp.LTE(this=apart.copy(), expression=_number(span.high)))
    gone = {id(node) for node in span.bounds}
    on, where = join.args.get("on"), select.args.get("where")
    if on is not None:
        join.set("on", _connected([*_kept(on, gone), *bounds]))
    if where is not None:
        rest = [*_kept(where.this, gone), *(bounds if on is None else [])]
        select.set("where", exp.Where(this=_connected(rest)) if rest else None)


def _number(value: int) -> exp.Expr:
    literal = exp.Literal.number(abs(value))
    return exp.Neg(this=literal) if value < 0 else literal


def _kept(root: exp.Expr, gone: set[int]) -> list[exp.Expr]:
    return [node.copy() for node in conjuncts(root) if id(node) not in gone]


def _connected(nodes: list[exp.Expr]) -> exp.Expr | None:
    return exp.and_(*nodes, copy=False) if nodes else None


def _clause(length: int, time: str) -> WindowClause:
    return WindowClause(
        spelling="[...]",
        measure="time",
        align="end",
        range=Extent(this=duration_text(length), rows=False),
        time=exp.to_identifier(time),
    )
