"""What columns of one query may be qualified with: the stream and the tables it is joined with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from muntin.errors import did_you_mean
from muntin.queries.query import BOUNDS, column
from muntin.queries.report import Report
from muntin.queries.source import position, shown
from muntin.queries.sql.depth import parts
from muntin.queries.sql.normalize import is_plain

_CLAUSES = ("where", "group", "having")


class Scope:
    """The stream and the joined tables of a SELECT, in order, as columns name them.

    Args:
        labels: The stream's alias or name, then those of the tables.
        report: Where problems go.
        partners: What SEMI and ANTI JOIN call their streams, which ON alone may name; and which of
            the two it is.
    """

    def __init__(
        self, labels: Iterable[str], report: Report, partners: Mapping[str, str] | None = None
    ) -> None:
        self.labels = tuple(labels)
        self.report = report
        self._partners = {label.lower(): side for label, side in (partners or {}).items()}
        self._numbers = {label.lower(): number for number, label in enumerate(self.labels)}

    def number(self, node: exp.Expr) -> int | None:
        """Which of the labels a column is qualified with; None if with none of them."""
        return self._numbers.get(node.text("table").lower())

    def qualify(self, select: exp.Select) -> None:
        """Gives every qualifier one spelling; without joins, takes them all out.

        Also spells window.start as window_start, and what else stands before a dot as a column
        with fields: l.a as l['a'], which can be told from a qualified column.
        """
        clauses = [select.args.get(key) for key in _CLAUSES]
        conditions = [join.args.get("on") for join in select.args.get("joins") or ()]
        self.qualify_all(
            [*select.expressions, *(node for node in clauses + conditions if node is not None)]
        )

    def qualify_all(self, roots: Iterable[exp.Expr]) -> None:
        """The same for expressions that stand in a larger tree, which they are replaced in."""
        nodes = [node for root in roots for node in parts(root)]
        for node in [node for node in nodes if isinstance(node, exp.Column) and node.table]:
            self._qualify(node)
        for dot in [node for node in nodes if isinstance(node, exp.Dot)][::-1]:
            if isinstance(dot.expression, exp.Identifier):
                dot.replace(_fields(dot.this, [dot.expression]))

    def _qualify(self, node: exp.Column) -> None:
        number = self.number(node)
        bound = f"{node.table}_{node.name}".lower()
        names = [part for part in node.parts if isinstance(part, exp.Identifier)]
        first = self._numbers.get(names[0].name.lower())
        if first is not None and (number is None or len(names) > 2):
            whole = self._labelled(exp.Column(this=names[1]), first)
            node.replace(_fields(whole, names[2:]))
        elif number is not None:
            node.replace(self._labelled(node, number))
        elif bound in BOUNDS:
            node.replace(column(bound, position(node)))
        elif isinstance(node.this, exp.Star):
            message = f"unknown stream or table {shown(node.table)}"
            self.report.add(node, message, self._hint(node))
            node.replace(exp.Column(this=node.this))
        else:
            whole = exp.Column(this=names[0])
            whole.meta["qualifier"] = self._hint(node)
            whole.meta["labels"] = self.labels
            node.replace(_fields(whole, names[1:]))

    def _labelled(self, node: exp.Column, number: int) -> exp.Column:
        if len(self.labels) == 1:
            return exp.Column(this=node.this)
        label = self.labels[number]
        qualifier = exp.Identifier(this=label, quoted=not is_plain(label))
        start = position(node)
        if start is not None:
            qualifier.meta["start"] = start
        return exp.Column(this=node.this, table=qualifier)

    def _hint(self, node: exp.Column) -> str:
        partner = self._partners.get(node.table.lower())
        if partner is not None:
            return f"{partner} JOIN shows nothing of {shown(node.table)}: name it in ON alone"
        if len(self.labels) == 1:
            name = shown(node.name)
            return f"write {shown(self.labels[0])}.{name}, or {name} alone"
        hint = did_you_mean(node.table, [shown(label) for label in self.labels])
        return hint or f"the stream is {shown(self.labels[0])}"


def _fields(whole: exp.Expr, names: Iterable[exp.Identifier]) -> exp.Expr:
    """Fields of fields, one behind the other."""
    for name in names:
        whole = exp.Bracket(this=whole.copy(), expressions=[exp.Literal.string(name.name)])
    return whole
