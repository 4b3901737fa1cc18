"""What the operators of a row query cost per tick of event time, as far as rates tell.

Rows come, and some end before their time: an operator pays for both, which is what a plan with
absences low down is dear for. The form is that of *Sliding Window Query Processing over Data
Streams* (2006), 3.5.3, whose text leaves the formulas open: per operator, what comes in and what
goes out, born and ended early, each times what it was measured to take.

Keys are taken to come independently of one another and of time, each as often as in the sample.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

from muntin.expressions import Bound
from muntin.expressions.tree import Column as ColumnNode
from muntin.plan.operators import (
    Distinct,
    Exists,
    Join,
    Node,
    Select,
    Union,
    Windowed,
    inputs,
    leaves,
)
from muntin.planner.rows.rewritings.rates import StreamRate, joint

# Nanoseconds of CPU per row, as `muntin bench operators-constants` measured them: what comes in is
# each row and each early end, what goes out the same.
CONSTANTS = {
    # A row of a stream; and one that passes a selection or a union.
    "read": 40.0,
    # A join of rows that live to their end, and one of rows that may not.
    "join_in": 520.0,
    "join_out": 140.0,
    "strict_in": 880.0,
    "strict_out": 245.0,
    "exists_in": 840.0,
    "exists_out": 67.0,
    "distinct_in": 745.0,
}
# The share of rows that satisfy a condition over several streams, which no sample tells.
UNKNOWN_CONDITION = 1 / 3


class NotWeighedError(Exception):
    """What is missing to weigh a plan."""


@dataclass(frozen=True)
class Flow:
    """Rows of an edge per tick: how many are born, how many end early, how long they live."""

    born: float
    early: float
    life: float

    @property
    def alive(self) -> float:
        """The rows that are alive at an instant."""
        return self.born * self.life

    @property
    def changes(self) -> float:
        """What an operator above has to take."""
        return self.born + self.early


def _life(alive: float, born: float) -> float:
    """How long rows live of which so many are alive and so many are born per tick."""
    return alive / born if alive and born else 1.0


StoreKey = tuple[Any, ...]


def store_key(join: Join) -> StoreKey | None:
    """What joins have in common that keep their rows in one store; None if it has its own."""
    if len(join.inputs) != 2 or not all(isinstance(each, Windowed) for each in join.inputs):
        return None
    sides = []
    for leaf, places in zip(join.inputs, join.keys, strict=True):
        assert isinstance(leaf, Windowed)
        if leaf.relation is not None or leaf.retroactive:
            return None
        sides.append((leaf.stream, tuple(leaf.columns[place].value.key for place in places)))
    return tuple(sides)


class Costs:
    """Estimates over streams whose rates are known.

    Args:
        rates: What is known of each stream.
        shared: The keys of joins that others of the plan keep the rows of anyway.
    """

    def __init__(self, rates: Mapping[str, StreamRate], shared: Collection[StoreKey] = ()) -> None:
        self._rates = rates
        self._shared = shared
        self._flows: dict[Node, Flow] = {}

    def check(self, node: Node) -> None:
        """Refuse what cannot be weighed, with the reason."""
        for leaf in leaves(node):
            if leaf.stream not in self._rates:
                name = leaf.stream or "the stream"
                raise NotWeighedError(f"no rate of {name} is known yet")
            if leaf.range is None or leaf.relation is not None:
                raise NotWeighedError("rows that never end, or are joined with tables")
        self.flow(node)

    def cost(self, node: Node) -> float:
        """Nanoseconds of CPU per tick; what occurs twice is paid once."""
        seen: dict[Node, None] = {}
        pending = [node]
        while pending:
            each = pending.pop()
            if each not in seen:
                seen[each] = None
                pending += inputs(each)
        return sum(map(self._own, seen))

    def _own(self, node: Node) -> float:
        """What one operator takes, without those below it."""
        out, given = self.flow(node), [self.flow(each) for each in inputs(node)]
        coming = sum(each.changes for each in given)
        if isinstance(node, Windowed):
            return CONSTANTS["read"] * self._rates[node.stream].rate
        if isinstance(node, Join):
            if any(each.label == "STR" for each in node.inputs):
                return CONSTANTS["strict_in"] * coming + CONSTANTS["strict_out"] * out.changes
            held = store_key(node)
            own = 0.0 if held is not None and held in self._shared else CONSTANTS["join_in"]
            return own * coming + CONSTANTS["join_out"] * out.born
        if isinstance(node, Exists):
            return self._exists(node, given[0], given[1], out)
        if isinstance(node, Distinct):
            return CONSTANTS["distinct_in"] * coming
        return CONSTANTS["read"] * coming

    def _exists(self, node: Exists, left: Flow, right: Flow, out: Flow) -> float:
        coming = left.changes + right.changes
        own = CONSTANTS["exists_out"] * out.changes
        if node.residual is None:
            return own + CONSTANTS["exists_in"] * coming
        # Partners are pairs then, which a join finds.
        chance = self._chance((node.left, node.right), node.keys)
        pairs = (left.born * right.alive + right.born * left.alive) * chance
        kind = "strict" if "STR" in (node.left.label, node.right.label) else "join"
        own += CONSTANTS[f"{kind}_in"] * coming + CONSTANTS[f"{kind}_out"] * pairs
        return own + CONSTANTS["exists_in"] * (left.changes + pairs * UNKNOWN_CONDITION)

    def flow(self, node: Node) -> Flow:
        """The rows that an operator gives."""
        if node not in self._flows:
            self._flows[node] = self._flow(node)
        return self._flows[node]

    def _flow(self, node: Node) -> Flow:
        if isinstance(node, Windowed):
            rate = self._rates[node.stream]
            return Flow(rate.rate * rate.passing(node), 0.0, float(node.range or 1))
        given = [self.flow(each) for each in inputs(node)]
        if isinstance(node, Select):
            share = 1.0 if node.where is None else UNKNOWN_CONDITION
            return Flow(given[0].born * share, given[0].early * share, given[0].life)
        if isinstance(node, Union):
            born = sum(each.born for each in given)
            alive = sum(each.alive for each in given)
            return Flow(born, sum(each.early for each in given), _life(alive, born))
        if isinstance(node, Join):
            return self._joined(node, given)
        if isinstance(node, Exists):
            return self._present(node, *given)
        if isinstance(node, Distinct):
            return self._distinct(node, given[0])
        raise NotWeighedError("differences of bags stay where they are")

    def _joined(self, node: Join, given: Sequence[Flow]) -> Flow:
        chance = self._chance(node.inputs, node.keys)
        if node.residual is not None:
            chance *= UNKNOWN_CONDITION
        alive = chance
        for each in given:
            alive *= each.alive
        # A row that comes meets the rows of all others that are alive; one that ends early takes
        # as many with it.
        born = sum(alive / each.life for each in given)
        early = sum(alive * each.early / each.alive for each in given if each.alive)
        return Flow(born, early, _life(alive, born))

    def _present(self, node: Exists, left: Flow, right: Flow) -> Flow:
        """Rows that appear, by the chance that a key has a partner, and that this changes."""
        ours, theirs = self._shares(node.left, node.keys[0]), self._shares(node.right, node.keys[1])
        share = 1.0 if node.residual is None else UNKNOWN_CONDITION
        covered = turns = 0.0
        for value, own in ours.items():
            rate = right.born * share * theirs.get(value, 0.0)
            none = exp(-rate * right.life)
            covered += own * (1 - none)
            turns += own * rate * none
        shown = 1 - covered if node.negated else covered
        # While a row lives it appears again as often as its key turns, and disappears as often.
        turning = left.born * left.life * turns
        born, early = left.born * shown + turning, left.early * shown + turning
        alive = left.alive * shown
        return Flow(born, early, _life(alive, born))

    def _distinct(self, node: Distinct, given: Flow) -> Flow:
        shares = self._shares(node.input, range(len(node.schema)))
        alive = sum(1 - exp(-given.alive * share) for share in shares.values())
        fresh = sum(given.born * share * exp(-given.alive * share) for share in shares.values())
        # A value that stays comes in pieces, about one per life of its rows.
        pieces = fresh + alive / given.life
        early = given.early / given.born * pieces if given.born else 0.0
        return Flow(pieces, early, _life(alive, pieces))

    def _chance(self, nodes: Sequence[Node], keys: Sequence[Sequence[int]]) -> float:
        """The chance that rows, one of each input, have one key: half a hit of the sample's."""
        shares = [self._shares(node, places) for node, places in zip(nodes, keys, strict=True)]
        least = 0.5
        for each in shares:
            least /= max(len(each), 1)
        return max(joint(shares), least)

    def _shares(self, node: Node, places: Sequence[int]) -> dict[Any, float]:
        """How often the values of some columns come, as in the leaf that they are of."""
        found = [_origin(node, place) for place in places]
        if not found:
            return {(): 1.0}
        leaf = found[0][0]
        if any(each is not leaf for each, _ in found):
            raise NotWeighedError("keys that several streams have a part in")
        return self._rates[leaf.stream].shares(leaf, [bound for _, bound in found])


def _origin(node: Node, place: int) -> tuple[Windowed, Bound]:
    """The leaf that a column is of, and its expression there."""
    if isinstance(node, Windowed):
        return node, node.columns[place].value
    if isinstance(node, Join):
        for each in node.inputs:
            if place < len(each.schema):
                return _origin(each, place)
            place -= len(each.schema)
    if isinstance(node, Select):
        root = node.columns[place].value.root
        if isinstance(root, ColumnNode):
            return _origin(node.input, node.input.schema.get_field_index(root.name))
        raise NotWeighedError("keys that are computed above a stream")
    if isinstance(node, Exists | Distinct):
        return _origin(inputs(node)[0], place)
    raise NotWeighedError("keys that several streams have a part in")
