"""Loops that slide the windows of many groups whose partials add up.

`totals` holds, for every group, running totals after each of its latest partials: an answer is
the newest total less an older one, one subtraction whatever the range. Totals are integers that
wrap around, which differences do not notice. Dimensions are (block, slot, group in block, word).
Totals of one word come in blocks of sixteen groups, so that groups in step read whole cache lines;
longer ones in blocks of one, so that a group stays within a few pages.

A number is one or more unsigned words, low word first, in two's complement.
"""

from __future__ import annotations

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Floats, Ints, Words
from muntin.aggregators.banks.intrinsics import prefetch
from muntin.aggregators.banks.numbers import round_pair

BLOCK = 16
_SHIFT, _MASK = 4, BLOCK - 1
# How many groups ahead their totals are asked for: enough to hide the way to memory.
_AHEAD = 12
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


@compiled
def first_index(group: int, capacity: int) -> int:
    """Where the slot 0 of a group in a block lies in the flat array of totals."""
    return (group >> _SHIFT) * capacity * BLOCK + (group & _MASK)


@compiled
def head_of(clock: int, capacity: int) -> int:
    """The slot that the next partial goes to.

    A clock counts partials up to the capacity, then goes round from there to twice the capacity.
    """
    return clock if clock < capacity else clock - capacity


@compiled
def later(clock: int, capacity: int) -> int:
    """The clock one partial later."""
    return clock + 1 if clock + 1 < 2 * capacity else capacity


@compiled
def slot_before(head: int, size: int, capacity: int) -> int:
    """The slot `size` partials back from the head of the ring."""
    at = head - size
    return at + ((at >> 63) & capacity)


@compiled
def ask_for(flat: Words, clock: int, first: int, ranges: Ints, capacity: int, stride: int) -> None:
    """Prefetch what advancing a group reads; its slots lie `stride` words apart."""
    head = head_of(clock, capacity)
    for j in range(len(ranges)):
        prefetch(flat, first + slot_before(head, ranges[j], capacity) * stride)
    prefetch(flat, first + slot_before(head, 1, capacity) * stride)


@compiled
def advance_words(
    totals: Words, clocks: Ints, slots: Ints, partials: Words, ranges: Ints, places: Ints,
    answers: Words,
) -> None:  # fmt: skip
    """One word a partial: take in a partial a slot, answer every range.

    Ranges fall, and the first is the capacity: its answer needs the total that is overwritten.
    `places` says to which row of the answers, of dimensions (range, group), each one goes.
    """
    flat, capacity = totals.reshape(-1), totals.shape[1]
    for i in range(len(slots)):
        if i + _AHEAD < len(slots):
            group = slots[i + _AHEAD]
            ask_for(flat, clocks[group], first_index(group, capacity), ranges, capacity, BLOCK)
        group = slots[i]
        first, head = first_index(group, capacity), head_of(clocks[group], capacity)
        newest = first + head * BLOCK
        total = flat[first + slot_before(head, 1, capacity) * BLOCK] + partials[i, 0]
        answers[places[0], i] = total - flat[newest]
        flat[newest] = total
        for j in range(1, len(ranges)):
            answers[places[j], i] = (
                total - flat[first + slot_before(head, ranges[j], capacity) * BLOCK]
            )
        clocks[group] = later(clocks[group], capacity)


@compiled
def advance_all_words(
    totals: Words, clocks: Ints, slots: Ints, partials: Words, ranges: Ints, places: Ints,
    answers: Words,
) -> None:  # fmt: skip
    """The same for slots 0, 1, 2 and so on: blocks in step are taken as rows."""
    low = 0
    while low < len(slots):
        high = low
        while high < len(slots) and not in_step(clocks, high, len(slots)):
            high = min(high + BLOCK, len(slots))
        if high > low:
            rest = slice(low, high)
            advance_words(
                totals, clocks, slots[rest], partials[rest], ranges, places, answers[:, rest]
            )
        low = high
        while low < len(slots) and in_step(clocks, low, len(slots)):
            low += BLOCK
        _advance_rows(totals, clocks, high, low, partials, ranges, places, answers)


@compiled
def in_step(clocks: Ints, low: int, count: int) -> bool:
    """Whether a block is full and its groups have the same clock."""
    if low + BLOCK > count:
        return False
    differ = 0
    for k in range(1, BLOCK):
        differ |= clocks[low + k] ^ clocks[low]
    return differ == 0


@compiled
def _advance_rows(
    totals: Words, clocks: Ints, low: int, high: int, partials: Words, ranges: Ints, places: Ints,
    answers: Words,
) -> None:  # fmt: skip
    flat, capacity = totals.reshape(-1), totals.shape[1]
    for group in range(low, high, BLOCK):
        if group + BLOCK * 2 < high:
            first = (group + BLOCK * 2) * capacity
            ask_for(flat, clocks[group + BLOCK * 2], first, ranges, capacity, BLOCK)
        clock = clocks[group]
        first, head = group * capacity, head_of(clock, capacity)
        newest, before = first + head * BLOCK, first + slot_before(head, 1, capacity) * BLOCK
        for k in range(BLOCK):
            total = flat[before + k] + partials[group + k, 0]
            answers[places[0], group + k] = total - flat[newest + k]
            flat[newest + k] = total
        for j in range(1, len(ranges)):
            at, place = first + slot_before(head, ranges[j], capacity) * BLOCK, places[j]
            for k in range(BLOCK):
                answers[place, group + k] = flat[newest + k] - flat[at + k]
        clock = later(clock, capacity)
        for k in range(BLOCK):
            clocks[group + k] = clock


@compiled
def advance_pairs(
    totals: Words, clocks: Ints, slots: Ints, partials: Words, ranges: Ints,
    places: Ints, powers: Floats, scales: Floats, answers: Floats,
) -> None:  # fmt: skip
    """Two words a partial, answers rounded to the nearest double."""
    flat, capacity = totals.reshape(-1), totals.shape[1]
    for i in range(len(slots)):
        if i + _AHEAD < len(slots):
            group = slots[i + _AHEAD]
            ask_for(flat, clocks[group], group * capacity * 2, ranges, capacity, 2)
        group = slots[i]
        first, head = group * capacity * 2, head_of(clocks[group], capacity)
        at = first + slot_before(head, 1, capacity) * 2
        low = flat[at] + partials[i, 0]
        high = flat[at + 1] + partials[i, 1] + (_ONE if low < partials[i, 0] else _ZERO)
        for j in range(len(ranges)):
            at = first + slot_before(head, ranges[j], capacity) * 2
            borrow = _ONE if low < flat[at] else _ZERO
            answers[places[j], i] = round_pair(
                low - flat[at], high - flat[at + 1] - borrow, powers, scales
            )
        at = first + head * 2
        flat[at], flat[at + 1] = low, high
        clocks[group] = later(clocks[group], capacity)


@compiled
def advance_numbers(
    totals: Words, clocks: Ints, slots: Ints, partials: Words, chained: Words, ranges: Ints,
    places: Ints, answers: Words,
) -> None:  # fmt: skip
    """Any number of words; those that are `chained` take the carry of the word before.

    Changes `partials`. Answers have dimensions (range, group, word).
    """
    flat, capacity, width = totals.reshape(-1), totals.shape[1], totals.shape[3]
    for i in range(len(slots)):
        if i + _AHEAD < len(slots):
            group = slots[i + _AHEAD]
            ask_for(flat, clocks[group], group * capacity * width, ranges, capacity, width)
        group = slots[i]
        first, head = group * capacity * width, head_of(clocks[group], capacity)
        before = first + slot_before(head, 1, capacity) * width
        carry = _ZERO
        for k in range(width):
            carry &= chained[k]
            total = flat[before + k] + carry
            carry = _ONE if total < carry else _ZERO
            partials[i, k] += total
            carry |= _ONE if partials[i, k] < total else _ZERO
        for j in range(len(ranges)):
            at = first + slot_before(head, ranges[j], capacity) * width
            borrow = _ZERO
            for k in range(width):
                borrow &= chained[k]
                total = flat[at + k] + borrow
                borrow = _ONE if total < borrow else _ZERO
                answers[places[j], i, k] = partials[i, k] - total
                borrow |= _ONE if partials[i, k] < total else _ZERO
        newest = first + head * width
        for k in range(width):
            flat[newest + k] = partials[i, k]
        clocks[group] = later(clocks[group], capacity)
