"""What FlatFAT and B-Int share: nodes in one array, node i over nodes 2 i and 2 i + 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from muntin.aggregators.contract import Ints, shared
from muntin.aggregators.operators import Store, combine, load, save


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
