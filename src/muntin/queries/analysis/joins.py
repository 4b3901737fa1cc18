"""From the joins of a SELECT to tables and the equalities that find their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from muntin.queries.analysis.checks import check_expression, check_row_expression
from muntin.queries.analysis.scope import Scope
from muntin.queries.query import Join, JoinKind, column
from muntin.queries.report import Report
from muntin.queries.source import position, shown
from muntin.queries.sql.joins import JOIN_HINT
from muntin.queries.sql.normalize import normalize

Pair = tuple[exp.Expr, exp.Expr]


def table_name(table: exp.Expr) -> str:
    """The name of a stream or table, with dots where it is qualified."""
    assert isinstance(table, exp.Table)
    return ".".join(part.name for part in table.parts)


def read_joins(
    nodes: Sequence[exp.Expr], where: exp.Expr | None, scope: Scope, report: Report
) -> tuple[tuple[Join, ...], exp.Expr | None]:
    """The joins of a SELECT, and what is left of WHERE.

    A table after a comma takes its equalities from WHERE, where both sides must be qualified.
    """
    reader = _Reader(scope, report)
    commas = {number for number, node in enumerate(nodes, 1) if _after_comma(node)}
    found, rest = reader.split_where(where, commas) if commas else ({}, where)
    joins = []
    for number, node in enumerate(nodes, 1):
        pairs = found.get(number, []) if number in commas else reader.condition(node, number)
        if number in commas and not pairs:
            reader.refuse_comma(node, number)
        kind: JoinKind = "left" if node.args.get("side") == "LEFT" else "inner"
        label, start = scope.labels[number], position(node.this)
        joins.append(Join(table_name(node.this), label, kind, tuple(pairs), start))
    return tuple(joins), rest


def read_table_joins(
    nodes: Sequence[exp.Expr], first: int, scope: Scope, report: Report
) -> tuple[Join, ...]:
    """The tables that streams with windows are joined with; ``first`` numbers their labels."""
    reader = _Reader(scope, report)
    joins = []
    for number, node in enumerate(nodes, first):
        label, start = scope.labels[number], position(node.this)
        if _after_comma(node):
            hint = f"write JOIN {shown(label)} ON ..., beside streams with windows"
            report.add(node.this, f"table {shown(label)} after a comma", hint)
            continue
        kind: JoinKind = "left" if node.args.get("side") == "LEFT" else "inner"
        pairs = tuple(reader.condition(node, number))
        joins.append(Join(table_name(node.this), label, kind, pairs, start))
    return tuple(joins)


def _after_comma(join: exp.Expr) -> bool:
    return join.args.get("on") is None and join.args.get("using") is None


class _Reader:
    def __init__(self, scope: Scope, report: Report) -> None:
        self.scope = scope
        self.report = report

    def condition(self, join: exp.Expr, number: int) -> list[Pair]:
        """The equalities of ON or USING."""
        label = self.scope.labels[number]
        if join.args.get("using") is not None:
            return [_using(name, label) for name in join.args["using"]]
        on = normalize(join.args["on"])
        if not check_expression(on, self.report):
            return []
        check_row_expression(on, "ON", self.report)
        before = len(self.report.problems)
        parts = [self._pair(part, number, join.this) for part in conjuncts(on)]
        pairs = [pair for pair in parts if pair is not None]
        computed = any(left.find(exp.Column) is not None for left, _ in pairs)
        if not computed and len(self.report.problems) == before:
            message = f"ON compares {shown(label)} with constants only"
            self.report.add(on, message, f"compare it with the stream: {JOIN_HINT}")
        return pairs

    def _pair(self, node: exp.Expr, number: int, table: exp.Expr) -> Pair | None:
        label = shown(self.scope.labels[number])
        node = node.unnest()
        if not isinstance(node, exp.EQ):
            hint = "compare columns with =, joined by AND; other conditions belong in WHERE"
            # Some constants do not know their place.
            place = table if position(node) is None else node
            self.report.add(place, "ON takes equalities only", hint)
            return None
        for left, right in ((node.this, node.expression), (node.expression, node.this)):
            if self._is_of(right, number) and number not in (used := self._numbers(left)):
                late = [other for other in used if other is not None and other > number]
                if late:
                    name = shown(self.scope.labels[late[0]])
                    self.report.add(left, f"{name} is joined after {label}", "join it before")
                    return None
                return left.copy(), right.copy()
        if number in self._numbers(node):
            hint = f"write expression = {label}.column; compute other columns of it beforehand"
            message = f"no side of this equality is a column of {label} alone"
        else:
            message, hint = f"ON does not name a column of {label}", f"write ... = {label}.column"
        self.report.add(node, message, hint)
        return None

    def split_where(
        self, where: exp.Expr | None, commas: set[int]
    ) -> tuple[dict[int, list[Pair]], exp.Expr | None]:
        """The equalities of WHERE that join the tables after commas, and the rest of it."""
        pairs: dict[int, list[Pair]] = {}
        rest: list[exp.Expr] = []
        for part in conjuncts(where) if where is not None else ():
            found = self._joining(part)
            if found is not None and found[0] in commas:
                pairs.setdefault(found[0], []).append(found[1])
            else:
                rest.append(part.copy())
        return pairs, normalize(exp.and_(*rest, copy=False, wrap=False)) if rest else None

    def _joining(self, node: exp.Expr) -> tuple[int, Pair] | None:
        """The table that an equality joins with what stands before it, if it does."""
        node = node.unnest()
        if not isinstance(node, exp.EQ):
            return None
        used = self._numbers(node)
        if None in used or len(used) < 2:
            return None
        last = max(number for number in used if number is not None)
        for left, right in ((node.this, node.expression), (node.expression, node.this)):
            if self._is_of(right, last) and last not in self._numbers(left):
                return last, (left.copy(), right.copy())
        return None

    def refuse_comma(self, join: exp.Expr, number: int) -> None:
        """Reports a table after a comma that WHERE does not join."""
        stream, label = shown(self.scope.labels[0]), shown(self.scope.labels[number])
        message = f"WHERE does not join {label} with what stands before it"
        hint = f"write WHERE {stream}.symbol = {label}.symbol, both sides qualified"
        self.report.add(join.this, message, hint)

    def _is_of(self, node: exp.Expr, number: int) -> bool:
        return isinstance(node, exp.Column) and self.scope.number(node) == number

    def _numbers(self, node: exp.Expr) -> set[int | None]:
        """The tables an expression reads, None among them if a column is not qualified."""
        return {self.scope.number(part) for part in node.find_all(exp.Column)}


def _using(name: exp.Expr, label: str) -> Pair:
    start = position(name)
    own = column(name.name, start)
    own.set("table", column(label, start).this)
    return column(name.name, start), own


def conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions that AND connects, from left to right."""
    stack = [node]
    while stack:
        part = stack.pop()
        inner = part.unnest()
        if isinstance(inner, exp.And):
            stack += [inner.expression, inner.this]
        else:
            yield part
