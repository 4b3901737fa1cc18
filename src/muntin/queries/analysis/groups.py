"""Groups: which expressions a query groups by, and columns that refer to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from muntin.errors import did_you_mean
from muntin.queries.analysis.checks import check_call, check_expression, check_row_expression
from muntin.queries.query import BOUNDS, Output, column, is_column
from muntin.queries.report import Report
from muntin.queries.source import position, shown
from muntin.queries.sql.aggregate_calls import aggregate_calls, as_call
from muntin.queries.sql.normalize import default_name, fold, plain_text, take


@dataclass(frozen=True)
class Item:
    """One entry of the SELECT list.

    ``name`` is its alias, or its text if it has none. Nothing is left to do for one that is
    ``settled``: it names a bound of the window, or has been refused.
    """

    node: exp.Expr
    name: str
    aliased: bool
    settled: bool

    @property
    def has_aggregate(self) -> bool:
        """Whether an aggregate is called anywhere in it."""
        return next(aggregate_calls(self.node), None) is not None


def read_groups(nodes: list[exp.Expr], items: list[Item], report: Report) -> list[exp.Expr]:
    """The expressions to group by, with ordinals and aliases resolved, each once."""
    groups: dict[exp.Expr, exp.Expr] = {}
    for node in nodes:
        resolved = _by_alias(_by_ordinal(node, items, report), items)
        if resolved is None or not check_expression(resolved, report):
            continue
        check_row_expression(resolved, "GROUP BY", report)
        if resolved.find(exp.Column) is None:
            report.add(node, "a group without columns", "leave it out: all rows are in one group")
        groups.setdefault(fold(resolved), resolved)
    return list(groups.values())


def _by_ordinal(node: exp.Expr, items: list[Item], report: Report) -> exp.Expr | None:
    if not isinstance(node, exp.Literal) or node.is_string:
        return node
    text = node.name
    ordinal = int(text) if text.isdigit() and len(text) < 10 else 0
    if not 1 <= ordinal <= len(items):
        hint = f"write a number from 1 to {len(items)}, or the expression itself"
        report.add(node, f"GROUP BY {shown(text)} names no column of SELECT", hint)
        return None
    item = items[ordinal - 1]
    return None if item.settled else item.node.copy()


def _by_alias(node: exp.Expr | None, items: list[Item]) -> exp.Expr | None:
    """As in Spark a column of the input goes before an alias; one that SELECT reads is one.

    Where SELECT reads a column of that name under one qualifier outside aggregates, it is meant.
    """
    if not isinstance(node, exp.Column) or node.table:
        return node
    name = node.name.lower()
    if any(is_column(part, name) for item in items for part in item.node.walk()):
        return node
    qualified = {fold(part): part for item in items for part in _grouped_columns(item.node, name)}
    if len(qualified) == 1:
        return next(iter(qualified.values())).copy()
    for item in items:
        if item.aliased and item.name.lower() == name and not item.has_aggregate:
            return item.node.copy()
    return node


def _grouped_columns(node: exp.Expr, name: str) -> Iterator[exp.Column]:
    """The columns of a name that stand outside aggregate calls."""
    for part in node.walk(prune=lambda part: as_call(part) is not None):
        if isinstance(part, exp.Column) and part.name.lower() == name and as_call(part) is None:
            yield part


def name_groups(groups: list[exp.Expr], items: list[Item]) -> tuple[list[Output], list[Item]]:
    """The group columns under the names SELECT gives them, and the items of SELECT left over."""
    rest = [item for item in items if not item.settled]
    outputs = []
    for group in groups:
        key = fold(group)
        same = [item for item in rest if _is_same(item.node, key)]
        named = [item for item in rest if _named_group(item.node, groups) is group]
        item = next(iter(same + named), None)
        if item is not None:
            rest.remove(item)
        outputs.append(Output(item.name if item is not None else default_name(group), group))
    return outputs, rest


def _is_same(node: exp.Expr, folded: exp.Expr) -> bool:
    return type(node) is type(folded) and fold(node) == folded


def _named_group(node: exp.Expr, groups: Iterable[exp.Expr]) -> exp.Expr | None:
    """The one qualified group column that a name on its own can mean."""
    if not isinstance(node, exp.Column) or node.table:
        return None
    columns = [group for group in groups if isinstance(group, exp.Column)]
    named = [group for group in columns if group.name.lower() == node.name.lower()]
    return named[0] if len(named) == 1 and named[0].table else None


class Resolver:
    """Rewrites expressions over groups: what equals a group becomes a column of its name."""

    def __init__(self, groups: list[Output], report: Report) -> None:
        self.names = {fold(output.node): output.name for output in groups}
        self.kinds = {type(node) for node in self.names}
        self.report = report

    def resolve(self, node: exp.Expr, aliases: Mapping[str, exp.Expr] | None = None) -> exp.Expr:
        """Rewrites a node in place, and returns what stands in its place.

        What is neither grouped nor aggregated is reported. ``aliases`` are further names that
        may stand for expressions, as in HAVING.
        """
        known = aliases or {}
        root = exp.Paren(this=node)
        stack = [root.this]
        while stack:
            part = stack.pop()
            call = as_call(part)
            name = self._group_name(part)
            if name is not None:
                part.replace(column(name, position(part)))
            elif call is not None:
                check_call(call, self.report)
            elif isinstance(part, exp.Column):
                self._replace_alias(part, known)
            elif isinstance(part, exp.Bracket) and isinstance(_whole(part), exp.Column):
                self._refuse_field(part, _whole(part))
            else:
                stack.extend(part.iter_expressions())
        return take(root)

    def _group_name(self, node: exp.Expr) -> str | None:
        inner = node
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if type(inner) not in self.kinds:
            return None
        folded = fold(inner)
        group = folded if folded in self.names else _named_group(folded, self.names)
        return self.names[group] if group is not None else None

    def _replace_alias(self, node: exp.Column, aliases: Mapping[str, exp.Expr]) -> None:
        replacement = aliases.get(node.name.lower()) if not node.table else None
        if replacement is not None:
            node.replace(exp.Paren(this=replacement.copy()))
            return
        self._refuse(node, shown(node.name))

    def _refuse_field(self, node: exp.Expr, whole: exp.Expr) -> None:
        """What stands before the dot may be a stream that is not there."""
        labels = whole.meta.get("labels", ())
        if len(labels) > 1:
            name = shown(whole.name)
            message = f"there is no stream {name}, and no column {name} in GROUP BY"
            listed = " and ".join(shown(label) for label in labels)
            hint = did_you_mean(whole.name, labels) or f"the query's streams are {listed}"
            self.report.add(node, message, hint)
            return
        self._refuse(node, plain_text(node))

    def _refuse(self, node: exp.Expr, name: str) -> None:
        if is_column(node, *BOUNDS):
            self.report.add(
                node,
                f"{name} cannot be used in an expression",
                "it leads every result: compute with it where the result is read",
            )
            return
        self.report.add(
            node,
            f"{name} is neither in GROUP BY nor inside an aggregate",
            f"add it to GROUP BY, or write first({name})",
        )


def _whole(part: exp.Expr) -> exp.Expr:
    """What an element or field is taken of."""
    while isinstance(part, (exp.Bracket, exp.Dot, exp.Paren)):
        part = part.this
    return part


def clashes(bounds: Iterable[str], names: list[str], report: Callable[[int, str], None]) -> None:
    """Calls ``report`` with the index of each name that repeats another or a window bound."""
    seen = {bound.lower() for bound in bounds}
    for index, name in enumerate(names):
        if name.lower() in seen:
            report(index, name)
        seen.add(name.lower())
