"""Ranks of values in order of time, one bit at a time: the k-th value of any stretch of them.

A wavelet matrix of a block of occurrences holds the bits of their ranks, from the highest on; each
level sorts the ranks by its bit and keeps their order otherwise. Windows span several blocks, each
with values of its own, so a value is looked for by narrowing down what can be it in all of them.

Claude, Navarro, Ordóñez: The Wavelet Matrix, Information Systems 47, 2015.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.engine.slices.stretches import load_int64

# What kernels know of a block: a row of numbers and of addresses of arrays.
KEYS, ENTRIES, OFFSETS, CODES, DISTINCT, WIDTH, BITS, WORDS = range(8)
SAMPLES, ZEROS, LEVELS, WEIGHTS, SIZE, FIRST, SPAN = range(8, 15)
FIELDS = 15

_1, _2, _4, _56, _63 = (np.uint64(k) for k in (1, 2, 4, 56, 63))
_PAIRS = np.uint64(0x3333333333333333)
_ALTERNATE = np.uint64(0x5555555555555555)
_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_EACH = np.uint64(0x0101010101010101)


class Matrix(NamedTuple):
    """Ranks of a block, level by level, the highest bit first.

    ``bits`` has a word for 64 ranks, ``samples`` how many bits are set before each word, ``zeros``
    how many are clear in all. Row l of ``weights`` adds up the weights of the ranks whose bit is
    clear, the last row those of all as they came; it is empty where all weights are 1.
    """

    bits: Ints
    samples: Ints
    zeros: Ints
    weights: Ints


def matrix(ranks: Ints, weights: Ints, distinct: int) -> Matrix:
    """The matrix of ranks below a number."""
    levels = max(int(distinct - 1).bit_length(), 1)
    plain = not weights.size or bool((weights == 1).all())
    held = np.empty(0, np.int64) if plain else weights
    return Matrix(*_built(ranks, held, levels))


@compiled
def _built(ranks: Ints, weights: Ints, levels: int) -> tuple[Ints, Ints, Ints, Ints]:
    size = ranks.size
    words = (size >> 6) + 1
    bits = np.zeros((levels, words), np.uint64)
    samples = np.zeros((levels, words), np.int64)
    zeros = np.zeros(levels, np.int64)
    totals = np.zeros((levels + 1, size + 1) if weights.size else (0, 0), np.int64)
    current, following = ranks.copy(), np.empty(size, np.int64)
    held, after = weights.copy(), np.empty(weights.size, np.int64)
    for i in range(weights.size):
        totals[levels, i + 1] = totals[levels, i] + weights[i]
    for row in range(levels):
        level = levels - 1 - row
        clear, ones = 0, 0
        for i in range(size):
            if i & 63 == 0:
                samples[row, i >> 6] = ones
            bit = (current[i] >> level) & 1
            ones += bit
            if bit:
                bits[row, i >> 6] |= _1 << np.uint64(i & 63)
            if weights.size:
                totals[row, i + 1] = totals[row, i] + held[i] * (1 - bit)
        if size & 63 == 0:
            samples[row, size >> 6] = ones
        zeros[row] = size - ones
        to_one = zeros[row]
        for i in range(size):
            if (current[i] >> level) & 1:
                to = to_one
                to_one += 1
            else:
                to = clear
                clear += 1
            following[to] = current[i]
            if weights.size:
                after[to] = held[i]
        current, following = following, current
        held, after = after, held
    return bits.view(np.int64), samples, zeros, totals


@compiled
def _ones(word: np.uint64) -> np.int64:
    word = word - ((word >> _1) & _ALTERNATE)
    word = (word & _PAIRS) + ((word >> _2) & _PAIRS)
    word = (word + (word >> _4)) & _NIBBLES
    return np.int64((word * _EACH) >> _56)


@compiled
def _clear_before(table: Ints, block: int, row: int, at: int) -> int:
    """How many ranks before a place have a clear bit."""
    word = row * table[block, WORDS] + (at >> 6)
    bits = np.uint64(load_int64(table[block, BITS], word))
    mask = (_1 << np.uint64(at & 63)) - _1
    found: int = at - load_int64(table[block, SAMPLES], word) - _ones(bits & mask)
    return found


@compiled
def total_between(table: Ints, block: int, begin: int, end: int) -> int:
    """How many values there are, with repeats."""
    if table[block, WEIGHTS] == 0:
        return end - begin
    row = table[block, LEVELS] * (table[block, SIZE] + 1)
    weights = table[block, WEIGHTS]
    total: int = load_int64(weights, row + end) - load_int64(weights, row + begin)
    return total


@compiled
def split(
    table: Ints, block: int, row: int, begin: int, end: int
) -> tuple[int, int, int, int, int]:
    """Where ranks with a clear bit go, and those with a set one; and how many are clear."""
    low, high = _clear_before(table, block, row, begin), _clear_before(table, block, row, end)
    weight = high - low
    if table[block, WEIGHTS] != 0:
        at = row * (table[block, SIZE] + 1)
        weights = table[block, WEIGHTS]
        weight = load_int64(weights, at + end) - load_int64(weights, at + begin)
    zeros = load_int64(table[block, ZEROS], row)
    return low, high, zeros + begin - low, zeros + end - high, weight


@compiled
def _rank_at(table: Ints, block: int, begin: int, end: int, place: int) -> int:
    """The rank at a place among the sorted ones of a stretch."""
    rank, levels = 0, table[block, LEVELS]
    for row in range(levels):
        low, high, to, until, weight = split(table, block, row, begin, end)
        if place < weight:
            begin, end = low, high
        else:
            place -= weight
            rank |= 1 << (levels - 1 - row)
            begin, end = to, until
    return rank


@compiled
def below(table: Ints, block: int, begin: int, end: int, rank: int) -> int:
    """How many values of a stretch have ranks below one."""
    levels = table[block, LEVELS]
    if rank >> levels:
        return total_between(table, block, begin, end)
    found = 0
    for row in range(levels):
        if begin == end:
            break
        low, high, to, until, weight = split(table, block, row, begin, end)
        if (rank >> (levels - 1 - row)) & 1:
            found += weight
            begin, end = to, until
        else:
            begin, end = low, high
    return found


@compiled
def compared(table: Ints, block: int, rank: int, code: Ints) -> int:
    """How a block's value compares with a code."""
    width = table[block, WIDTH]
    for k in range(width):
        own = load_int64(table[block, CODES], rank * width + k)
        if own != code[k]:
            return -1 if own < code[k] else 1
    return 0


@compiled
def lower_bound(table: Ints, block: int, low: int, high: int, code: Ints) -> int:
    """The first rank whose value is not below a code."""
    while low < high:
        middle = (low + high) >> 1
        if compared(table, block, middle, code) < 0:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def read_code(table: Ints, block: int, rank: int, code: Ints) -> None:
    """Copy the code of a rank."""
    width = table[block, WIDTH]
    for k in range(width):
        code[k] = load_int64(table[block, CODES], rank * width + k)


@compiled
def find_stretches(table: Ints, slots: Ints, lows: Ints, highs: Ints) -> tuple[Ints, Ints]:
    """Where the occurrences of each window begin and end in every block."""
    begins = np.zeros((slots.size, table.shape[0]), np.int64)
    ends = np.zeros((slots.size, table.shape[0]), np.int64)
    for row in range(slots.size):
        for block in range(table.shape[0]):
            span, first = table[block, SPAN], table[block, FIRST]
            low = min(max(lows[row] - first, 0), span)
            high = min(max(highs[row] - first, 0), span)
            if low < high:
                key = slots[row] * (span + 1)
                at = _place_of(table, block, key + low)
                until = _place_of(table, block, key + high)
                begins[row, block] = load_int64(table[block, OFFSETS], at)
                ends[row, block] = load_int64(table[block, OFFSETS], until)
    return begins, ends


@compiled
def _place_of(table: Ints, block: int, key: int) -> int:
    """The first entry of a block whose slot and position are not below a key."""
    low, high = 0, table[block, ENTRIES]
    while low < high:
        middle = (low + high) >> 1
        if load_int64(table[block, KEYS], middle) < key:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def add_totals(table: Ints, begins: Ints, ends: Ints) -> Ints:
    """How many values each window has, with repeats."""
    totals = np.zeros(begins.shape[0], np.int64)
    for row in range(begins.shape[0]):
        for block in range(table.shape[0]):
            if begins[row, block] < ends[row, block]:
                totals[row] += total_between(table, block, begins[row, block], ends[row, block])
    return totals


@compiled
def select_codes(
    table: Ints, begins: Ints, ends: Ints, windows: Ints, places: Ints, width: int
) -> Ints:
    """The code at a place among the sorted values of a window, for each pair of these.

    Of the block with the most values left the middle one is compared with all others: as many of
    them leave as are on the wrong side of it.
    """
    blocks = table.shape[0]
    out = np.zeros((windows.size, width), np.int64)
    lows, highs, before, held, ats, under, same = np.zeros((7, blocks), np.int64)
    code = np.zeros(width, np.int64)
    for i in range(windows.size):
        row, place, left = windows[i], places[i], 0
        for block in range(blocks):
            lows[block], highs[block], before[block] = 0, table[block, DISTINCT], 0
            held[block] = 0
            if begins[row, block] < ends[row, block]:
                held[block] = total_between(table, block, begins[row, block], ends[row, block])
            left += held[block]
        while left > 0:
            best = 0
            for block in range(blocks):
                if held[block] > held[best]:
                    best = block
            begin, end = begins[row, best], ends[row, best]
            if held[best] == left:
                rank = _rank_at(table, best, begin, end, before[best] + place)
                read_code(table, best, rank, code)
                break
            rank = _rank_at(table, best, begin, end, before[best] + (held[best] >> 1))
            read_code(table, best, rank, code)
            less, equal = 0, 0
            for block in range(blocks):
                if held[block] == 0:
                    continue
                begin, end = begins[row, block], ends[row, block]
                at = lower_bound(table, block, lows[block], highs[block], code)
                ats[block] = at
                under[block] = below(table, block, begin, end, at) - before[block]
                same[block] = 0
                if at < highs[block] and compared(table, block, at, code) == 0:
                    upto = below(table, block, begin, end, at + 1)
                    same[block] = upto - before[block] - under[block]
                less += under[block]
                equal += same[block]
            if less <= place < less + equal:
                break
            left = 0
            for block in range(blocks):
                if held[block] == 0:
                    continue
                if place < less:
                    highs[block], held[block] = ats[block], under[block]
                else:
                    lows[block] = ats[block] + (same[block] > 0)
                    before[block] += under[block] + same[block]
                    held[block] -= under[block] + same[block]
                left += held[block]
            if place >= less:
                place -= less + equal
        for k in range(width):
            out[i, k] = code[k]
    return out
