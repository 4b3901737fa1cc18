"""When queries that run are worth moving to other trees, and what those are called.

Planning all from scratch takes time, and a move keeps slices twice for a while. So a plan is
weighed anew only where that is likely to pay: the rate of rows is known for the first time or has
become another one, queries that joined have added more than the margin to the cost, or merging
two trees would save more than that since queries have left one of them. A plan without a query
costs no more than with it: so what joined cannot have made the plan costlier than need be by more
than it added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count

from muntin.plan.nodes import Weighed

# A plan is left for one that costs less by this share; what it saves pays for the move.
MARGIN = 0.1
# The rate of rows is another one when it has changed by this factor.
DRIFT = 2.0


def has_drifted(weighed: Weighed, rate: float) -> bool:
    """Whether the rate of rows is far from the one that a plan was weighed with.

    >>> has_drifted(Weighed(rate=1.0, cost=5.0), 1.9), has_drifted(Weighed(1.0, 5.0), 0.4)
    (False, True)
    """
    low, high = sorted((weighed.rate, rate))
    return high > DRIFT * low


def is_stale(weighed: Weighed, rate: float, saving: float = 0.0) -> bool:
    """Whether planning from scratch may save more than the margin; merging two trees saves this."""
    if has_drifted(weighed, rate):
        return True
    return max(weighed.changed, saving) > MARGIN * weighed.cost


def reason(weighed: Weighed | None, rate: float) -> str:
    """Why a plan was weighed anew.

    >>> reason(Weighed(rate=1.0, cost=5.0), 4.0)
    'rows come 4× as often as planned for'
    """
    if weighed is None:
        return "the rate of rows has become known"
    if not has_drifted(weighed, rate):
        return "queries have joined and left"
    if rate > weighed.rate:
        return f"rows come {rate / weighed.rate:,.2g}× as often as planned for"
    return f"rows come {weighed.rate / rate:,.2g}× more rarely than planned for"


def match_owners(trees: Sequence[Sequence[int]], kept: Sequence[str | None]) -> list[str]:
    """An owner for each query, so that few of those that have one change it.

    Args:
        trees: The queries of each tree, by their number.
        kept: The owner that each query has.

    >>> match_owners([(0, 3), (1, 2)], ["tree 1", "tree 1", "tree 1", None])
    ['tree 2', 'tree 1', 'tree 1', 'tree 2']
    """
    overlaps = Counter(
        (number, owner) for number, tree in enumerate(trees) for owner in _kept(tree, kept)
    )
    names: dict[int, str] = {}
    for (number, owner), _ in sorted(overlaps.items(), key=lambda item: (-item[1], item[0])):
        if number not in names and owner not in names.values():
            names[number] = owner
    fresh = (name for name in map(tree_name, count(1)) if name not in kept)
    owners = [""] * len(kept)
    for number, tree in enumerate(trees):
        name = names[number] if number in names else next(fresh)
        for query in tree:
            owners[query] = name
    return owners


def tree_name(number: int) -> str:
    """What a tree is called."""
    return f"tree {number}"


def _kept(tree: Iterable[int], kept: Sequence[str | None]) -> Iterable[str]:
    return (owner for query in tree if (owner := kept[query]) is not None)
