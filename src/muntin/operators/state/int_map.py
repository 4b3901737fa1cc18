"""Whole numbers found by whole numbers: a hash table in two arrays."""

from __future__ import annotations

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints

# Fibonacci hashing: the golden ratio in 64 bits spreads consecutive keys over the table.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_BITS = 6
# A table of more places than that is made smaller once fewer than one of so many is taken.
_LARGE, _SPARE = 1 << 11, 32


class IntMap:
    """A map of any 64-bit keys to values of zero or more, many at a time.

    >>> places = IntMap()
    >>> places.put(np.array([7, -2]), np.array([0, 1]))
    >>> places.drop(np.array([7]))
    >>> places.get(np.array([-2, 7])).tolist(), len(places)
    ([1, -1], 1)
    """

    STATE = ("_size", "_bits", "_keys", "_values")

    def __init__(self) -> None:
        self._size = 0
        self._room(_BITS)

    def __len__(self) -> int:
        return self._size

    def _room(self, bits: int) -> None:
        self._bits = bits
        self._keys = np.zeros(1 << bits, np.int64)
        self._values = np.full(1 << bits, -1, np.int64)

    def put(self, keys: Ints, values: Ints) -> None:
        """Set the values of keys that are all different; none of them is there."""
        self._grow(keys.size)
        put_keys(self._keys, self._values, np.uint64(64 - self._bits), keys, values)
        self._size += keys.size

    def claim(self, keys: Ints, values: Ints) -> tuple[Ints, Ints]:
        """Give keys that are not there the next of some values, each once.

        Returns:
            The value of each key, and where each of those stands first that got one.
        """
        self._grow(keys.size)
        found, firsts = claim_keys(
            self._keys, self._values, np.uint64(64 - self._bits), keys, values
        )
        self._size += firsts.size
        return found, firsts

    def _grow(self, count: int) -> None:
        """Make room for so many more keys."""
        needed = 2 * (self._size + count)
        if needed > self._keys.size:
            self._move(int(2 * needed - 1).bit_length())

    def _move(self, bits: int) -> None:
        """Put all keys into a table of another size."""
        held = self._values >= 0
        old_keys, old_values = self._keys[held], self._values[held]
        self._room(bits)
        put_keys(self._keys, self._values, np.uint64(64 - self._bits), old_keys, old_values)

    def get(self, keys: Ints) -> Ints:
        """The value of each key, -1 where it has none."""
        return get_keys(self._keys, self._values, np.uint64(64 - self._bits), keys)

    def drop(self, keys: Ints) -> None:
        """Forget keys that are all different; those that are not there are passed over."""
        self._size -= drop_keys(self._keys, self._values, np.uint64(64 - self._bits), keys)
        if self._keys.size > max(_LARGE, _SPARE * self._size):
            # Otherwise the largest batch would say for ever how much memory is taken.
            self._move(max(int(4 * self._size).bit_length(), _BITS))


@compiled
def put_keys(held: Ints, values: Ints, shift: np.uint64, keys: Ints, given: Ints) -> None:
    """Put keys into a table that has room for them."""
    mask = np.uint64(held.size - 1)
    for i in range(keys.size):
        slot = (np.uint64(keys[i]) * _GOLDEN) >> shift
        while values[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        held[slot] = keys[i]
        values[slot] = given[i]


@compiled
def claim_keys(
    held: Ints, values: Ints, shift: np.uint64, keys: Ints, given: Ints
) -> tuple[Ints, Ints]:
    """The values of keys; those that are not there get one, in order."""
    mask = np.uint64(held.size - 1)
    found = np.empty(keys.size, np.int64)
    firsts = np.empty(keys.size, np.int64)
    count = 0
    for i in range(keys.size):
        slot = (np.uint64(keys[i]) * _GOLDEN) >> shift
        while values[slot] >= 0 and held[slot] != keys[i]:
            slot = (slot + np.uint64(1)) & mask
        if values[slot] < 0:
            held[slot] = keys[i]
            values[slot] = given[count]
            firsts[count] = i
            count += 1
        found[i] = values[slot]
    return found, firsts[:count].copy()


@compiled
def get_keys(held: Ints, values: Ints, shift: np.uint64, keys: Ints) -> Ints:
    """The values of keys."""
    mask = np.uint64(held.size - 1)
    found = np.empty(keys.size, np.int64)
    for i in range(keys.size):
        slot = (np.uint64(keys[i]) * _GOLDEN) >> shift
        while values[slot] >= 0 and held[slot] != keys[i]:
            slot = (slot + np.uint64(1)) & mask
        found[i] = values[slot]
    return found


@compiled
def drop_keys(held: Ints, values: Ints, shift: np.uint64, keys: Ints) -> int:
    """Remove keys, and close the gap behind each; how many there were."""
    mask = np.uint64(held.size - 1)
    count = 0
    for i in range(keys.size):
        slot = (np.uint64(keys[i]) * _GOLDEN) >> shift
        while values[slot] >= 0 and held[slot] != keys[i]:
            slot = (slot + np.uint64(1)) & mask
        if values[slot] < 0:
            continue
        count += 1
        gap = slot
        while True:
            slot = (slot + np.uint64(1)) & mask
            if values[slot] < 0:
                break
            home = (np.uint64(held[slot]) * _GOLDEN) >> shift
            # It may move back into the gap unless its home lies after the gap.
            if ((slot - home) & mask) >= ((slot - gap) & mask):
                held[gap] = held[slot]
                values[gap] = values[slot]
                gap = slot
        values[gap] = -1
    return count
