"""The Bit Set: every position of the composite slide, marked one by one.

The reference that the other methods are tested against. It costs memory and time in proportion
to the least common multiple of the slides, which is why it ends at `BITSET_LIMIT`.

From "Algorithms and Optimizations for Incremental Window-Based Aggregations", 5.2.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muntin.errors import WindowError
from muntin.optimizer.edge_checks import period_of
from muntin.windows.edges import EdgeClass

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
