"""Which bits numbers take: from the lowest that may be set to above the highest."""

from __future__ import annotations

from muntin.aggregators import limb_kernels as kernels
from muntin.aggregators.encoding import Values

Span = tuple[int, int]
_LEAST_INFINITE = 0x7FF << 52


def span_of_values(values: Values) -> tuple[Span | None, bool]:
    """The bits that the values take, None if all are zero, and whether some are NaN or infinite."""
    if not values.double:
        if len(values.items) == 0:
            return None, False
        return (0, int(kernels.integer_bits(values.items)).bit_length()), False
    least, greatest = kernels.double_sizes(values.items)
    special = greatest >= _LEAST_INFINITE
    if special:
        greatest = kernels.greatest_finite(values.items)
    if greatest == 0:
        return None, special
    return (max(least >> 52, 1) - 1075, max(greatest >> 52, 1) - 1075 + 53), special


def span_of_units(units: int, grid: int) -> Span | None:
    """The bits of `units * 2**-grid`, None for zero.

    >>> span_of_units(12, grid=0), span_of_units(12, grid=4)
    ((2, 4), (-2, 0))
    """
    if units == 0:
        return None
    return (units & -units).bit_length() - 1 - grid, units.bit_length() - grid
