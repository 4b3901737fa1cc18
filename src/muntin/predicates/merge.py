"""Which shapes share their cells: a local rule of cost."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

# What a group of shapes over joint dimensions costs, and how many cells dimensions have.
Cost = Callable[[tuple[int, ...], frozenset[int]], float]
CountCells = Callable[[frozenset[int]], float]


@dataclass(frozen=True)
class Merged:
    """Shapes whose rows update one common cell: their places, and the joint dimensions."""

    shapes: tuple[int, ...]
    dimensions: tuple[int, ...]


def merge_shapes(shapes: Sequence[Iterable[int]], cost: Cost) -> tuple[Merged, ...]:
    """Group shapes, given by their dimensions, so that all groups together cost little.

    `cost` is asked for the cost of a group: the places of its shapes, and the union of their
    dimensions. The two groups that save most by merging are merged until no two save anything;
    ties go to the first. It is asked about O(n²) groups.

    >>> def cost(members, dimensions):  # 100 rows update a cell, cells are rolled up
    ...     return 100 + (len(members) * 6 ** len(dimensions) if len(members) > 1 else 0)
    >>> [m.shapes for m in merge_shapes([[0], [1], [0, 1], [2]], cost)]
    [(0, 1, 2), (3,)]
    """
    groups: dict[int, tuple[tuple[int, ...], frozenset[int]]]
    groups = {place: ((place,), frozenset(shape)) for place, shape in enumerate(shapes)}
    costs = {place: cost(*group) for place, group in groups.items()}
    offers: list[tuple[float, int, int]] = []

    def offer(left: int, right: int) -> None:
        members = groups[left][0] + groups[right][0]
        added = cost(members, groups[left][1] | groups[right][1]) - costs[left] - costs[right]
        if added < 0:
            heapq.heappush(offers, (added, left, right))

    for right in range(len(groups)):
        for left in range(right):
            offer(left, right)
    following = len(groups)
    while offers:
        _, left, right = heapq.heappop(offers)
        if left not in groups or right not in groups:
            continue
        (members, dimensions), (others, more) = groups.pop(left), groups.pop(right)
        groups[following] = tuple(sorted(members + others)), dimensions | more
        costs[following] = cost(*groups[following])
        for other in groups:
            if other != following:
                offer(other, following)
        following += 1
    found = sorted(groups.values())
    return tuple(Merged(members, tuple(sorted(dimensions))) for members, dimensions in found)


def expected_cells(sizes: Sequence[int], rows: float) -> CountCells:
    """An estimate without data: rows spread evenly over all combinations of ranks.

    Throwing r rows into n cells fills n · (1 - (1 - 1/n)^r) of them.

    >>> cells = expected_cells([10, 4], rows=100)
    >>> round(cells(frozenset([0])), 2), round(cells(frozenset([0, 1])), 2)
    (10.0, 36.82)
    """

    def count(dimensions: frozenset[int]) -> float:
        possible = float(math.prod(sizes[place] for place in dimensions))
        if possible <= 1.0:
            return possible
        return possible * (1.0 - math.exp(rows * math.log1p(-1.0 / possible)))

    return count
