"""FlatFAT: a binary tree over a ring of partials, kept in one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from muntin._typing import Ints
from muntin.aggregators.card import Card
from muntin.aggregators.contract import FIRST, OPERATIONS, SIZE, shared
from muntin.aggregators.operators import Store, combine, commutes, load, save
from muntin.aggregators.rings import at_front, drop_oldest, end_of, new_head, wrapped


def counted(ranges: Sequence[int]) -> float:
    """The levels above a leaf, and the nodes that cover each window but the longest."""
    room = max(ranges)
    leaves = room + sampled(room)
    levels = float(np.floor(np.log2(leaves)).mean())
    return levels + sum(_covers(leaves, size, room) for size in ranges if size < room)


def _covers(leaves: Ints, size: int, room: int) -> float:
    """Combinations of a window's nodes, on average; one past the last leaf has two covers."""
    ends = leaves + size
    first = np.full(ends.size, room)
    nodes = covering(leaves, np.minimum(ends, 2 * room)) + covering(first, ends - room)
    return float(nodes.mean()) - 1


CARD = Card(
    name="flatfat",
    needs="any",
    amortised="log n",
    worst="log n; 3 log n where order matters",
    multi="n log n",
    space="2 n",
    several_ranges=True,
    paper="General Incremental Sliding-Window Aggregation, VLDB 2015",
    counted=counted,
    steady=True,
)


class FlatFAT(NamedTuple):
    """Node i combines nodes 2 i and 2 i + 1; the leaves are the second half of the array.

    The number of leaves need not be a power of two: node 1 still covers each leaf once, though
    not in order, and the nodes that a query of neighbouring leaves visits are in order.
    """

    tree: Store
    head: Ints

    @staticmethod
    def create(op: Any, capacity: int, columns: int, full: bool) -> FlatFAT:
        """A tree of identities, counted as partials if `full`."""
        return FlatFAT(op.empty(2 * capacity), new_head(capacity if full else 0))

    @staticmethod
    def room(state: FlatFAT) -> int:
        """How many partials fit."""
        return len(state.tree) // 2

    @staticmethod
    def grown(op: Any, state: FlatFAT, capacity: int) -> FlatFAT:
        """A larger tree over the same partials."""
        head = at_front(state.head)
        room, size, first = len(state.tree) // 2, head[SIZE], state.head[FIRST]
        tree = op.empty(2 * capacity)
        for i in range(size):
            save(op, tree, capacity + i, load(op, state.tree, room + (first + i) % room))
        for node in range(capacity - 1, 0, -1):
            renew(op, tree, node)
        head[OPERATIONS] += capacity - 1
        return FlatFAT(tree, head)

    @staticmethod
    def insert(op: Any, state: FlatFAT, partial: Any) -> None:
        """Write the leaf and combine anew what lies above it."""
        head = state.head
        tree = state.tree
        capacity = len(tree) // 2
        node = capacity + end_of(head, capacity)
        save(op, tree, node, partial)
        head[SIZE] += 1
        levels = 0
        while node > 1:
            node >>= 1
            renew(op, tree, node)
            levels += 1
        head[OPERATIONS] += levels

    @staticmethod
    def evict(op: Any, state: FlatFAT) -> None:
        """Step over the oldest leaf: no query visits a node above it."""
        drop_oldest(state.head, len(state.tree) // 2)

    @staticmethod
    def query(op: Any, state: FlatFAT, size: int) -> Any:
        """The root for a full tree, otherwise the fewest nodes that cover the leaves."""
        head = state.head
        capacity = len(state.tree) // 2
        if size == capacity and commutes(op):
            return load(op, state.tree, 1)
        start = wrapped(head[FIRST] + head[SIZE] - size, capacity)
        if start + size <= capacity:
            return cover(op, state, capacity + start, capacity + start + size)
        answer = cover(op, state, capacity + start, 2 * capacity)
        head[OPERATIONS] += 1
        return combine(op, answer, cover(op, state, capacity, start + size))


@shared
def cover(op: Any, state: FlatFAT, low: int, high: int) -> Any:
    """Combine the leaves at nodes [low, high), in order, from below."""
    tree = state.tree
    left = right = load(op, tree, low)
    lefts = rights = 0
    while low < high:
        if low & 1:
            node = load(op, tree, low)
            left = combine(op, left, node) if lefts else node
            lefts += 1
            low += 1
        if high & 1:
            high -= 1
            node = load(op, tree, high)
            right = combine(op, node, right) if rights else node
            rights += 1
        low >>= 1
        high >>= 1
    state.head[OPERATIONS] += lefts + rights - 1
    return joined(op, left, lefts, right, rights)


@shared
def renew(op: Any, nodes: Store, at: int) -> None:
    """Combine a node's two halves."""
    save(op, nodes, at, combine(op, load(op, nodes, 2 * at), load(op, nodes, 2 * at + 1)))


@shared
def joined(op: Any, left: Any, lefts: int, right: Any, rights: int) -> Any:
    """Both ends of a window, of which one may be made of no nodes."""
    if rights == 0:
        return left
    return combine(op, left, right) if lefts else right


# Windows are looked at from so many places to tell what they cost on average.
_SAMPLED = 1 << 9


def sampled(room: int) -> Ints:
    """Some places of a ring, evenly spread."""
    count = min(room, _SAMPLED)
    return np.arange(count) * room // count


def covering(low: Ints, high: Ints) -> Ints:
    """The fewest nodes that cover the leaves from `low` to `high - 1`, for many such pairs.

    >>> covering(np.array([4, 5, 5]), np.array([8, 8, 5])).tolist()
    [1, 2, 0]
    """
    nodes = np.zeros(low.size, np.int64)
    while (low < high).any():
        open_ = low < high
        nodes += open_ * ((low & 1) + (high & 1))
        low, high = (low + 1) >> 1, high >> 1
    return nodes
