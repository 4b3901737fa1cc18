"""The compiled loop of the greedy merge, over the prices of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from muntin.compiled import compiled
from muntin.optimizer.weaving_merge_kernels import (
    COLUMNS,
    COST,
    EDGES,
    LONGEST,
    Prices,
    list_all,
    list_likely,
    listed,
    merged_cost,
    union_edges,
)


@compiled
def merge(bits: Any, state: Any, prices: Prices, left: int, right: int) -> None:
    """Put the right tree into the left one."""
    edges = union_edges(bits, state, prices, left, right)
    cost = merged_cost(state, prices, left, right, edges)
    longest = max(state[left, LONGEST], state[right, LONGEST])
    for column in range(COLUMNS):
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
def weave(
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
    best, version = np.zeros(total, np.float64), np.zeros(total, np.int64)
    alive, place, root = np.arange(total), np.arange(total), np.arange(total)
    count, tree, start, prepared = total, 0, 0, 0
    fresh = True
    while True:
        if fresh:
            if count - start <= breadth:
                size = list_all(bits, state, prices, tree, alive, start, count, ids, values)
            else:
                size = list_likely(
                    bits, state, prices, tree, alive, count, near, root, ids, values, cheap, chances
                )
            for each in range(size):
                seen[tree, each] = version[ids[tree, each]]
            sizes[tree], heads[tree] = size, 0
            best[tree] = values[tree, 0] if size else 0.0
        if prepared < total - 1:
            prepared += 1
            tree = prepared
            # Pairs with earlier trees are on the lists of those, if all were priced.
            start = tree if total <= breadth else 0
            continue
        start = 0
        tree = int(np.argmax(best))
        if best[tree] <= 0.0:
            return root
        head = heads[tree]
        other = ids[tree, head]
        if version[other] == seen[tree, head]:
            left, right = min(tree, other), max(tree, other)
            merge(bits, state, prices, left, right)
            weave_near(near, left, right, spare)
            version[left] += 1
            version[right], root[right], best[right] = -1, left, 0.0
            last = alive[count - 1]
            alive[place[right]], place[last] = last, place[right]
            count -= 1
            tree, fresh = left, True
            continue
        while head < sizes[tree] and version[ids[tree, head]] != seen[tree, head]:
            head += 1
        heads[tree] = head
        fresh = head == partners
        best[tree] = values[tree, head] if head < sizes[tree] else 0.0
