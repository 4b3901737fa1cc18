"""Which shapes share their cells: a local rule of cost."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

# Dimensions, by their places; the answer is how many of their joint cells a slice holds.
CountCells = Callable[[frozenset[int]], float]


@dataclass(frozen=True)
class Merged:
    """Shapes whose rows update one common cell: their places, and the joint dimensions."""

    shapes: tuple[int, ...]
    dimensions: tuple[int, ...]


def merge_shapes(
    shapes: Sequence[Iterable[int]],
    rows: float,
    cells: CountCells,
    *,
    update: float = 1.0,
    roll_up: float = 1.0,
) -> tuple[Merged, ...]:
    """Group shapes, given by their dimensions, so that a slice costs least.

    A group of k shapes over the joint dimensions D costs, for a slice of `rows` rows,

        update · rows + (roll_up · k · cells(D) if k > 1)

    because each row updates one cell, and when the slice closes each joint cell is rolled up into
    the cells of every shape of the group. Shapes that stand alone need no rolling up. Merging two
    groups a and b therefore pays while

        roll_up · (k · cells(D) - k_a · cells(D_a) - k_b · cells(D_b)) < update · rows

    with a group of one counting no cells. The two groups that save most are merged until no two
    save anything; ties go to the first. A shape within the dimensions of another adds no cells,
    so it is absorbed where rows outnumber cells. `cells` is asked about O(n²) sets.

    >>> def independent(dimensions):
    ...     return 10.0 ** len(dimensions)
    >>> [m.shapes for m in merge_shapes([[0], [1], [0, 1], [2]], 2000, independent)]
    [(0, 1, 2), (3,)]
    >>> [m.shapes for m in merge_shapes([[0], [1], [0, 1], [2]], 15, independent)]
    [(0,), (1,), (2,), (3,)]
    """
    groups: dict[int, tuple[tuple[int, ...], frozenset[int]]]
    groups = {place: ((place,), frozenset(shape)) for place, shape in enumerate(shapes)}

    def burden(members: tuple[int, ...], dimensions: frozenset[int]) -> float:
        return roll_up * len(members) * cells(dimensions) if len(members) > 1 else 0.0

    burdens = dict.fromkeys(groups, 0.0)
    offers: list[tuple[float, int, int]] = []

    def offer(left: int, right: int) -> None:
        joint = groups[left][1] | groups[right][1]
        added = burden(groups[left][0] + groups[right][0], joint) - burdens[left] - burdens[right]
        if added < update * rows:
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
        burdens[following] = burden(*groups[following])
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
