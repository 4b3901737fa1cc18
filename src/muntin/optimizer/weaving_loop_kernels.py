"""The compiled loop of the greedy merge, over the prices of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from muntin.compiled import compiled
from muntin.optimizer.weaving_merge_kernels import (
    COST,
    COUNT,
    EDGES,
    LONGEST,
    SLOT,
    Prices,
    list_all,
    list_likely,
    listed,
    merged_cost,
    union_edges,
)

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
def weave_near(near: np.ndarray, left: int, right: int, spare: np.ndarray) -> None:
    """Keep the nearest of two trees' relatives, taking turns."""
    size = 0
    for each in range(near.shape[1]):
        for tree in (left, right):
            name = near[tree, each]
            if name >= 0 and size < spare.shape[1] and not listed(spare, 0, size, name):
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
    alive, place, root = np.arange(total), np.arange(total), np.arange(total)
    slots = min(total, breadth)
    savings = np.full((slots, slots), np.nan)
    columns = np.empty((5, total), np.float64)
    for each in range(total):
        write_columns(columns, each, state[each])
        state[each, SLOT] = each if total <= breadth else -1
    count, tree, start, prepared = total, 0, 0, 0
    fresh = True
    while True:
        if fresh:
            if count - start <= breadth:
                size = list_all(
                    bits, state, prices, tree, alive, start, count, ids, values, savings
                )
            else:
                size = list_likely(
                    bits, state, prices, tree, alive, count, near, root, ids, values, cheap,
                    chances, savings, columns,
                )  # fmt: skip
            for each in range(size):
                seen[tree, each] = version[ids[tree, each]]
            sizes[tree], heads[tree] = size, 0
            set_best(best, tops, tree, values[tree, 0] if size else 0.0)
        if prepared < total - 1:
            prepared += 1
            tree = prepared
            # Pairs with earlier trees are on the lists of those, if all were priced.
            start = tree if total <= breadth else 0
            continue
        start = 0
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
