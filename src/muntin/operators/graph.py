"""The operators of a plan, each once for all queries that share it, in the order they run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from muntin.errors import DataError
from muntin.expressions import Bound, bind_text
from muntin.operators.appearances import Appearances
from muntin.operators.counts import Counts
from muntin.operators.difference import BagDifference
from muntin.operators.distinct import Pieces
from muntin.operators.exists import Presence
from muntin.operators.joins.join import WindowJoin
from muntin.operators.joins.shared_join import JoinStore, SharedJoin
from muntin.operators.joins.stores import assign_stores, shareable, stores_of
from muntin.operators.joins.strict_join import StrictJoin
from muntin.operators.relation import RelationLeaf
from muntin.operators.rows import ALWAYS, Changes, Rows, concat
from muntin.operators.select import Leaf, Selection
from muntin.operators.spans import Spans
from muntin.operators.state.keys import check_alike
from muntin.plan.operators import (
    Column,
    Difference,
    Distinct,
    Exists,
    Join,
    Node,
    RowFinal,
    RowPlan,
    Select,
    Union,
    Windowed,
    has_distinct,
    has_whole,
    inputs,
    leaves,
)

Streams = frozenset[str]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Context:
    """What operators that take rows in order depend on beside their nodes.

    ``streams`` are those whose least watermark they follow. With ``counted``, DISTINCT shows each
    value for as long as it lasts, instead of in pieces, of which some might lie between two window
    ends that see the value. Values that it has shown before it does not
    show again, so queries share it only with those that are complete from the same instant on:
    ``since`` is that. With ``ended``, rows that may end before their time are given once they have
    ended, as nobody asks before. What a ``newcomer`` takes from the past is its own: this is the
    name of the query, and empty for all others.
    """

    streams: Streams
    counted: bool
    since: int
    ended: bool
    newcomer: str = ""


@dataclass
class Step:
    """One operator, and the steps that it reads.

    Attributes:
        key: What tells it from other operators of the plan.
        node: What it stands for in the plan.
        operator: What runs, with its state.
        sources: The numbers of the steps it reads.
        clocks: For each source, the streams whose least watermark bounds its rows to come.
        strict: Whether its rows may end before their time.
        lifetime: The longest that its rows with an end live.
        stream: What a leaf reads: a stream, or a stream joined with tables.
    """

    key: Key
    node: Node
    operator: Any
    sources: tuple[int, ...]
    clocks: tuple[Streams, ...]
    strict: bool
    lifetime: int
    stream: str | None = None

    @property
    def newcomer(self) -> str:
        """The query that has it for itself, with what it took from the past; empty if none does."""
        context = self.key[-1]
        return context.newcomer if isinstance(context, Context) else ""


class UnionAll:
    """The rows of all inputs, each with an id of its own."""

    def __init__(self, node: Union) -> None:
        for each in node.inputs[1:]:
            check_alike(node.schema.types, each.schema.types)

    def step(self, inputs: Sequence[Changes], bounds: Sequence[int]) -> Changes:
        """The changes of all inputs."""
        del bounds
        count = len(inputs)
        born = [
            Rows(each.born.columns, each.born.ids * count + i, each.born.start, each.born.end)
            for i, each in enumerate(inputs)
        ]
        ended = np.concatenate([each.ended * count + i for i, each in enumerate(inputs)])
        return Changes(concat(born), ended, np.concatenate([each.at for each in inputs]))


class Graph:
    """The steps of a plan, sources before their readers, and the step of each query's root.

    Equal operators of several queries are one step. Steps that are known already are taken over
    with all that they keep.

    Args:
        plan: The queries.
        known: Steps of the plan before, by their keys.
        since: The first instant at which each query is complete.
        stores: Stores of the plan before, which joins share.
        assigned: Which store each join has that could share one, as `assigned` says of a graph;
            decided here if not given.
        newcomers: The names of queries that have taken rows of the past.
        replayed: Steps of those that join now, which have taken them already. Of equal steps,
            those that are known have more.
        homes: By join that has taken rows of the past, the store that has them all; None if none
            has: then it shares no store.
    """

    def __init__(
        self,
        plan: RowPlan,
        known: Mapping[Key, Step],
        since: Mapping[str, int],
        stores: Sequence[JoinStore] = (),
        assigned: Sequence[int] | None = None,
        newcomers: Collection[str] = (),
        replayed: Mapping[Key, Step] | None = None,
        homes: Mapping[Join, JoinStore | None] | None = None,
    ) -> None:
        self._plan = plan
        self._known = {**(replayed or {}), **known}
        nodes = shareable([final.root for final in plan.finals])
        alone = {node for node in nodes if (node,) in known}
        if assigned is None:
            self.stores = assign_stores(nodes, alone, homes or {}, stores, plan.streams)
        else:
            self.stores = stores_of(nodes, assigned, plan.streams)
        self._shared = {node: store for store in self.stores for node in store.nodes}
        self.assigned = [
            self.stores.index(self._shared[node]) if node in self._shared else -1 for node in nodes
        ]
        self._numbers: dict[Key, int] = {}
        self.steps: list[Step] = []
        self.roots: dict[str, int] = {}
        for final in plan.finals:
            newcomer = final.name if final.name in newcomers else ""
            context = _context(final, since[final.name], newcomer)
            self.roots[final.name] = self._add(final.root, context)

    def below(self, root: int) -> set[int]:
        """The steps that a step reads, and itself."""
        found = {root}
        for source in self.steps[root].sources:
            found |= self.below(source)
        return found

    def _add(self, node: Node, context: Context) -> int:
        key: Key = (node,) if isinstance(node, Windowed) or is_eager(node) else (node, context)
        if key not in self._numbers:
            self._numbers[key] = self._build(key, node, context)
        return self._numbers[key]

    def _build(self, key: Key, node: Node, context: Context) -> int:
        if isinstance(node, Windowed):
            return self._leaf(key, node)
        if isinstance(node, Join) and node in self._shared:
            shared = SharedJoin(node, self._shared[node])
            clocks = tuple(frozenset((stream,)) for stream in self._shared[node].key.streams)
            lived = lifetime(node)
            return self._put(Step(key, node, shared, (), clocks, strict=False, lifetime=lived))
        if isinstance(node, Exists) and node.null_aware and node.negated:
            return self._add(_not_in(node), context)
        sources = [self._add(each, context) for each in inputs(node)]
        if isinstance(node, Exists) and node.residual is not None:
            sources[1] = self._partners(node, sources, context)
        held = [self.steps[source] for source in sources]
        if isinstance(node, Select | Union):
            operator: Any = Selection(node) if isinstance(node, Select) else UnionAll(node)
        else:
            check_order(node)
            operator = _operator(node, held, context)
        clocks = self._clocks(node, held, context)
        strict = _is_strict(node, held, context)
        return self._put(Step(key, node, operator, tuple(sources), clocks, strict, lifetime(node)))

    def _put(self, step: Step) -> int:
        before = self._known.get(step.key)
        # A join of a newcomer that has found a store is another operator now.
        if before is not None and type(before.operator) is type(step.operator):
            step.operator = before.operator
        self.steps.append(step)
        return len(self.steps) - 1

    def _leaf(self, key: Key, node: Windowed) -> int:
        stream = self._plan.streams[node.stream]
        operator = RelationLeaf(node, stream) if node.retroactive else Leaf(node, stream)
        return self._put(
            Step(key, node, operator, (), (), strict=node.retroactive, lifetime=lifetime(node),
                 stream=node.feed)
        )  # fmt: skip

    def _partners(self, node: Exists, sources: Sequence[int], context: Context) -> int:
        """The pairs that make a left row have a partner, as rows that name the left row."""
        join = Join((node.left, node.right), node.keys, node.residual)
        key = ("partners", join, context)
        if key not in self._numbers:
            held = [self.steps[source] for source in sources]
            strict = any(each.strict for each in held)
            kind = StrictJoin if strict else WindowJoin
            operator = kind(join, [each.lifetime for each in held], partners=True)
            clocks = self._clocks(join, held, context)
            lived = lifetime(join)
            self._numbers[key] = self._put(
                Step(key, join, operator, tuple(sources), clocks, strict, lived)
            )
        return self._numbers[key]

    def _clocks(self, node: Node, held: Sequence[Step], context: Context) -> tuple[Streams, ...]:
        """The streams that bound the rows to come of each input."""
        if isinstance(node, Join) and not any(each.strict for each in held):
            return tuple(
                frozenset(leaf.stream for leaf in leaves(each))
                if is_eager(each)
                else context.streams
                for each in node.inputs
            )
        return (context.streams,) * len(held)


def _context(final: RowFinal, since: int, newcomer: str) -> Context:
    """How a query's operators run that take rows in order."""
    plain = final.slide is None and final.show == "rows"
    if has_whole(final.root) and not (plain and final.output != "changes"):
        raise DataError(
            f"query {final.name}: EMIT UNMATCHED gives a row once it has ended, too late for "
            "SLIDE, Istream, Dstream or changes",
            hint="leave out EMIT UNMATCHED, or the other",
        )
    begun = since if has_distinct(final.root) else ALWAYS
    ended = plain and final.output == "final" and not final.internal and final.lasts is None
    given = ended and gives_ended(final.root)
    return Context(final.streams, final.counts, begun, given, newcomer)


def is_eager(node: Node) -> bool:
    """Whether its rows come on arrival, in any order."""
    if isinstance(node, Exists | Distinct | Difference):
        return False
    if isinstance(node, Windowed):
        return not node.retroactive
    return all(is_eager(each) for each in inputs(node))


def gives_ended(node: Node) -> bool:
    """Whether its rows can be given once they have ended, by what is kept of its inputs alone."""
    if isinstance(node, Select | Union):
        return all(map(gives_ended, inputs(node)))
    if isinstance(node, Distinct):
        return is_eager(node.input)
    if isinstance(node, Exists | Difference):
        # NOT IN is several absences, one above the other; EXCEPT ALL needs all rows of a value.
        other = node.null_aware and node.negated if isinstance(node, Exists) else node.kind == "all"
        # What rows that never end may meet would have to be kept for ever.
        ends = all(leaf.range is not None for leaf in leaves(node.left))
        return ends and not other and all(map(is_eager, (node.left, node.right)))
    return is_eager(node)


def is_mixed(node: Node) -> bool:
    """Whether some of its rows come when they are born, and others once they have ended."""
    if not isinstance(node, Select | Union) or has_whole(node):
        return False
    return len(set(map(is_eager, inputs(node)))) > 1 or any(map(is_mixed, inputs(node)))


def check_order(node: Node) -> None:
    """Refuse to join, compare or count rows that come once they have ended."""
    if any(has_whole(each) for each in inputs(node)):
        raise DataError(
            "EMIT UNMATCHED gives a row once it has ended, too late for an operator above it",
            hint="use it as the last step of a query, or leave it out",
        )


def lifetime(node: Node) -> int:
    """The longest that rows with an end live; results live no longer than their parts."""
    return max((leaf.range for leaf in leaves(node) if leaf.range is not None), default=0)


def _is_strict(node: Node, held: Sequence[Step], context: Context) -> bool:
    if isinstance(node, Exists):
        return not (node.whole or context.ended)
    if context.ended:
        return False
    counted = isinstance(node, Distinct) and context.counted
    return counted or isinstance(node, Difference) or any(each.strict for each in held)


def _operator(
    node: Join | Exists | Distinct | Difference, held: Sequence[Step], context: Context
) -> Any:
    lifetimes = [each.lifetime for each in held]
    strict = [each.strict for each in held]
    if isinstance(node, Join):
        return StrictJoin(node, lifetimes) if any(strict) else WindowJoin(node, lifetimes)
    if isinstance(node, Exists):
        if (node.whole or context.ended) and gives_ended(node):
            return Appearances(node, lifetimes)
        return Presence(node, lifetimes, strict)
    if context.ended:
        return Spans(node, lifetimes)
    if isinstance(node, Distinct) and not context.counted and not any(strict):
        return Pieces(node, lifetimes[0])
    if isinstance(node, Difference) and node.kind == "all":
        return BagDifference(node, lifetimes, strict)
    return Counts(node, lifetimes, strict)


def _not_in(node: Exists) -> Node:
    """NOT IN by absences that know no NULL.

    A row is hidden by a right row that equals it, by any whose value is NULL, and if its own
    value is NULL by all.
    """
    left_key, *left = node.keys[0]
    right_key, *right = node.keys[1]
    # Keys behind the first say which rows the subquery has for a left row.
    own = (tuple(left), tuple(right))
    known = _filtered(node.left, left_key, "IS NOT NULL")
    unknown = _filtered(node.left, left_key, "IS NULL")
    nulls = _filtered(node.right, right_key, "IS NULL")
    sure = Exists(known, nulls, own, node.residual, negated=True)
    return Union(
        (
            Exists(sure, node.right, node.keys, node.residual, negated=True),
            Exists(unknown, node.right, own, node.residual, negated=True),
        )
    )


def _filtered(node: Node, place: int, condition: str) -> Select:
    def bound(name: str, rest: str = "") -> Bound:
        quoted = name.replace("`", "``")
        return bind_text(f"`{quoted}` {rest}", node.schema)

    names = node.schema.names
    where = bound(names[place], condition)
    return Select(node, where, tuple(Column(name, bound(name)) for name in names))
