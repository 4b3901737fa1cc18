"""Nodes that trees are placed on, each with a capacity."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import TypeAlias

from muntin.errors import MuntinError


@dataclass(frozen=True)
class Node:
    """A place where trees run: a worker, or one of Spark's buckets.

    A node of capacity 2 is as busy with a cost of 200 as one of capacity 1 with 100.

    >>> Node("large", capacity=4)
    Node(name='large', capacity=4.0)
    """

    name: str
    capacity: float = 1.0

    def __post_init__(self) -> None:
        if not (isfinite(self.capacity) and self.capacity > 0):
            raise MuntinError(
                f"node {self.name} has a capacity of {self.capacity}",
                hint="give a number above zero; 1 for all where nodes are alike",
            )
        object.__setattr__(self, "capacity", float(self.capacity))


Nodes: TypeAlias = int | Iterable["Node | str"]


def as_nodes(nodes: Nodes) -> tuple[Node, ...]:
    """Nodes from a number of equal ones, from names, or as they are.

    >>> [node.name for node in as_nodes(3)]
    ['0', '1', '2']
    >>> as_nodes(["a", Node("b", 2)])
    (Node(name='a', capacity=1.0), Node(name='b', capacity=2.0))
    """
    if isinstance(nodes, int):
        made = tuple(Node(str(number)) for number in range(nodes))
    elif isinstance(nodes, str):
        made = (Node(nodes),)
    else:
        made = tuple(node if isinstance(node, Node) else Node(str(node)) for node in nodes)
    if not made:
        raise MuntinError(
            f"there are no nodes to place trees on: {nodes!r}",
            hint="give a number of nodes from 1 on, or a list of Node(name, capacity)",
        )
    check_unique(made)
    return made


def check_unique(nodes: Iterable[Node]) -> None:
    """Refuses two nodes of one name."""
    seen: set[str] = set()
    for node in nodes:
        if node.name in seen:
            raise MuntinError(
                f"two nodes are named {node.name}", hint="give every node a name of its own"
            )
        seen.add(node.name)
