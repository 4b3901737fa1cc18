"""What each aggregate means, as a plain Python function of a window's rows.

A row is ``(tick, argument, ...)``. Exact arithmetic (``math.fsum``, ``Fraction``) stands where
the engine uses its own accumulators.
"""

from typing import Any

from muntin.aggregates import Aggregate, ResolvedAggregate
from muntin.testing.aggregates import algebraic, moments, values
from muntin.testing.aggregates.meaning import FUNCTIONS, Rows

__all__ = ["FUNCTIONS", "algebraic", "compute", "moments", "values"]


def compute(resolved: ResolvedAggregate, rows: Rows) -> Any:
    """The answer of an aggregate over rows, each ``(tick, argument, ...)``."""
    if resolved.facet:
        # Exact counts are complete; of what else is told there is no plainer definition.
        assert resolved.facet == "complete"
        return True
    if resolved.name not in FUNCTIONS:
        return _fold(resolved.algebra, rows)
    if resolved.parts[0].kind in ("first_valid", "last_valid", "list"):
        rows = [row for row in rows if row[1] is not None]
    return FUNCTIONS[resolved.name](rows, resolved.type, *resolved.constants)


def _fold(algebra: Aggregate, rows: Rows) -> Any:
    """A user's own aggregate, straight from its definition, in the order of the rows."""
    values = [row[1] if len(row) == 2 else row[1:] for row in rows]
    if algebra.timed:
        return algebra.of((value, row[0]) for value, row in zip(values, rows, strict=True))
    return algebra.of(values)
