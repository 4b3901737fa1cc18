"""The sides of a join that can be multiplied: what each is asked, and why others cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from muntin.aggregates.kept import can_keep
from muntin.expressions import BindingError, Bound, bind, subexpression
from muntin.expressions.binding.coercion import in_zone, unify
from muntin.planner.bound import BoundCall
from muntin.planner.rows.joins import Joining
from muntin.planner.rows.keys import Equality, equality, key_classes
from muntin.planner.rows.scope import Leaf, Scope, conjunction
from muntin.queries import AggregateCall, Output, Query, parse_expression
from muntin.queries.query import column
from muntin.queries.sql.normalize import canonical_text, fold
from muntin.windows import Window

WHY = "all that is asked can be read off one side at a time"
ROWS = "n"


class PairsNeeded(Exception):  # noqa: N818 - it is a finding, not a mistake
    """Why the rows of the join themselves must be made."""


@dataclass(frozen=True)
class Call:
    """A call of the query: as it was written, resolved, and bound to the rows of the join."""

    written: AggregateCall
    node: exp.Expr
    bound: BoundCall


class Sides:
    """The streams of a join as queries of their own, or a :class:`PairsNeeded`.

    Attributes:
        optional: Which sides a LEFT JOIN pads.
        calls: For each call the side that keeps it and the column; None for ``count(*)``.
        groups: The same for each group.
    """

    why = WHY

    def __init__(
        self, joining: Joining, scope: Scope, calls: Sequence[Call], groups: Sequence[exp.Expr]
    ) -> None:
        self.joining = joining
        self.scope = scope
        self.leaves = scope.leaves
        self._check_kinds()
        self.optional = [source.kind == "left" for source in joining.selection.sources]
        self._where: list[list[exp.Expr]] = [[] for _ in self.leaves]
        equalities = self._conditions()
        self._keys = self._key_nodes(equalities)
        self._groups: list[list[exp.Expr]] = [[] for _ in self.leaves]
        self._calls: list[list[exp.Expr]] = [[] for _ in self.leaves]
        self.groups = [self._place_group(node) for node in groups]
        self.calls = [self._place_call(call) for call in calls]

    def _check_kinds(self) -> None:
        if self.joining.exists:
            raise PairsNeeded("EXISTS and IN are conditions on rows")
        for source in self.joining.selection.sources:
            if source.kind in ("right", "full"):
                raise PairsNeeded(f"{source.kind.upper()} JOIN pads what stands before it")

    def _conditions(self) -> list[Equality]:
        """Gives each condition to the side that decides it; the equalities of keys are left."""
        where = list(self.joining.where)
        rest = []
        for part in where:
            padded = [leaf for leaf in self.scope.reads(part) if self._is_optional(leaf)]
            if len(padded) != 1 or len(self.scope.reads(part)) != 1:
                rest.append(part)
                continue
            if self._holds_for_nulls(part):
                text = _text(part)
                raise PairsNeeded(f"WHERE {text} lets rows without a partner through")
            # A condition that NULLs fail leaves nothing of what LEFT JOIN pads.
            self.optional[self._number(padded[0])] = False
            padded[0].nullable = False
            rest.append(part)
        found = [each for part in rest if (each := self._condition(part)) is not None]
        for number, parts in enumerate(self.joining.on):
            for part in parts:
                each = self._on(part, number)
                if each is not None:
                    found.append(each)
        return found

    def _is_optional(self, leaf: Leaf) -> bool:
        return self.optional[self._number(leaf)]

    def _number(self, leaf: Leaf) -> int:
        return next(number for number, each in enumerate(self.leaves) if each is leaf)

    def _holds_for_nulls(self, part: exp.Expr) -> bool:
        from muntin.expressions import Evaluator  # noqa: PLC0415 - it brings polars

        (leaf,) = self.scope.reads(part)
        schema = leaf.stream.schema
        bound = self.scope.condition(self.scope.rebased(part, leaf), schema)
        nulls = pa.table([pa.nulls(1, each.type) for each in schema], schema=schema)
        (found,) = Evaluator([bound])(nulls)
        return bool(found.values[0].as_py())

    def _condition(self, part: exp.Expr) -> Equality | None:
        """A condition of WHERE: one of a side, or an equality between sides."""
        read = self.scope.reads(part)
        if len(read) <= 1:
            leaf = read[0] if read else self.leaves[0]
            self._where[self._number(leaf)].append(self._own(part, leaf))
            return None
        return self._equality(part)

    def _on(self, part: exp.Expr, number: int) -> Equality | None:
        """A condition of ON, of the stream numbered so."""
        read, leaf = self.scope.reads(part), self.leaves[number]
        if len(read) == 1 and read[0] is leaf:
            self._where[number].append(self._own(part, leaf))
            return None
        if len(read) <= 1:
            if self.optional[number] or (read and self._is_optional(read[0])):
                raise PairsNeeded(f"ON {_text(part)} is a condition on another side")
            return self._condition(part)
        found = self._equality(part)
        others = [each for each in read if each is not leaf]
        if any(self._is_optional(each) for each in others):
            raise PairsNeeded(f"ON {_text(part)} compares a side that may be padded")
        return found

    def _own(self, part: exp.Expr, leaf: Leaf) -> exp.Expr:
        return self.scope.rebased(part, leaf)

    def _equality(self, part: exp.Expr) -> Equality:
        found = equality(part, self.scope, self.scope)
        if found is None:
            raise PairsNeeded(f"{_text(part)} compares rows of several sides")
        return found

    def _key_nodes(self, equalities: list[Equality]) -> list[list[exp.Expr]]:
        """The keys of each leaf; those that only some leaves have are compared among pairs."""
        keys: list[list[exp.Expr]] = [[] for _ in self.leaves]
        left: list[Equality] = []
        for one in key_classes(equalities):
            if not one.spans(self.leaves):
                left += one.equalities
                continue
            left += one.columns(self.leaves)[1]
            for own, leaf in zip(keys, self.leaves, strict=True):
                side = one.side(leaf)
                assert side is not None
                own.append(self._own(side.node, leaf))
        if not keys[0]:
            raise self.joining.no_key(equalities)
        if left:
            raise PairsNeeded(f"{_text(left[0].node)} is not a key of all sides")
        return keys

    def _place_group(self, node: exp.Expr) -> tuple[int, str]:
        read = self.scope.reads(node)
        if len(read) != 1:
            raise PairsNeeded(f"the group {_text(node)} reads several sides")
        number, own = self._number(read[0]), self._own(node, read[0])
        for place, key in enumerate(self._keys[number]):
            if fold(key) == fold(own):
                return number, f"k{place}"
        self._groups[number].append(own)
        return number, f"g{len(self._groups[number]) - 1}"

    def _place_call(self, call: Call) -> tuple[int | None, str]:
        read = self.scope.reads(call.node)
        text = _text(call.node)
        if len(read) > 1:
            raise PairsNeeded(f"{text} reads several sides")
        if any(not can_keep(part) for part in call.bound.aggregate.parts):
            raise PairsNeeded(f"{text} needs all values of the rows")
        if call.written.name == "count" and not call.written.args and call.written.filter is None:
            return None, ""
        number = self._number(read[0]) if read else 0
        self._calls[number].append(self._own(call.node, self.leaves[number]))
        return number, f"c{len(self._calls[number]) - 1}"

    def query(self, number: int) -> Query:
        """What a side is asked, for its key and its groups; window and source are to be set."""
        return Query(
            name=ROWS,
            window=Window(1, 1),
            select=(
                Output(ROWS, parse_expression("count(*)")),
                *(Output(f"c{i}", node) for i, node in enumerate(self._calls[number])),
            ),
            where=conjunction(self._where[number]),
            group_by=(
                *(Output(f"k{i}", node) for i, node in enumerate(self._keys[number])),
                *(Output(f"g{i}", node) for i, node in enumerate(self._groups[number])),
            ),
            kept=True,
        )

    def keys(self, number: int) -> tuple[Bound, ...]:
        """The key of a side's answers, in the types that all sides are compared in."""
        found = []
        for place in range(len(self._keys[0])):
            roots = []
            for own, leaf in zip(self._keys, self.leaves, strict=True):
                kind = self.scope.bound(own[place], leaf.stream.schema).type
                name = f"k{place}"
                roots.append(bind(column(name), pa.schema([pa.field(name, kind)])).root)
            try:
                typed = unify(roots)
            except BindingError as error:
                message, hint = f"cannot be compared: {error.message}", "CAST them to one type"
                raise self.scope.error(self._keys[number][place], message, hint) from error
            found.append(subexpression(in_zone(typed[number], self.scope.zone)))
        return tuple(found)


def _text(node: exp.Expr) -> str:
    """An expression over the rows of a join, as it was written."""
    return canonical_text(node).replace("`", "")
