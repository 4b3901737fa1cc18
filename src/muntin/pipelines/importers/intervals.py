"""Interval joins of Spark and Flink: two streams, and bounds on how far their times are apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from muntin.errors import MuntinError
from muntin.pipelines.importers.statements import ForeignTable
from muntin.pipelines.importers.windows import Refusal
from muntin.queries import canonical_text
from muntin.queries.analysis.joins import conjuncts
from muntin.queries.sql.clauses import Extent, WindowClause
from muntin.windows import duration, duration_text

BOUND_HINT = "bound the times both ways, as in p.ts BETWEEN o.ts AND o.ts + INTERVAL '1' HOUR"
TWO_HINT = "join two streams in a query, or write it anew; see docs/joins.md"
ROWS_HINT = "aggregate each stream by itself, or the results of the join"
# Bounds on the difference of two times, and the same seen from the other side.
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.EQ: exp.EQ,
}
_CLAUSES = {"expressions", "from_", "joins", "where"}


@dataclass(frozen=True)
class _Moment:
    """A time column of one side, moved by some microseconds."""

    side: int
    column: str
    shift: int


@dataclass
class Interval:
    """Two streams and the bounds on the right time less the left, in microseconds, inclusive.

    ``times`` are the columns that are compared, ``bounds`` the conditions that compare them.
    """

    labels: tuple[str, str]
    times: tuple[str, str]
    low: int | None = None
    high: int | None = None
    bounds: list[exp.Expr] = field(default_factory=list)

    @property
    def ranges(self) -> tuple[int, int] | None:
        """How long rows of each side live, so that all pairs within the bounds meet."""
        if self.low is None or self.high is None:
            return None
        return max(self.high, 0) + 1, max(-self.low, 0) + 1


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
    reader = _Reader([(each.alias_or_name, tables.get(each.name.lower())) for each in sides])
    found: Interval | None = None
    where = select.args.get("where")
    inner = (joins[0].args.get("side") or "INNER") == "INNER"
    roots = [joins[0].args.get("on"), where.this if where is not None and inner else None]
    for node in (part for root in roots if root is not None for part in conjuncts(root)):
        compared = list(reader.bounds(node.unnest()))
        for kind, first, second in compared:
            found = found or Interval(reader.labels, (second.column, first.column))
            names = (second.column.lower(), first.column.lower())
            if names == (found.times[0].lower(), found.times[1].lower()):
                _tighten(found, kind, second.shift - first.shift)
                found.bounds += [node] if node not in found.bounds else []
    return found


def _tighten(interval: Interval, kind: type[exp.Expr], bound: int) -> None:
    """Take one more bound: the right time less the left, compared with a number."""
    if kind in (exp.GT, exp.GTE, exp.EQ):
        least = bound + (kind is exp.GT)
        interval.low = least if interval.low is None else max(interval.low, least)
    if kind in (exp.LT, exp.LTE, exp.EQ):
        most = bound - (kind is exp.LT)
        interval.high = most if interval.high is None else min(interval.high, most)


class _Reader:
    """Finds comparisons of the times of two tables."""

    def __init__(self, sides: list[tuple[str, ForeignTable | None]]) -> None:
        self._labels = [label.lower() for label, _ in sides]
        self.labels = (sides[0][0], sides[1][0])
        self._columns = [
            {column.name.lower() for column in (table.columns or ())} if table else set()
            for _, table in sides
        ]

    def bounds(self, node: exp.Expr) -> Iterator[tuple[type[exp.Expr], _Moment, _Moment]]:
        """The bounds that a condition is: how the right time compares with the left."""
        if isinstance(node, exp.Between):
            yield from self.bounds(exp.GTE(this=node.this, expression=node.args["low"]))
            yield from self.bounds(exp.LTE(this=node.this, expression=node.args["high"]))
        if type(node) not in _TURNED:
            return
        first, second = self._moment(node.this), self._moment(node.expression)
        if first is None or second is None or first.side == second.side:
            return
        if isinstance(node, exp.EQ) and not (first.shift or second.shift):
            # Equal keys look alike, and a time that equals a time exactly is a key as well.
            return
        if first.side == 1:
            yield type(node), first, second
        else:
            yield _TURNED[type(node)], second, first

    def _moment(self, node: exp.Expr) -> _Moment | None:
        node, shift = node.unnest(), 0
        while isinstance(node, exp.Add | exp.Sub):
            sign = 1 if isinstance(node, exp.Add) else -1
            extent = node.expression.unnest()
            if not isinstance(extent, exp.Interval):
                return None
            try:
                shift += sign * duration(canonical_text(extent))
            except MuntinError:
                return None
            node = node.this.unnest()
        if not isinstance(node, exp.Column):
            return None
        side = self._side(node)
        return None if side is None else _Moment(side, node.name, shift)

    def _side(self, column: exp.Column) -> int | None:
        label, name = column.table.lower(), column.name.lower()
        if label:
            return self._labels.index(label) if label in self._labels else None
        found = [side for side in (0, 1) if name in self._columns[side]]
        return found[0] if len(found) == 1 else None


def make_windows(select: exp.Select, interval: Interval) -> None:
    """Give both streams of an interval join windows in which all its pairs meet, and no others.

    Windows say how far the right time may be before and after the left one; a bound that leaves
    out equal times stays as a condition. An outer join pads rows that never have a partner.

    Raises:
        Refusal: If a bound is missing, or it is more than a join.
    """
    join = select.args["joins"][0]
    others = [key for key, value in select.args.items() if value and key not in _CLAUSES]
    if interval.ranges is None:
        which = "lower" if interval.low is None else "upper"
        message = f"the difference of the times has no {which} bound"
        raise Refusal(join.this, message, BOUND_HINT)
    if others:
        what = {"group": "GROUP BY", "order": "ORDER BY"}.get(others[0], others[0].upper())
        raise Refusal(join.this, f"{what} above a join by time", ROWS_HINT)
    sides = (select.args["from_"].this, join.this)
    for table, time, length in zip(sides, interval.times, interval.ranges, strict=True):
        table.set("window", _clause(length, time))
    if join.args.get("side") in ("LEFT", "RIGHT", "FULL"):
        join.set("whole", True)
    _replace_bounds(select, join, interval)


def _replace_bounds(select: exp.Select, join: exp.Expr, interval: Interval) -> None:
    """Take out the bounds that the windows imply, and spell the others without intervals."""
    left, right = (
        exp.Anonymous(this="unix_micros", expressions=[exp.column(time, label)])
        for time, label in zip(interval.times, interval.labels, strict=True)
    )
    apart = exp.Sub(this=right, expression=left)
    bounds: list[exp.Expr] = []
    assert interval.low is not None
    assert interval.high is not None
    if interval.low > 0:
        bounds.append(exp.GTE(this=apart.copy(), expression=exp.Literal.number(interval.low)))
    if interval.high < 0:
        most = exp.Neg(this=exp.Literal.number(-interval.high))
        bounds.append(exp.LTE(this=apart.copy(), expression=most))
    gone = {id(node) for node in interval.bounds}
    on, where = join.args.get("on"), select.args.get("where")
    if on is not None:
        join.set("on", _connected([*_kept(on, gone), *bounds]))
    if where is not None:
        rest = [*_kept(where.this, gone), *(bounds if on is None else [])]
        select.set("where", exp.Where(this=_connected(rest)) if rest else None)


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
