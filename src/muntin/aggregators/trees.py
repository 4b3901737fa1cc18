"""What FlatFAT and B-Int share: nodes in one array, node i over nodes 2 i and 2 i + 1."""

from __future__ import annotations

from typing import Any

from muntin.aggregators.contract import shared
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
