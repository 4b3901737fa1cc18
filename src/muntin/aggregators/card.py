"""A technique's card: what it needs and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from muntin.aggregates import Aggregate

Needs = Literal["any", "invertible", "selective", "distinct"]


@dataclass(frozen=True)
class Card:
    """What a technique needs, and its cost in operations per slide over `n` partials.

    Attributes:
        name: The one name it goes by.
        needs: What the aggregate must be able to do. An invertible aggregate must also be
            commutative, because the rows that leave are the oldest.
        amortised: Operations per slide with one range.
        worst: Operations of the slowest slide with one range.
        multi: Operations per slide with every range from 1 to n; a dash if it takes one range only.
        space: Partials (or indices of the same size) held.
        several_ranges: Whether one state answers several ranges.
        paper: Where it was published.
        counted: Mean operations per slide that answers each of these ranges, which rise, as the
            technique counts them; over values in random order where it compares them.
        steady: Whether no slide takes many more operations than another.
    """

    name: str
    needs: Needs
    amortised: str
    worst: str
    multi: str
    space: str
    several_ranges: bool
    paper: str
    counted: Callable[[Sequence[int]], float]
    steady: bool = False

    def missing(self, aggregate: Aggregate, ranges: int) -> str | None:
        """What keeps the technique from this aggregate with so many ranges; None if nothing."""
        if self.needs == "invertible" and not aggregate.invertible:
            return f"an inverse, which {aggregate.name} does not have"
        if self.needs == "invertible" and not aggregate.commutative:
            return f"a commutative aggregate, which {aggregate.name} is not"
        if self.needs == "selective" and not aggregate.selective:
            return f"a selective aggregate, which {aggregate.name} is not"
        if self.needs == "distinct" and not aggregate.distinct:
            return f"an aggregate of different values, which {aggregate.name} is not"
        if ranges > 1 and not self.several_ranges:
            return f"a single range, not {ranges}"
        return None
