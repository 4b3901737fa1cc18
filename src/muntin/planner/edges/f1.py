"""Formula F1: edges by inclusion and exclusion over groups of classes.

From "Algorithms and Optimizations for Incremental Window-Based Aggregations", 5.2 (equations
5.1 to 5.8). A group of classes has common edges exactly when every two of its classes do, and
then one in the least common multiple of its slides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import gcd

from muntin.errors import WindowError
from muntin.planner.edges.checks import checked_classes, period_of, reduced_classes
from muntin.windows.edges import EdgeClass

# Groups that have common edges; a few seconds.
F1_LIMIT = 2**22

# The table of greatest common divisors that F1's optimization (5.2.4) keeps in memory.
memoised_gcd = lru_cache(maxsize=2**18)(gcd)


def overlap(first: EdgeClass, second: EdgeClass) -> bool:
    """Whether two classes have common edges: the Overlap Check Formula (5.6).

    >>> overlap((3, 0), (6, 3)), overlap((3, 0), (6, 2))
    (True, False)
    """
    return (first[1] - second[1]) % memoised_gcd(first[0], second[0]) == 0


def f1_count(classes: Sequence[EdgeClass]) -> int:
    """Edges in one composite slide by Formula F1, after classes that add no edge are dropped.

    >>> f1_count([(slide, 0) for slide in (2, 3, 4, 5, 6)])
    44
    """
    kept = reduced_classes(classes)
    sums = _partial_sums(kept, period_of(classes))
    return sum(term if size % 2 == 0 else -term for size, term in enumerate(sums))


def f1_terms(classes: Iterable[tuple[int, int]]) -> list[int]:
    """The partial sums of F1: the i-th is the period times G2(n, i), without its sign.

    Repeated classes count once; classes inside others are kept, as in the thesis's examples.
    Sums of zero at the end, where no group has common edges, are left out.

    >>> f1_terms([(3, 0), (4, 0), (4, 3), (6, 0), (6, 2), (9, 0)])
    [46, 26, 8, 1]
    """
    checked = checked_classes(classes)
    return _partial_sums(checked, period_of(checked))


def _partial_sums(classes: Sequence[EdgeClass], period: int) -> list[int]:
    partners = [
        sum(
            1 << later
            for later in range(first + 1, len(classes))
            if overlap(classes[first], classes[later])
        )
        for first in range(len(classes))
    ]
    slides = [slide for slide, _ in classes]
    sums: list[int] = []
    # A group: its size, its least common multiple, and the later classes that overlap with all.
    groups = [(1, slides[first], partners[first]) for first in range(len(classes))]
    visited = 0
    while groups:
        visited += 1
        if visited > F1_LIMIT:
            raise WindowError(
                f"F1 over {len(classes)} classes needs more than {F1_LIMIT} terms",
                hint='method="auto" is exact and much faster; estimate_edge_rate is faster still',
            )
        size, multiple, candidates = groups.pop()
        if size > len(sums):
            sums.extend([0] * (size - len(sums)))
        sums[size - 1] += period // multiple
        while candidates:
            lowest = candidates & -candidates
            candidates ^= lowest
            nearest = lowest.bit_length() - 1
            slide = slides[nearest]
            grown = multiple // memoised_gcd(multiple, slide) * slide
            groups.append((size + 1, grown, candidates & partners[nearest]))
    return sums
