"""How many edges a set of classes has, exactly: in one composite slide, and per time unit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from muntin.errors import WindowError, did_you_mean
from muntin.planner.edges.checks import checked_classes, period_of, reduced_classes
from muntin.planner.edges.exact import uncovered
from muntin.planner.edges.f1 import f1_count
from muntin.windows.edges import EdgeClass

EdgeMethod: TypeAlias = Literal["auto", "bitset", "f1"]
EDGE_METHODS: tuple[EdgeMethod, ...] = ("auto", "bitset", "f1")

# Classes looked at: about a minute and half a gigabyte. Past it a count is an error rather than
# a wait without end.
EXACT_LIMIT = 10**7


def edge_count(classes: Iterable[tuple[int, int]], method: EdgeMethod = "auto") -> int:
    """The number of distinct edges in one composite slide, the least common multiple of slides.

    Args:
        classes: Pairs `(slide, shift)`: an edge at every t with t mod slide = shift mod slide.
        method: `"bitset"` marks every position, `"f1"` is Formula F1, and `"auto"` eliminates
            digit by digit; all three are exact, and refuse what is too much for them.

    >>> edge_count([(3, 0), (4, 0), (4, 3), (6, 0), (6, 2), (9, 0)])
    27
    """
    checked = checked_classes(classes)
    if method == "auto":
        share = _exact_share(checked)
        return share.numerator * (period_of(checked) // share.denominator)
    if method == "bitset":
        return bitset_count(checked)
    if method == "f1":
        return f1_count(checked)
    raise WindowError(
        f"unknown edge counting method {method!r}", hint=did_you_mean(str(method), EDGE_METHODS)
    )


def edge_rate(classes: Iterable[tuple[int, int]], method: EdgeMethod = "auto") -> Fraction:
    """Edges per time unit, exactly.

    >>> edge_rate([(2, 0), (3, 0)])
    Fraction(2, 3)
    """
    checked = checked_classes(classes)
    if method == "auto":
        return _exact_share(checked)
    return Fraction(edge_count(checked, method), period_of(checked))


def rate_within(classes: Sequence[EdgeClass], limit: int) -> Fraction | None:
    """Edges per time unit of reduced classes, or None where that takes more work than allowed.

    >>> rate_within([(4, 0), (6, 1)], limit=2), rate_within([(4, 0), (6, 1)], limit=1)
    (Fraction(5, 12), None)
    """
    if not classes:
        return Fraction(0)
    if classes[0][0] == 1:
        return Fraction(1)
    found = uncovered(classes, limit)
    return None if found is None else 1 - Fraction(*found)


def _exact_share(checked: Sequence[EdgeClass]) -> Fraction:
    kept = reduced_classes(checked)
    share = rate_within(kept, EXACT_LIMIT)
    if share is None:
        raise WindowError(
            f"the edges of {len(kept)} classes are too entangled to be counted exactly",
            hint="estimate_edge_rate gives the rate within 1% at once",
        )
    return share


# One byte a position: 128 MB.
BITSET_LIMIT = 2**27


def bitset_count(classes: Sequence[EdgeClass]) -> int:
    """Edges in one composite slide, counted; refuses a period above `BITSET_LIMIT`.

    >>> bitset_count([(slide, 0) for slide in (2, 3, 4, 5, 6)])
    44
    """
    period = period_of(classes)
    if period > BITSET_LIMIT:
        # A period may have thousands of digits; its length in bits says enough.
        raise WindowError(
            f"the bit set would need {_size(period)} positions, more than {BITSET_LIMIT}",
            hint='method="auto" is exact and needs no bit set',
        )
    marked = np.zeros(period, dtype=np.bool_)
    for slide, shift in classes:
        marked[shift::slide] = True
    return int(np.count_nonzero(marked))


def _size(period: int) -> str:
    return str(period) if period < 2**64 else f"over 2**{period.bit_length() - 1}"
