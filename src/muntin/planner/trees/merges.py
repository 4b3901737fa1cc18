"""The compiled greedy merge: always the pair of trees that saves most, until no pair saves.

Every tree keeps a short list of its best partners and the saving with the best of them. When
the best partner has changed, the next on the list takes its place; a list is made anew only
when it was cut short and all on it are gone. A pair is thus priced when one of its trees is
made, and hardly ever again: n trees take n merges and a few n lists, not n² of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from muntin._compiled import compiled
from muntin.planner.trees import sample as plain

quick_omega: Any = compiled(plain.quick_omega)
union_rate: Any = compiled(plain.union_rate)

# Columns of the state of trees; a tree lives in the row of its lowest group.
SUMS, HITS, EDGES, COUNT, OVERLAP, LOGS, LONGEST, COST, SLOT, COLUMNS = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
# More than the formulas of costs are rounded by.
SLACK = 1e-9


class Prices(NamedTuple):
    """What the cost of a tree is made of, and how rates are read off the sample.

    A tree costs per_tree + edges * (omega - free).
    """

    technique: int
    per_tree: float
    free: float
    scale: float
    exact: bool


def _ones(typing_context: Any, word: Any) -> Any:
    """How many bits of an unsigned word are set."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


ones: Any = intrinsic(_ones)


@compiled
def cost_of(row: Any, prices: Prices) -> float:
    """The cost of a tree."""
    omega = quick_omega(
        prices.technique, row[EDGES], row[COUNT], row[OVERLAP], row[LOGS], row[LONGEST]
    )
    return float(prices.per_tree + row[EDGES] * (omega - prices.free))


@compiled
def merged_cost(state: Any, prices: Prices, one: int, two: int, edges: float) -> float:
    """The cost of two trees made one with so many edges."""
    omega = quick_omega(
        prices.technique,
        edges,
        state[one, COUNT] + state[two, COUNT],
        state[one, OVERLAP] + state[two, OVERLAP],
        state[one, LOGS] + state[two, LOGS],
        max(state[one, LONGEST], state[two, LONGEST]),
    )
    return float(prices.per_tree + edges * (omega - prices.free))


@compiled
def union_edges(bits: np.ndarray, state: np.ndarray, prices: Prices, one: int, two: int) -> float:
    """The edge rate of two trees made one."""
    count = 0
    for word in range(bits.shape[1]):
        count += ones(bits[one, word] | bits[two, word])
    hits, sums = state[one, HITS] + state[two, HITS], state[one, SUMS] + state[two, SUMS]
    lowest = max(state[one, EDGES], state[two, EDGES])
    rate = union_rate(prices.scale, prices.exact, float(count), hits, sums)
    return float(max(lowest, rate))


@compiled
def keep_best(ids: Any, values: Any, row: int, size: int, name: int, value: float) -> int:
    """Insert into a row sorted by falling value, then by name; gives its size."""
    if size == ids.shape[1]:
        if value <= values[row, size - 1]:
            return size
        size -= 1
    at = size
    while at > 0 and (
        values[row, at - 1] < value or (values[row, at - 1] == value and ids[row, at - 1] > name)
    ):
        ids[row, at], values[row, at] = ids[row, at - 1], values[row, at - 1]
        at -= 1
    ids[row, at], values[row, at] = name, value
    return size + 1


@compiled
def listed(ids: np.ndarray, row: int, size: int, name: int) -> bool:
    """Whether a name is among the first ones of a row."""
    found = False
    for each in range(size):
        found |= ids[row, each] == name
    return found


@compiled
def find(root: np.ndarray, group: int) -> int:
    """The tree that a group is in."""
    while root[group] != group:
        root[group] = root[root[group]]
        group = root[group]
    return group


@compiled
def consider(
    bits: Any, state: Any, prices: Prices, tree: int, other: int, ids: Any, values: Any, size: int,
    savings: Any,
) -> int:  # fmt: skip
    """Price a pair and put it on the tree's list, unless even a perfect fit were too little.

    `savings` has the pairs of some trees by their slots, in column SLOT of their state: a pair
    is counted once, until one of its trees changes.
    """
    before = state[tree, COST] + state[other, COST]
    at_best = max(state[tree, EDGES], state[other, EDGES])
    bound = before - merged_cost(state, prices, tree, other, at_best)
    if bound <= 0 or (size == ids.shape[1] and bound <= values[tree, size - 1]):
        return size
    one, two = int(state[tree, SLOT]), int(state[other, SLOT])
    known = one >= 0 and two >= 0
    saving = savings[one, two] if known else np.nan
    if np.isnan(saving):
        edges = union_edges(bits, state, prices, tree, other)
        saving = before - merged_cost(state, prices, tree, other, edges)
        if known:
            savings[one, two] = savings[two, one] = saving
    # Less than rounding could explain is no saving.
    if saving <= 1e-12 * before:
        return size
    return keep_best(ids, values, tree, size, other, saving)


@compiled
def list_all(
    bits: Any, state: Any, prices: Prices, tree: int, alive: Any, start: int, count: int,
    ids: Any, values: Any, savings: Any,
) -> Any:  # fmt: skip
    """List the best partners of a tree among all; gives how many there are."""
    size: Any = np.int64(0)  # of this type, or what takes it is compiled for the constant, too
    for each in range(start, count):
        if alive[each] != tree:
            size = consider(bits, state, prices, tree, alive[each], ids, values, size, savings)
    return size


def _bound_savings(
    row: Any, prices: Prices, edges: Any, counts: Any, longest: Any, costs: Any, bounds: Any
) -> None:
    """What a tree would save with each other one by chance, or a little more.

    It takes no logarithm, and no division is checked, so that the loop runs over several trees
    at a time.
    """
    technique, per_tree, free = prices.technique, prices.per_tree, prices.free
    own, own_count, own_longest = row[EDGES], row[COUNT], row[LONGEST]
    # Ω of SlickDeque (Non-Inv) grows by one a window, and with the partials of the longest.
    grown = quick_omega(np.int64(4), own, own_count, 0.0, 0.0, own_longest)
    for each in range(len(bounds)):
        other = edges[each]
        joint = max(own, other, own + other - own * other)
        partials = max(1.0, joint * max(own_longest, longest[each]))
        ratio = (own_count + counts[each]) / partials
        # exp(x) is above the first terms of its series, so 1 - exp(-x) is above r / (1 + r).
        r = ratio * (1 + ratio * (1 / 2 + ratio * (1 / 6 + ratio * (1 / 24 + ratio * (1 / 120)))))
        least = 2.0 * max(1.0, partials * (r / (1.0 + r)))
        if technique == 4:
            least = grown + counts[each]
        cost = per_tree + joint * (least - free)
        bounds[each] = costs[each] - cost + SLACK * (costs[each] + joint * least)


bound_savings: Any = compiled(_bound_savings, error_model="numpy")


@compiled
def list_likely(
    bits: Any, state: Any, prices: Prices, tree: int, alive: Any, low: int, high: int,
    near: Any, root: Any, ids: Any, values: Any, cheap: Any, chances: Any, savings: Any,
    columns: Any,
) -> Any:  # fmt: skip
    """List the best partners of a tree among the likely ones; gives how many there are.

    Likely are those that share edges by their slides, and those from place `low` to `high` that
    would be cheapest if edges fell together by chance only. `columns` has edges, windows, longest
    ranges and costs of the trees that are alive, and room for bounds.
    """
    row: Any = np.int64(0)
    found = size = row
    bounded = prices.technique > 2
    bounds = columns[4, low:high]
    if bounded:
        bound_savings(
            state[tree], prices, columns[0, low:high], columns[1, low:high], columns[2, low:high],
            columns[3, low:high], bounds,
        )  # fmt: skip
    for each in range(low, high):
        if bounded and found == cheap.shape[1] and bounds[each - low] <= chances[0, found - 1]:
            continue
        other = alive[each]
        if other != tree:
            one, two = state[tree, EDGES], state[other, EDGES]
            edges = max(one, two, one + two - one * two)
            saving = state[other, COST] - merged_cost(state, prices, tree, other, edges)
            found = keep_best(cheap, chances, row, found, other, saving)
    for each in range(found):
        size = consider(bits, state, prices, tree, cheap[0, each], ids, values, size, savings)
    for each in range(near.shape[1]):
        other = find(root, near[tree, each]) if near[tree, each] >= 0 else tree
        near[tree, each] = other if other != tree else -1
        known = listed(ids, tree, size, other) or listed(cheap, row, found, other)
        if other != tree and not known:
            size = consider(bits, state, prices, tree, other, ids, values, size, savings)
    return size
