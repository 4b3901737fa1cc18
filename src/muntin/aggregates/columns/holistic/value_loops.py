"""Compiled loops over sorted occurrences of windows: distinct values, k-th ones, frequent ones."""

from __future__ import annotations

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.aggregates.columns.holistic.rows import Ranges

_BITS = 8
_BLOCK = 1 << _BITS


@compiled
def sum_distinct(
    ranges: Ranges, ranks: Ints, lows: Ints, highs: Ints, order: Ints, numbers: Ints
) -> Ints:
    """For each window the sum of the numbers of its different values.

    Cells are gone through in order. A mark of each value stands in the last cell that has it, so
    that a window which ends there holds as many values as there are marks in it. `order` sorts
    windows by their ends.
    """
    firsts, begins, ends = ranges.firsts, ranges.lows, ranges.highs
    width, cells = numbers.shape[1], firsts.size - 1
    out = np.zeros((lows.size, width), np.int64)
    last = np.full(numbers.shape[0], -1, np.int64)
    marks = np.zeros((cells, width), np.int64)
    blocks = np.zeros(((cells >> _BITS) + 1, width), np.int64)
    at = cells
    for window in range(lows.size):
        if highs[window] > lows[window]:
            at = min(at, lows[window])
    for window in order:
        low, high = lows[window], highs[window]
        while at < high:
            for place in range(firsts[at], firsts[at + 1]):
                for i in range(begins[place], ends[place]):
                    rank = ranks[i]
                    before = last[rank]
                    for k in range(width):
                        if before >= 0:
                            marks[before, k] -= numbers[rank, k]
                            blocks[before >> _BITS, k] -= numbers[rank, k]
                        marks[at, k] += numbers[rank, k]
                        blocks[at >> _BITS, k] += numbers[rank, k]
                    last[rank] = at
            at += 1
        first, final = (low + _BLOCK - 1) >> _BITS, high >> _BITS
        for k in range(width):
            total = np.int64(0)
            if first >= final:
                for cell in range(low, high):
                    total += marks[cell, k]
            else:
                for cell in range(low, first << _BITS):
                    total += marks[cell, k]
                for block in range(first, final):
                    total += blocks[block, k]
                for cell in range(final << _BITS, high):
                    total += marks[cell, k]
            out[window, k] = total
    return out


@compiled
def count_ascending(ranges: Ranges, codes: Ints, lows: Ints, highs: Ints) -> tuple[Ints, Ints]:
    """How many different codes windows have, and the least; -1 of them where that is not plain.

    It is where a window has one range of codes in order, as it does in a single cell.
    """
    counts, leasts = np.zeros(lows.size, np.int64), np.zeros(lows.size, np.int64)
    for window in range(lows.size):
        first, last = ranges.firsts[lows[window]], ranges.firsts[highs[window]]
        while first < last and ranges.lows[first] == ranges.highs[first]:
            first += 1
        while first < last and ranges.lows[last - 1] == ranges.highs[last - 1]:
            last -= 1
        if first == last:
            continue
        low, high = ranges.lows[first], ranges.highs[first]
        counts[window], leasts[window] = high - low, codes[low]
        if last > first + 1:
            counts[window] = -1
        for i in range(low + 1, high if last == first + 1 else low):
            if codes[i] <= codes[i - 1]:
                counts[window] = -1
                break
    return counts, leasts


@compiled
def count_distinct(
    ranges: Ranges, ranks: Ints, lows: Ints, highs: Ints, order: Ints, size: int
) -> Ints:
    """How many different values each window has: as `sum_distinct` of ones, in less time."""
    firsts, begins, ends = ranges.firsts, ranges.lows, ranges.highs
    cells = firsts.size - 1
    out = np.zeros(lows.size, np.int64)
    last = np.full(size, -1, np.int32)
    marks = np.zeros(cells, np.int32)
    blocks = np.zeros((cells >> _BITS) + 1, np.int64)
    at = cells
    for window in range(lows.size):
        if highs[window] > lows[window]:
            at = min(at, lows[window])
    for window in order:
        low, high = lows[window], highs[window]
        while at < high:
            fresh = 0
            for place in range(firsts[at], firsts[at + 1]):
                for i in range(begins[place], ends[place]):
                    rank = ranks[i]
                    before = last[rank]
                    if before != at:
                        if before >= 0:
                            marks[before] -= 1
                            blocks[before >> _BITS] -= 1
                        last[rank] = at
                        fresh += 1
            marks[at] += fresh
            blocks[at >> _BITS] += fresh
            at += 1
        first, final = (low + _BLOCK - 1) >> _BITS, high >> _BITS
        total = np.int64(0)
        if first >= final:
            for cell in range(low, high):
                total += marks[cell]
        else:
            for cell in range(low, first << _BITS):
                total += marks[cell]
            for block in range(first, final):
                total += blocks[block]
            for cell in range(final << _BITS, high):
                total += marks[cell]
        out[window] = total
    return out


@compiled
def select_ranks(
    ranks: Ints, weights: Ints, levels: int, begins: Ints, ends: Ints, places: Ints
) -> Ints:
    """For each window the rank at a place among its sorted values.

    Each level splits the ranks by one bit, from the highest on: those without it come first, in
    the order they had, and so do the windows' bounds. Begins, ends and places are used up.
    """
    size = ranks.size
    current, following = ranks.copy(), np.empty(size, np.int64)
    held, after = weights.copy(), np.empty(size, np.int64)
    before, lighter = np.zeros(size + 1, np.int64), np.zeros(size + 1, np.int64)
    found = np.zeros(begins.size, np.int64)
    for level in range(levels - 1, -1, -1):
        zeros = total = np.int64(0)
        for i in range(size):
            clear = 1 - ((current[i] >> level) & 1)
            zeros += clear
            total += held[i] * clear
            before[i + 1], lighter[i + 1] = zeros, total
        for window in range(begins.size):
            begin, end = begins[window], ends[window]
            if begin >= end:
                continue
            low, high = before[begin], before[end]
            less = lighter[end] - lighter[begin]
            if places[window] < less:
                begins[window], ends[window] = low, high
            else:
                places[window] -= less
                found[window] |= np.int64(1) << level
                begins[window], ends[window] = zeros + begin - low, zeros + end - high
        for i in range(size):
            to = zeros + i - before[i] if (current[i] >> level) & 1 else before[i]
            following[to], after[to] = current[i], held[i]
        current, following = following, current
        held, after = after, held
    return found


@compiled
def heavy_ranks(
    ranks: Ints, weights: Ints, levels: int, begins: Ints, ends: Ints, totals: Ints, floors: Ints
) -> tuple[Ints, Ints, Ints]:
    """The values that occur as often as each window's floor says: windows, ranks and numbers.

    As in `select_ranks`, bit by bit; of the ranks that begin with the same bits, only those are
    followed that together occur often enough, which are few. In order of window and rank.
    """
    size = ranks.size
    current, following = ranks.copy(), np.empty(size, np.int64)
    held, after = weights.copy(), np.empty(size, np.int64)
    before, lighter = np.zeros(size + 1, np.int64), np.zeros(size + 1, np.int64)
    windows = np.flatnonzero((totals >= floors) & (ends > begins))
    nodes = np.empty((windows.size, 4), np.int64)
    for i in range(windows.size):
        window = windows[i]
        nodes[i, 0], nodes[i, 1] = begins[window], ends[window]
        nodes[i, 2], nodes[i, 3] = totals[window], 0
    for level in range(levels - 1, -1, -1):
        zeros = total = np.int64(0)
        for i in range(size):
            clear = 1 - ((current[i] >> level) & 1)
            zeros += clear
            total += held[i] * clear
            before[i + 1], lighter[i + 1] = zeros, total
        many = 0
        for i in range(windows.size):
            floor = floors[windows[i]]
            less = lighter[nodes[i, 1]] - lighter[nodes[i, 0]]
            many += (less >= floor) + (nodes[i, 2] - less >= floor)
        owners, children = np.empty(many, np.int64), np.empty((many, 4), np.int64)
        at = 0
        for i in range(windows.size):
            begin, end, whole, rank = nodes[i]
            floor = floors[windows[i]]
            less = lighter[end] - lighter[begin]
            low, high = before[begin], before[end]
            if less >= floor:
                owners[at] = windows[i]
                children[at, 0], children[at, 1] = low, high
                children[at, 2], children[at, 3] = less, rank
                at += 1
            if whole - less >= floor:
                owners[at] = windows[i]
                children[at, 0], children[at, 1] = zeros + begin - low, zeros + end - high
                children[at, 2], children[at, 3] = whole - less, rank | (np.int64(1) << level)
                at += 1
        windows, nodes = owners, children
        for i in range(size):
            to = zeros + i - before[i] if (current[i] >> level) & 1 else before[i]
            following[to], after[to] = current[i], held[i]
        current, following = following, current
        held, after = after, held
    return windows, nodes[:, 3].copy(), nodes[:, 2].copy()


@compiled
def tally(
    ranks: Ints, weights: Ints, begins: Ints, ends: Ints, size: int, floors: Ints, offsets: Ints
) -> tuple[Ints, Ints, Ints]:
    """The most frequent values of each window, as many as there is room for from its offset on."""
    counts = np.zeros(size, np.int64)
    touched = np.empty(size, np.int64)
    best, numbers = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
    sizes = np.zeros(begins.size, np.int64)
    for window in range(begins.size):
        many = 0
        for i in range(begins[window], ends[window]):
            rank = ranks[i]
            if counts[rank] == 0:
                touched[many] = rank
                many += 1
            counts[rank] += weights[i]
        first, room = offsets[window], offsets[window + 1] - offsets[window]
        held = 0
        for i in range(many):
            rank = touched[i]
            count = counts[rank]
            counts[rank] = 0
            if count < floors[window]:
                continue
            if held == room:
                last = first + held - 1
                worse = count < numbers[last] or (count == numbers[last] and rank > best[last])
                if room == 0 or worse:
                    continue
                held -= 1
            at = first + held
            while at > first and (
                numbers[at - 1] < count or (numbers[at - 1] == count and best[at - 1] > rank)
            ):
                best[at], numbers[at] = best[at - 1], numbers[at - 1]
                at -= 1
            best[at], numbers[at] = rank, count
            held += 1
        sizes[window] = held
    return best, numbers, sizes


@compiled
def list_distinct(ranks: Ints, begins: Ints, ends: Ints, size: int, offsets: Ints) -> Ints:
    """The different values of each window, in order, from its offset on."""
    seen = np.full(size, -1, np.int64)
    out = np.empty(offsets[-1], np.int64)
    for window in range(begins.size):
        at = offsets[window]
        for i in range(begins[window], ends[window]):
            if seen[ranks[i]] != window:
                seen[ranks[i]] = window
                out[at] = ranks[i]
                at += 1
        out[offsets[window] : at].sort()
    return out
