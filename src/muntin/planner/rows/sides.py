"""The sides of a join that can be multiplied: what each is asked, and why others cannot be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from sqlglot import exp

from muntin.aggregates import resolve
from muntin.aggregates.kept import can_keep
from muntin.expressions import BindingError, Bound, bind, subexpression
from muntin.expressions.binding.coercion import in_zone, unify
from muntin.plan.joined import JoinFactor
from muntin.planner.bound import BoundCall
from muntin.planner.rows.joins import Joining
from muntin.planner.rows.keys import Equality, equality, key_classes
from muntin.planner.rows.scope import Leaf, Scope, conjunction
from muntin.queries import AggregateCall, Output, Query, parse_expression
from muntin.queries.query import column
from muntin.queries.sql.normalize import canonical_text, fold
from muntin.windows import Window

WHY = "all that is asked can be read off one side at a time"
PRODUCTS = "a sum of products is, per key, the product of both sides' sums"
ROWS = "n"


class PairsNeeded(Exception):  # noqa: N818 - it is a finding, not a mistake
    """Why the rows of the join themselves must be made."""


@dataclass(frozen=True)
class Call:
    """A call of the query: as it was written, resolved, and bound to the rows of the join."""

    written: AggregateCall
    node: exp.Expr
    bound: BoundCall


class Placed(NamedTuple):
    """Where a call is kept: a side and its column, nothing for ``count(*)``, or two factors."""

    side: int | None = None
    column: str = ""
    factors: tuple[JoinFactor, ...] = ()


class Sides:
    """The streams of a join as queries of their own, or a :class:`PairsNeeded`.

    Attributes:
        optional: Which sides a LEFT JOIN pads.
        calls: For each call the side that keeps it and the column, None for ``count(*)``; or
            the factors of a sum of products.
        groups: The same for each group.
    """

    why = WHY

    def __init__(
        self, joining: Joining, scope: Scope, calls: Sequence[Call], groups: Sequence[exp.Expr]
    ) -> None:
        self.joining = joining
        self.scope = scope
        self.leaves = scope.leaves
        self._rows = pa.schema(
            [
                pa.field(leaf.named(each.name), each.type)
                for leaf in self.leaves
                for each in leaf.stream.schema
            ]
        )
        self._check_kinds()
        self.optional = [source.kind == "left" for source in joining.selection.sources]
        self._where: list[list[exp.Expr]] = [[] for _ in self.leaves]
        equalities = self._conditions()
        self._keys = self._key_nodes(equalities)
        self._groups: list[list[exp.Expr]] = [[] for _ in self.leaves]
        self._calls: list[list[exp.Expr]] = [[] for _ in self.leaves]
        self.groups = [self._place_group(node) for node in groups]
        self.calls = [self._place_call(call) for call in calls]
        if any(place.factors for place in self.calls):
            self.why = PRODUCTS

    def _check_kinds(self) -> None:
        if self.joining.exists:
            raise PairsNeeded("EXISTS and IN are conditions on rows")
        for leaf in self.leaves:
            if leaf.joins:
                raise PairsNeeded(f"rows of {leaf.source.label} are joined with a table")
        for source in self.joining.selection.sources:
            if source.kind in ("right", "full"):
                raise PairsNeeded(f"{source.kind.upper()} JOIN pads what stands before it")

    def _conditions(self) -> list[Equality]:
        """Gives each condition to the side that decides it; the equalities of keys are left."""
        found = []
        # What one side decides comes first: it may tell that others of its rows are not padded.
        for part in sorted(self.joining.where, key=lambda part: len(self.scope.reads(part)) > 1):
            read = self.scope.reads(part)
            if len(read) == 1 and self._is_optional(read[0]) and self._holds_for_nulls(part):
                text = _text(part)
                raise PairsNeeded(f"WHERE {text} lets rows without a partner through")
            each = self._condition(part)
            if each is not None:
                found.append(each)
            for leaf in read:
                # A condition that NULLs fail leaves nothing of what LEFT JOIN pads: of several
                # sides it is an equality, of plain columns where they may be padded.
                self.optional[self._number(leaf)] = False
                leaf.nullable = False
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
        """Whether a condition holds for padded rows, or fails there, which pairs count."""
        value, failed = self._of_nulls(self.scope.condition(part, self._rows))
        return failed or bool(value)

    def _of_nulls(self, bound: Bound) -> tuple[Any, bool]:
        """What an expression over rows of the join makes of NULLs, and whether it fails."""
        from muntin.expressions import Evaluator  # noqa: PLC0415 - it brings polars

        nulls = pa.table([pa.nulls(1, each.type) for each in self._rows], schema=self._rows)
        (found,) = Evaluator([bound])(nulls)
        return found.values[0].as_py(), found.errors is not None

    def _check_padded(self, leaf: Leaf, text: str, bounds: Iterable[Bound]) -> None:
        """Refuses what would fail for padded rows, of which sides see none to count."""
        fallible = [each for each in bounds if each.can_fail] if self._is_optional(leaf) else []
        if any(self._of_nulls(each)[1] for each in fallible):
            raise PairsNeeded(f"{text} fails for rows without a partner")

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
        bound = self.scope.bound(node, self._rows)
        self._check_padded(read[0], f"the group {_text(node)}", [bound])
        self._groups[number].append(own)
        return number, f"g{len(self._groups[number]) - 1}"

    def _place_call(self, call: Call) -> Placed:
        read = self.scope.reads(call.node)
        text = _text(call.node)
        if len(read) > 1:
            return Placed(factors=self._factors(call, text))
        if any(not can_keep(part) for part in call.bound.aggregate.parts):
            raise PairsNeeded(f"{text} needs all values of the rows")
        if call.written.name == "count" and not call.written.args and call.written.filter is None:
            return Placed()
        leaf = read[0] if read else self.leaves[0]
        filters = () if call.bound.filter is None else (call.bound.filter,)
        self._check_padded(leaf, text, (*call.bound.args, *filters))
        number = self._number(leaf)
        return Placed(number, self._kept(number, self._own(call.node, leaf)))

    def _kept(self, number: int, node: exp.Expr) -> str:
        """The column of a side's answers that holds an aggregate of its own."""
        self._calls[number].append(node)
        return f"c{len(self._calls[number]) - 1}"

    def _factors(self, call: Call, text: str) -> tuple[JoinFactor, ...]:
        """The factors of a sum, or an average, of products of two sides' columns."""
        written, kind = call.written, call.bound.aggregate.types[0]
        product = self.scope.resolve(written.args[0]).unnest() if written.args else None
        plain = written.filter is None and not written.distinct and len(written.args) == 1
        sums = {part.kind for part in call.bound.aggregate.parts} == {"sum", "count"}
        if not (plain and sums and isinstance(product, exp.Mul)):
            raise PairsNeeded(f"{text} reads several sides")
        sides = [self.scope.reads(each) for each in (product.this, product.expression)]
        if any(len(each) != 1 for each in sides) or sides[0][0] is sides[1][0]:
            raise PairsNeeded(f"{text} reads several sides")
        if pa.types.is_floating(kind) and not self.scope.query.approximate:
            raise PairsNeeded(f"{text} rounds every product")
        nodes = [each.unnest() for each in (product.this, product.expression)]
        pairs = list(zip(nodes, (each[0] for each in sides), strict=True))
        for each in (kind, *(self._type(node, leaf) for node, leaf in pairs)):
            # A FLOAT product is rounded to a FLOAT, and sums of decimals count their last digit.
            if not (pa.types.is_float64(each) or pa.types.is_integer(each)):
                raise PairsNeeded(f"{text} multiplies values of type {each}")
        for node, leaf in pairs:
            # A column is NULL in rows that are padded; other expressions may be anything.
            if self._is_optional(leaf) and not isinstance(node, exp.Column):
                raise PairsNeeded(f"{_text(node)} is computed from rows that may be padded")
        return tuple(self._factor(node, leaf, kind) for node, leaf in pairs)

    def _factor(self, node: exp.Expr, leaf: Leaf, kind: pa.DataType) -> JoinFactor:
        number, own = self._number(leaf), self._own(node, leaf)
        aggregate = resolve("sum", [self._type(node, leaf)])
        asked = ("sum", "min", "max") if pa.types.is_integer(kind) else ("sum",)
        text = canonical_text(own)
        columns = [self._kept(number, parse_expression(f"{name}({text})")) for name in asked]
        return JoinFactor(number, aggregate, *columns)

    def _type(self, node: exp.Expr, leaf: Leaf) -> pa.DataType:
        return self.scope.bound(self._own(node, leaf), leaf.stream.schema).type

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
        named = []
        for own, leaf in zip(self._keys, self.leaves, strict=True):
            kinds = [self.scope.bound(each, leaf.stream.schema).type for each in own]
            schema = pa.schema([pa.field(f"k{i}", kind) for i, kind in enumerate(kinds)])
            named.append([bind(column(each.name), schema) for each in schema])
        return self._unified(number, named)

    def spread(self, number: int) -> tuple[Bound, ...]:
        """The same of the rows of a side's stream."""
        named = [
            [self.scope.bound(each, leaf.stream.schema) for each in own]
            for own, leaf in zip(self._keys, self.leaves, strict=True)
        ]
        return self._unified(number, named)

    def _unified(self, number: int, keys: Sequence[Sequence[Bound]]) -> tuple[Bound, ...]:
        found = []
        for place, each in enumerate(zip(*keys, strict=True)):
            try:
                typed = unify([bound.root for bound in each])
            except BindingError as error:
                message, hint = f"cannot be compared: {error.message}", "CAST them to one type"
                raise self.scope.error(self._keys[number][place], message, hint) from error
            found.append(subexpression(in_zone(typed[number], self.scope.zone)))
        return tuple(found)


def _text(node: exp.Expr) -> str:
    """An expression over the rows of a join, as it was written."""
    return canonical_text(node).replace("`", "")
