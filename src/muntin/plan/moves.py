"""When queries that run go over to other trees: what was weighed, and what was moved."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Weighed:
    """What an optimizer knew when it last weighed a whole plan.

    Attributes:
        rate: Rows per tick.
        cost: What the plan was estimated to cost, in operations per tick.
        changed: What queries that joined since then have added to the cost.
    """

    rate: float
    cost: float
    changed: float = 0.0


@dataclass(frozen=True)
class Move:
    """Queries that went over to another tree, and why.

    ``at`` is the largest event time of the rows that were cut by the trees before; None while
    the plan that moves them has not taken effect.
    """

    queries: tuple[str, ...]
    why: str
    at: int | None = None
