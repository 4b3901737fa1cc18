"""The joins and EXISTS of one SELECT, as operators over the leaves of its streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa
from sqlglot import exp

from muntin.expressions import Bound, bind, bind_text
from muntin.expressions.storage import spark_type
from muntin.expressions.types import name_of
from muntin.plan.operators import Column, Exists, Join, Node, Select, StreamSchema, Union
from muntin.planner.rows.keys import COMMON_HINT, Equality, equality, key_classes
from muntin.planner.rows.relations import RelationJoin
from muntin.planner.rows.scope import Leaf, Scope, conjunction
from muntin.planner.rows.tables import attach_table
from muntin.queries import Existence, RowSource, Selection
from muntin.queries.analysis.joins import conjuncts
from muntin.queries.query import column

Find: TypeAlias = Callable[[RowSource], tuple[str, StreamSchema]]
Tables: TypeAlias = Mapping[str, pa.Schema]

KEY_HINT = "compare a column of each with =, for example o.id = p.order_id"


class Joining:
    """One SELECT on its way to operators: its streams, its conditions, its subqueries.

    All conditions are resolved first, so that leaves know which columns are needed; then
    operators are built from the leaves up.
    """

    def __init__(
        self,
        selection: Selection,
        scope: Scope,
        find: Find,
        tables: Tables,
        relations: Mapping[str, StreamSchema] | None = None,
    ) -> None:
        self.scope = scope
        self.selection = selection
        self.on: list[list[exp.Expr]] = []
        for source in selection.sources:
            self._add(source, find)
        self.relations: list[RelationJoin] = []
        for join in selection.tables:
            relation = RelationJoin.of(join, scope, relations or {})
            if relation is None:
                attach_table(join, scope, tables)
            else:
                self.relations.append(relation)
        where = [] if selection.where is None else conjuncts(selection.where)
        resolved = [scope.resolve(part) for part in where]
        # Conditions on relations wait until these are joined.
        self.beside = [part for part in resolved if any(r.reads(part) for r in self.relations)]
        self.where = [part for part in resolved if part not in self.beside]
        self.exists = [_Partner(each, scope, find, tables) for each in selection.exists]
        self.inner = all(source.kind == "inner" for source in selection.sources)

    def _add(self, source: RowSource, find: Find) -> None:
        name, stream = find(source)
        before = [self.scope.resolve(each) for each in source.columns_of_using()]
        self.scope.add(source, name, stream)
        parts = [] if source.on is None else conjuncts(source.on)
        conditions = [self.scope.resolve(part) for part in parts]
        for own, left in zip(source.columns_of_using(source.label), before, strict=True):
            conditions.append(exp.EQ(this=left, expression=self.scope.resolve(own)))
        self.on.append(conditions)

    def leaf(self) -> Leaf | None:
        """The one stream, if there are no others and no EXISTS: it takes all conditions."""
        if len(self.scope.leaves) > 1 or self.exists or self.relations:
            return None
        self._push(self.where, self.scope.leaves)
        return self.scope.leaves[0]

    def build(self, needed: Iterable[exp.Expr]) -> tuple[Node, exp.Expr | None]:
        """The operator that has all columns needed, and a condition that is left to check."""
        self.scope.need(needed)
        for relation in self.relations:
            relation.settle()
        if self.inner:
            conditions = [part for parts in self.on for part in parts] + self.where
            node, rest = self._inner(conditions), None
        else:
            node, rest = self._chain()
        node, rest = self._with_relations(node, rest)
        for partner in self.exists:
            if rest is not None:
                where = self.scope.condition(rest, node.schema)
                node, rest = Select(node, where, _all_columns(node)), None
            node = partner.above(node)
        return node, rest

    def _with_relations(self, node: Node, rest: exp.Expr | None) -> tuple[Node, exp.Expr | None]:
        """The same rows joined with relations, and what is left to check."""
        conditions = [] if rest is None else conjuncts(rest)
        for relation in self.relations:
            joined, alone = relation.above(node)
            node = joined if alone is None else Union((joined, _padded(alone, joined.schema)))
        return node, conjunction([*conditions, *self.beside])

    def _push(self, conditions: Iterable[exp.Expr], leaves: Sequence[Leaf]) -> list[exp.Expr]:
        """Gives conditions to the one leaf that decides them; returns the others."""
        rest = []
        for part in conditions:
            read = self.scope.reads(part)
            if len(read) == 1 and any(read[0] is leaf for leaf in leaves):
                read[0].where.append(self.scope.rebased(part, read[0]))
            elif not read and len(self.scope.leaves) == 1:
                self.scope.leaves[0].where.append(part)
            else:
                rest.append(part)
        return rest

    def _inner(self, conditions: list[exp.Expr]) -> Node:
        """All streams in one join on the keys they have in common."""
        scope, leaves = self.scope, self.scope.leaves
        rest = self._push(conditions, leaves)
        if len(leaves) == 1:
            self._ask_partners()
            return scope.windowed(leaves[0])
        keys, rest = self._keys(rest)
        scope.need(rest)
        self._ask_partners()
        inputs = [scope.windowed(leaf) for leaf in leaves]
        places = tuple(
            tuple(node.schema.get_field_index(key[number]) for key in keys)
            for number, node in enumerate(inputs)
        )
        joined = Join(tuple(inputs), places)
        condition = conjunction(rest)
        if condition is None:
            return joined
        return Join(joined.inputs, places, scope.condition(condition, joined.schema))

    def _keys(self, conditions: list[exp.Expr]) -> tuple[list[list[str]], list[exp.Expr]]:
        """The key columns that all leaves have, and the conditions that these leave."""
        scope = self.scope
        found = [(part, equality(part, scope, scope)) for part in conditions]
        rest = [part for part, each in found if each is None]
        keys = []
        for one in key_classes([each for _, each in found if each is not None]):
            if one.spans(scope.leaves):
                names, left = one.columns(scope.leaves)
                keys.append(names)
                rest += [each.node for each in left]
            else:
                rest += [each.node for each in one.equalities]
        if not keys:
            raise self.no_key([each for _, each in found if each is not None])
        return keys, rest

    def no_key(self, equalities: list[Equality]) -> Exception:
        """What is wrong where no key joins all streams."""
        labels = ", ".join(leaf.source.label for leaf in self.scope.leaves)
        last = self.scope.leaves[-1].source
        place = column(last.stream, last.start)
        if equalities and len(self.scope.leaves) > 2:
            message = f"the streams {labels} are not joined on one common key"
            return self.scope.error(place, message, COMMON_HINT)
        return self.scope.error(place, f"nothing joins the streams {labels}", KEY_HINT)

    def _ask_partners(self) -> None:
        """Lets leaves know the columns that EXISTS compares, before they are built."""
        for partner in self.exists:
            partner.settle()

    def _chain(self) -> tuple[Node, exp.Expr | None]:
        """Streams one after the other, where one of the joins is an outer one."""
        scope, leaves = self.scope, self.scope.leaves
        solid = [leaf for leaf in leaves if not leaf.nullable]
        rest = self._push(self.where, solid)
        steps = [self._step(number) for number in range(1, len(leaves))]
        common = key_classes([each for keys, _ in steps for each in keys])
        if not any(one.spans(leaves) for one in common):
            raise self.no_key([each for keys, _ in steps for each in keys])
        keys = [[_columns_of(each) for each in found] for found, _ in steps]
        scope.need([*rest, *(part for _, residual in steps for part in residual)])
        self._ask_partners()
        inputs = [scope.windowed(leaf) for leaf in leaves]
        node: Node = inputs[0]
        for number, (_, residual) in enumerate(steps, 1):
            node = self._joined(node, inputs[number], keys[number - 1], residual, number)
        return node, conjunction(rest)

    def _step(self, number: int) -> tuple[list[Equality], list[exp.Expr]]:
        """The keys and the further conditions of one join in a chain."""
        scope, source = self.scope, self.selection.sources[number]
        leaf = scope.leaves[number]
        # A row that a join keeps anyway is not dropped by what ON says of it alone.
        dropped = [leaf] if source.kind in ("inner", "left") else []
        if source.kind == "right" and number == 1:
            dropped = [scope.leaves[0]]
        found, rest = [], []
        padded = self._padded_before(number)
        for part in self._push(self.on[number], dropped):
            each = equality(part, scope, scope, padded)
            if each is not None and leaf in (each.left.leaf, each.right.leaf):
                found.append(each if each.right.leaf is leaf else _turned(each))
            else:
                rest.append(part)
        if not found:
            raise self.no_key([])
        return found, rest

    def _padded_before(self, number: int) -> list[Leaf]:
        """The leaves that joins before one of a chain have padded."""
        padded: list[Leaf] = []
        for place in range(1, number):
            kind = self.selection.sources[place].kind
            if kind in ("right", "full"):
                padded += self.scope.leaves[:place]
            if kind in ("left", "full"):
                padded.append(self.scope.leaves[place])
        return padded

    def _joined(
        self,
        left: Node,
        right: Node,
        keys: list[tuple[str, str]],
        residual: list[exp.Expr],
        number: int,
    ) -> Node:
        source = self.selection.sources[number]
        places = tuple(
            tuple(side.schema.get_field_index(pair[which]) for pair in keys)
            for which, side in enumerate((left, right))
        )
        both = Join((left, right), places)
        rest = conjunction(residual)
        condition = None if rest is None else self.scope.condition(rest, both.schema)
        joined = Join((left, right), places, condition)
        parts: list[Node] = [joined]
        kept = {"left": (0,), "right": (1,), "full": (0, 1)}.get(source.kind, ())
        for side in kept:
            own, other = (left, right)[side], (right, left)[side]
            pair = (places[side], places[1 - side])
            alone = Exists(own, other, pair, condition, negated=True, whole=source.whole)
            parts.append(_padded(alone, joined.schema))
        return parts[0] if len(parts) == 1 else Union(tuple(parts))


def _turned(each: Equality) -> Equality:
    return Equality(each.node, each.right, each.left)


def _columns_of(each: Equality) -> tuple[str, str]:
    """The key columns of both sides, in the type they are compared in."""
    left, right = each.typed()
    sides = ((each.left, left), (each.right, right))
    first, second = (side.scope.key(side.leaf, root) for side, root in sides)
    return first, second


def _padded(node: Exists, schema: pa.Schema) -> Select:
    """Rows without a partner, with NULLs in its columns."""
    columns = []
    for each in schema:
        if node.schema.get_field_index(each.name) >= 0:
            value = bind(column(each.name), node.schema)
        else:
            value = _null(each.type)
        columns.append(Column(each.name, value))
    return Select(node, None, tuple(columns))


def _null(kind: pa.DataType) -> Bound:
    bound = bind_text(f"CAST(NULL AS {name_of(spark_type(kind))})", pa.schema([]))
    return Bound(bound.key, kind, bound.root)


def _all_columns(node: Node) -> tuple[Column, ...]:
    return tuple(Column(each.name, bind(column(each.name), node.schema)) for each in node.schema)


class _Partner:
    """One EXISTS or IN, inside the SELECT that it is a condition of."""

    def __init__(self, existence: Existence, outer: Scope, find: Find, tables: Tables) -> None:
        self.existence = existence
        self.outer = outer
        self.scope = Scope(outer.query, outer.zone, outer)
        self.joining = Joining(existence.selection, self.scope, find, tables)
        self.null_aware = existence.value is not None and existence.negated
        self.value: exp.Expr | None = None
        if existence.value is not None:
            self.value = outer.resolve(existence.value)
            self.item = self.scope.resolve(existence.selection.items[0].node)
        own, self.correlated = self._split(self.joining.where)
        self.joining.where = own
        self._check()
        self.keys: list[tuple[str, str]] = []
        self.residual: list[exp.Expr] = []

    def _split(self, conditions: list[exp.Expr]) -> tuple[list[exp.Expr], list[exp.Expr]]:
        own = [part for part in conditions if self.scope.is_own(part)]
        return own, [part for part in conditions if not self.scope.is_own(part)]

    def _check(self) -> None:
        on = [part for parts in self.joining.on for part in parts]
        far = [*on, *(node for each in self.joining.exists for node in each.correlated)]
        if any(not self.scope.is_own(part) for part in on):
            hint = "write the comparison with the outer stream into WHERE"
            raise self.outer.error(on[0], "ON inside EXISTS names a stream around it", hint)
        known = {**self.scope.homes, **self.outer.homes}
        for part in [*self.correlated, *far]:
            for each in part.find_all(exp.Column):
                if each.name not in known and not self._nested(each.name):
                    hint = "use streams of the SELECT directly around it"
                    raise self.outer.error(each, "EXISTS reaches out of two SELECTs", hint)

    def _nested(self, name: str) -> bool:
        """Whether a column belongs to a subquery of this one."""
        return any(name in each.scope.homes for each in self.joining.exists)

    def settle(self) -> None:
        """Chooses keys, which the leaves of both sides then have."""
        conditions = list(self.correlated)
        if self.value is not None:
            conditions.insert(0, exp.EQ(this=self.value, expression=self.item))
        for number, part in enumerate(conditions):
            each = equality(part, self.outer, self.scope)
            if each is not None:
                self.keys.append(_columns_of(each))
            elif self.null_aware and number == 0:
                hint = "write a column of one stream on each side"
                message = "NOT IN compares columns of one stream each"
                raise self.outer.error(self.value, message, hint)
            else:
                self.residual.append(part)
        self.scope.need(self.residual)

    def above(self, left: Node) -> Node:
        """The operator over the rows of the outer SELECT."""
        right, rest = self.joining.build(())
        if rest is not None:
            where = self.scope.condition(rest, right.schema)
            right = Select(right, where, _all_columns(right))
        places = tuple(
            tuple(side.schema.get_field_index(pair[which]) for pair in self.keys)
            for which, side in enumerate((left, right))
        )
        both = pa.schema([*left.schema, *right.schema])
        rest = conjunction(self.residual)
        condition = None if rest is None else self.outer.condition(rest, both)
        negated, keys = self.existence.negated, (places[0], places[1])
        return Exists(left, right, keys, condition, negated, self.null_aware)
