"""Many groups woven into trees, the pair that saves most first; imports compiled loops."""

from __future__ import annotations

from math import gcd, inf
from typing import Any

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Floats, Ints, Words
from muntin.planner.costs.omega import TECHNIQUES, Technique
from muntin.planner.trees import merges as merging
from muntin.planner.trees.groups import Groups
from muntin.planner.trees.merges import (
    COST,
    COUNT,
    EDGES,
    LONGEST,
    SLOT,
    Prices,
    cost_of,
    list_all,
    list_likely,
    listed,
    merged_cost,
    union_edges,
)
from muntin.planner.trees.refinement import refine
from muntin.planner.trees.sample import SEED, WORD, Sample, in_units

# Partners on a tree's list, and trees up to which every pair is priced; of more trees, so many
# are looked through for the cheapest partners of each.
PARTNERS = 16
BREADTH = 512
# Words of the sample that pairs are priced by. Costs of whole plans differ by less than the
# sample's own error from those of all words, which take many times as long to put together.
WORDS = 256
# Slides whose quotient is made of numbers up to this are relatives: they share at least one
# edge in so many. A tree remembers so many relatives.
QUOTIENT = 16
RELATIVES = 32
# How far apart the stretches begin that trees look through for partners: a prime.
STRIDE = 7919


def weave_groups(
    groups: Groups,
    sample: Sample,
    bits: Words,
    technique: Technique,
    per_tree: float,
    free: float = 0.0,
    limit: float = inf,
) -> tuple[list[Ints], list[float]]:
    """Merge groups while a merge makes the plan cheaper; gives trees and their edge rates.

    Trees come in order of their first group. Pairs are priced by some of the positions, the
    trees that are found by all.

    Args:
        groups: What to merge.
        sample: The positions that edge rates are counted on.
        bits: The groups' edges among them.
        technique: What computes the final answers.
        per_tree: What a tree costs, whatever is in it, per time unit.
        free: Operations per edge that a tree is spared.
        limit: A cost per time unit past which trees are not refined.
    """
    step = max(1, bits.shape[1] // WORDS)
    thin = bits[:, ::step].copy()
    costs = (float(per_tree * sample.unit), float(free))
    scale = sample.scale * bits.shape[1] / thin.shape[1]
    exact = sample.whole > 0 and step == 1
    prices = merging.Prices(TECHNIQUES.index(technique), *costs, scale, exact)
    state = _state(groups, sample.unit, thin)
    alone = (thin.copy(), state.copy()) if len(groups) > BREADTH else None
    near, alive = np.full((len(groups), 1), -1), np.arange(len(groups))
    if len(groups) > BREADTH:
        # Trees look for partners in a stretch of all, which is to hold trees of every kind.
        near, alive = _relatives(groups.period), np.random.default_rng(SEED).permutation(alive)
    root = weave(thin, state, near, alive, prices, PARTNERS, BREADTH)
    while np.any(root[root] != root):
        root = root[root]
    roots, tree = np.unique(root, return_inverse=True)
    if alone is not None and state[roots, COST].sum() <= limit * sample.unit:
        _, tree = np.unique(refine(tree, *alone, prices), return_inverse=True)
    order = np.argsort(tree, kind="stable")
    trees = np.split(order, np.cumsum(np.bincount(tree))[:-1])
    return trees, _rates(groups, sample, bits, trees)


def _rates(groups: Groups, sample: Sample, bits: Words, trees: list[Ints]) -> list[float]:
    """The edge rates of trees, by the whole sample."""
    hits = np.bitwise_count(bits).sum(axis=1)
    counts = (int(np.bitwise_count(union_of(bits, members)).sum()) for members in trees)
    return [
        sample.rate(count, int(hits[members].sum()), float(groups.rates[members].sum()))
        for count, members in zip(counts, trees, strict=True)
    ]


def _state(groups: Groups, unit: int, bits: Words) -> Floats:
    """The columns of the merge but for costs, with time counted in units of the sample."""
    statistics = groups.statistics
    statistics[:, 2] -= statistics[:, 0] * np.log2(unit)
    statistics[:, 3] /= unit
    state = np.empty((len(groups), merging.COLUMNS))
    state[:, merging.SUMS] = state[:, merging.EDGES] = groups.rates * unit
    state[:, merging.HITS] = np.bitwise_count(bits).sum(axis=1)
    state[:, merging.COUNT : merging.LONGEST + 1] = statistics
    return state


def mark_many(sample: Sample, groups: Groups) -> Words:
    """As `sample.mark`, in a compiled loop where positions are runs."""
    if not sample.runs:
        return sample.mark(groups)
    period, first, second = in_units(groups, sample.origin, sample.unit)
    bits = np.zeros((len(groups), len(sample.positions)), dtype=np.uint64)
    order = np.argsort(period, kind="stable")
    mark_runs(bits, order, period, first, second, sample.positions)
    if sample.whole % WORD:
        bits[:, -1] &= np.uint64(2 ** (sample.whole % WORD) - 1)
    return bits


@compiled
def mark_runs(bits: Any, order: Any, period: Any, first: Any, second: Any, bases: Any) -> None:
    """Mark the edges of groups in runs of 64 positions; groups are given by rising period."""
    rests = np.zeros(len(bases), np.int64)
    known = 0
    for group in order:
        step = period[group]
        if step != known:
            known = step
            for word in range(len(bases)):
                rests[word] = bases[word] % step
        for phase in (first[group], second[group]):
            if phase < 0:
                continue
            for word in range(len(bases)):
                ahead = phase - rests[word]
                if ahead < 0:
                    ahead += step
                while ahead < WORD:
                    bits[group, word] |= np.uint64(1) << np.uint64(ahead)
                    ahead += step


def _relatives(period: Ints) -> Ints:
    """Per group those whose slides share most edges with its own, nearest first; -1 for none."""
    near = np.full((len(period), RELATIVES), -1, dtype=np.int64)
    filled = np.zeros(len(period), dtype=np.int64)
    order = np.argsort(period, kind="stable")
    ordered = period[order]
    for upper, lower in _quotients():
        related = np.flatnonzero((period % lower == 0) & (filled < RELATIVES))
        wanted = period[related] // lower * upper
        place = np.minimum(np.searchsorted(ordered, wanted), len(order) - 1)
        fits = (ordered[place] == wanted) & (order[place] != related)
        rows = related[fits]
        near[rows, filled[rows]] = order[place[fits]]
        filled[rows] += 1
    return near


def _quotients() -> list[tuple[int, int]]:
    pairs = [
        (upper, lower)
        for upper in range(1, QUOTIENT + 1)
        for lower in range(1, QUOTIENT + 1)
        if gcd(upper, lower) == 1
    ]
    return sorted(pairs, key=lambda pair: (pair[0] * pair[1], pair))


# Savings of so many trees have their highest remembered.
BLOCK = 64


@compiled
def merge(bits: Any, state: Any, prices: Prices, left: int, right: int) -> None:
    """Put the right tree into the left one."""
    edges = union_edges(bits, state, prices, left, right)
    cost = merged_cost(state, prices, left, right, edges)
    longest = max(state[left, LONGEST], state[right, LONGEST])
    for column in range(SLOT):
        state[left, column] += state[right, column]
    state[left, EDGES], state[left, COST], state[left, LONGEST] = edges, cost, longest
    for word in range(bits.shape[1]):
        bits[left, word] |= bits[right, word]


@compiled
def union_of(bits: Any, members: Any) -> Any:
    """The positions that are edges of any of some groups."""
    found = np.zeros(bits.shape[1], np.uint64)
    for member in members:
        for word in range(bits.shape[1]):
            found[word] |= bits[member, word]
    return found


@compiled
def weave_near(near: np.ndarray, left: int, right: int, spare: np.ndarray) -> None:
    """Keep the nearest of two trees' relatives, taking turns."""
    row: Any = np.int64(0)
    size = row
    for each in range(near.shape[1]):
        for tree in (left, right):
            name = near[tree, each]
            if name >= 0 and size < spare.shape[1] and not listed(spare, row, size, name):
                spare[0, size] = name
                size += 1
    for each in range(near.shape[1]):
        near[left, each] = spare[0, each] if each < size else -1


@compiled
def write_columns(columns: Any, place: int, row: Any) -> None:
    """Put what pairs are bounded by side by side: edges, windows, longest range and cost."""
    columns[0, place], columns[1, place] = row[EDGES], row[COUNT]
    columns[2, place], columns[3, place] = row[LONGEST], row[COST]


@compiled
def highest(best: np.ndarray, tops: np.ndarray) -> int:
    """The first place of the highest value, of which `tops` has the one of each block."""
    block = int(np.argmax(tops))
    low = block * BLOCK
    return low + int(np.argmax(best[low : low + BLOCK]))


@compiled
def set_best(best: Any, tops: Any, place: int, value: float) -> None:
    """Set a value, and the highest one of its block."""
    block = place // BLOCK
    old, best[place] = best[place], value
    if value >= tops[block]:
        tops[block] = value
    elif old == tops[block]:
        tops[block] = best[block * BLOCK : (block + 1) * BLOCK].max()


@compiled
def take_slots(state: Any, alive: Any, count: int) -> None:
    """Give every tree a slot: they are few enough to remember the savings of all pairs."""
    for each in range(count):
        state[alive[each], SLOT] = each


@compiled
def forget(savings: Any, slot: int) -> None:
    """Forget what pairs with a tree saved, since it is another one."""
    if slot >= 0:
        savings[slot, :] = np.nan
        savings[:, slot] = np.nan


@compiled
def weave(  # noqa: PLR0915 - one loop, whose arrays stay local
    bits: np.ndarray,
    state: np.ndarray,
    near: np.ndarray,
    alive: np.ndarray,
    prices: Prices,
    partners: int,
    breadth: int,
) -> np.ndarray:
    """Merge trees in place until no pair saves; gives the tree above each."""
    total = len(state)
    ids = np.zeros((total, partners), np.int64)
    values = np.zeros((total, partners), np.float64)
    seen = np.zeros((total, partners), np.int64)
    cheap, chances = np.zeros((1, partners), np.int64), np.zeros((1, partners), np.float64)
    spare = np.zeros((1, near.shape[1]), np.int64)
    sizes, heads = np.zeros(total, np.int64), np.zeros(total, np.int64)
    version = np.zeros(total, np.int64)
    best, tops = np.zeros(total, np.float64), np.zeros(total // BLOCK + 1, np.float64)
    place, root = np.zeros(total, np.int64), np.arange(total)
    slots = min(total, breadth)
    savings = np.full((slots, slots), np.nan)
    columns = np.empty((5, total), np.float64)
    for each in range(total):
        group = alive[each]
        place[group] = each
        state[group, COST] = cost_of(state[group], prices)
        write_columns(columns, each, state[group])
        state[group, SLOT] = each if total <= breadth else -1
    # Written out, or numba would compile what takes them once more for the constant 0.
    count, prepared = total, 0
    tree: Any = np.int64(0)
    start: Any = np.int64(0)
    fresh = True
    while True:
        if fresh:
            if count - start <= breadth:
                size = list_all(
                    bits, state, prices, tree, alive, start, count, ids, values, savings
                )
            else:
                low = tree * STRIDE % (count - breadth + 1)
                size = list_likely(
                    bits, state, prices, tree, alive, low, low + breadth, near, root, ids, values,
                    cheap, chances, savings, columns,
                )  # fmt: skip
            for each in range(size):
                seen[tree, each] = version[ids[tree, each]]
            sizes[tree], heads[tree] = size, 0
            set_best(best, tops, tree, values[tree, 0] if size else 0.0)
        if prepared < total - 1:
            prepared += 1
            tree = prepared
            # Pairs with earlier trees are on the lists of those, if all were priced.
            start = tree if total <= breadth else np.int64(0)
            continue
        start = np.int64(0)
        tree = highest(best, tops)
        if best[tree] <= 0.0:
            return root
        head = heads[tree]
        other = ids[tree, head]
        if version[other] == seen[tree, head]:
            left, right = min(tree, other), max(tree, other)
            merge(bits, state, prices, left, right)
            weave_near(near, left, right, spare)
            version[left] += 1
            version[right], root[right] = -1, left
            set_best(best, tops, right, 0.0)
            last = alive[count - 1]
            alive[place[right]], place[last] = last, place[right]
            columns[:4, place[right]] = columns[:4, count - 1]
            write_columns(columns, place[left], state[left])
            count -= 1
            if count == slots:
                take_slots(state, alive, count)
            forget(savings, int(state[left, SLOT]))
            tree, fresh = left, True
            continue
        while head < sizes[tree] and version[ids[tree, head]] != seen[tree, head]:
            head += 1
        heads[tree] = head
        fresh = head == partners
        set_best(best, tops, tree, values[tree, head] if head < sizes[tree] else 0.0)
