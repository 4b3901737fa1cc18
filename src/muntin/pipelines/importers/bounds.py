"""Bounds on how far apart the times of two joined tables are, as conditions say them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from muntin.errors import MuntinError
from muntin.pipelines.importers.statements import ForeignTable
from muntin.queries import canonical_text
from muntin.queries.source import shown
from muntin.windows import duration

BOUND_HINT = "bound the times both ways, as in p.ts BETWEEN o.ts AND o.ts + INTERVAL '1' HOUR"
# Comparisons, and the same seen from the other side.
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.EQ: exp.EQ,
}
# What NOT makes of a comparison: NULL is as unknown as before.
_NEGATED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
}
_KIND = exp.DataType.Type
_INSTANTS = {_KIND.TIMESTAMP, _KIND.TIMESTAMPTZ, _KIND.TIMESTAMPLTZ, _KIND.TIMESTAMPNTZ}
_TIMES = {*_INSTANTS, _KIND.DATE}


@dataclass(frozen=True)
class Bound:
    """How the right time less the left compares with ``apart``, in microseconds.

    It is ``exact`` if two columns are equal as they are, which a key may be as well.
    """

    times: tuple[str, str]
    kind: type[exp.Expr]
    apart: int
    exact: bool = False


@dataclass(frozen=True)
class Unclear:
    """A condition on the times of both tables that is no bound, and why."""

    node: exp.Expr
    message: str
    hint: str = BOUND_HINT


def comparisons(node: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions that one is made of: BETWEEN is two, and NOT is turned round.

    >>> from muntin.queries.sql.parser import parse_expression
    >>> [part.sql() for part in comparisons(parse_expression("NOT (a < b OR c > d)"))]
    ['a >= b', 'c <= d']
    """
    stack = [(node, False)]
    while stack:
        part, negated = stack.pop()
        part = part.unnest()
        if isinstance(part, exp.Not):
            stack.append((part.this, not negated))
        elif isinstance(part, exp.Or if negated else exp.And):
            stack += [(part.expression, negated), (part.this, negated)]
        elif isinstance(part, exp.Between) and not negated and not part.args.get("symmetric"):
            yield exp.GTE(this=part.this.copy(), expression=part.args["low"].copy())
            yield exp.LTE(this=part.this.copy(), expression=part.args["high"].copy())
        elif negated and type(part) in _NEGATED:
            yield _NEGATED[type(part)](this=part.this.copy(), expression=part.expression.copy())
        else:
            yield exp.Not(this=part.copy()) if negated else part


class BoundReader:
    """Finds bounds on the times of two tables.

    Args:
        sides: What qualifies the columns of each table, and what declares it.
    """

    def __init__(self, sides: Sequence[tuple[str, ForeignTable | None]]) -> None:
        self.labels = (sides[0][0], sides[1][0])
        self._labels = [label.lower() for label in self.labels]
        self._kinds = [_kinds(table) for _, table in sides]
        self._marks = [
            {mark.column.lower() for mark in table.watermarks} if table is not None else set()
            for _, table in sides
        ]

    def read(self, node: exp.Expr) -> Bound | Unclear | None:
        """What a comparison says of the times; None if it says nothing of both."""
        if not {0, 1} <= {self.side(each) for each in node.find_all(exp.Column)}:
            return None
        try:
            return self._bound(node) or self._unclear(node)
        except MuntinError as error:
            # An interval in months, or in parts of a microsecond.
            return Unclear(node, error.message, error.hint or BOUND_HINT)

    def is_marked(self, times: tuple[str, str]) -> bool:
        """Whether two columns are the ones that have watermarks."""
        return all(time.lower() in marks for time, marks in zip(times, self._marks, strict=True))

    def _bound(self, node: exp.Expr) -> Bound | None:
        if type(node) not in _TURNED:
            return None
        columns: dict[int, tuple[int, exp.Column]] = {}
        shift = 0
        for sign, term in _terms(node):
            if isinstance(term, int):
                shift += sign * term
                continue
            if not isinstance(term, exp.Column):
                return None
            side = self.side(term)
            if side is None or side in columns:
                return None
            columns[side] = (sign, term)
        if len(columns) < 2 or columns[0][0] == columns[1][0]:
            return None
        pair = (columns[0][1], columns[1][1])
        exact = isinstance(node, exp.EQ) and shift == 0
        known = _INSTANTS if exact else {*_TIMES, None}
        if not all(self._kind(side, column) in known for side, column in enumerate(pair)):
            return None
        turned = columns[1][0] < 0
        kind = _TURNED[type(node)] if turned else type(node)
        return Bound((pair[0].name, pair[1].name), kind, shift if turned else -shift, exact)

    def _unclear(self, node: exp.Expr) -> Unclear | None:
        if node.find(exp.Query, exp.Exists) is not None:
            return None
        timed = {self.side(each) for each in node.find_all(exp.Column) if self._is_instant(each)}
        if not {0, 1} <= timed:
            return None
        return Unclear(node, f"{shown(canonical_text(node))} is not understood as a bound")

    def _is_instant(self, column: exp.Column) -> bool:
        side = self.side(column)
        return side is not None and self._kind(side, column) in _INSTANTS

    def _kind(self, side: int, column: exp.Column) -> exp.DType | None:
        name = column.name.lower()
        return _KIND.TIMESTAMP if name in self._marks[side] else self._kinds[side].get(name)

    def side(self, column: exp.Column) -> int | None:
        """Which of the two tables a column is of: 0 or 1, or None if that is not known."""
        label, name = column.table.lower(), column.name.lower()
        if label:
            return self._labels.index(label) if label in self._labels else None
        found = [side for side in (0, 1) if name in self._kinds[side]]
        return found[0] if len(found) == 1 else None


def _kinds(table: ForeignTable | None) -> Mapping[str, exp.DType | None]:
    """The types of a table's columns; None for those that are computed, or have no counterpart."""
    columns = (table.columns if table is not None else None) or ()
    return {each.name.lower(): each.kind.this if each.kind else None for each in columns}


def _terms(comparison: exp.Expr) -> Iterator[tuple[int, int | exp.Expr]]:
    """The left side less the right, as a sum: lengths, columns and what else it holds."""
    stack = [(-1, comparison.expression), (1, comparison.this)]
    while stack:
        sign, node = stack.pop()
        node = node.unnest()
        if isinstance(node, exp.Add | exp.Sub):
            stack.append((sign if isinstance(node, exp.Add) else -sign, node.expression))
            stack.append((sign, node.this))
        elif isinstance(node, exp.Neg):
            stack.append((-sign, node.this))
        elif isinstance(node, exp.Interval):
            yield sign, duration(canonical_text(node))
        else:
            yield sign, node
