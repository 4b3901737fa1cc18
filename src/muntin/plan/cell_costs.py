"""What it costs to keep cells, and to read predicates and coarser groups off them."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod

from muntin.plan.sampling import Counts, Sample
from muntin.predicates import Ranked

# In units of one update of a cell by a row, as measured on the compiled kernels.
_ENTRY = 8.0  # to store, sort and merge an entry
_CHECK = 0.4  # to ask one predicate about one entry, and to add it where it holds
_STEP = 0.3  # to find where a range of ranks begins among the entries of a block
_DIGIT = 0.3  # to read one more rank into a row's key
_ROLL_UP = 4.0  # to roll up an entry into one of a coarser grouping
MOST_CELLS = 1 << 62


def rolls_up(finer: Counts, places: frozenset[int]) -> bool:
    """Whether a coarser grouping is cheaper rolled up from entries than fed with the rows.

    That takes a sample: without one nothing is known about the number of groups.
    """
    return isinstance(finer, Sample) and _ROLL_UP * finer.cells(places) < finer.rows


def cost_of_cells(
    counts: Counts, places: frozenset[int], dimensions: Sequence[Ranked], predicates: int
) -> float:
    """Updates by rows, keeping the entries, and the cheaper way to roll them up by predicate."""
    if prod(each.size for each in dimensions) > MOST_CELLS:
        return inf
    entries = counts.cells(places)
    updates = counts.rows * (1 + _DIGIT * len(dimensions)) + _ENTRY * entries
    if not dimensions:
        return updates
    widest = max(zip(dimensions, places, strict=True), key=lambda pair: (pair[0].size, pair[1]))
    blocks = counts.cells(places - {widest[1]})
    one_by_one = _CHECK * entries * predicates
    by_ranges = entries + blocks * (_STEP * widest[0].size + predicates)
    return updates + min(one_by_one, by_ranges)
