"""Where distinct keys of joined tables are found by the keys of rows."""

from __future__ import annotations

import numpy as np

from muntin.engine.relation_kernels import (
    NO_TEXT,
    Bools,
    Bytes,
    Codes,
    Ints,
    Offsets,
    find,
    find_dense,
    find_short,
    place,
)

# Keys that lie this close together are found in a plain table.
_SPARSE = 4
_SMALL = 1024
# A table of few short strings is so large that hardly two of them meet.
_SHORT_BITS = 10


class Index:
    """Where distinct keys are found: key ``i`` of these has the number ``i``."""

    def __init__(self, keys: Ints) -> None:
        self.size = keys.size
        low, high = (int(keys.min()), int(keys.max())) if keys.size else (0, -1)
        self._dense = high - low < max(_SPARSE * keys.size, _SMALL)
        if self._dense:
            self._low = low
            self._numbers = np.full(high - low + 1, -1, np.int32)
            self._numbers[keys - low] = np.arange(keys.size, dtype=np.int32)
        else:
            bits = (_SPARSE * keys.size - 1).bit_length()
            self._shift = np.uint64(64 - bits)
            self._slots = np.zeros(1 << bits, np.int64)
            self._numbers = np.full(1 << bits, -1, np.int32)
            place(keys, self._slots, self._numbers, self._shift)

    def find(self, keys: Ints, valid: Bools) -> tuple[Codes, int]:
        """The number of every key, ``size`` where there is none; how many have none."""
        if self._dense:
            return find_dense(keys, valid, self._low, self._numbers, self.size)
        return find(keys, valid, self._slots, self._numbers, self._shift, self.size)


class ShortIndex:
    """Where keys of strings of up to 7 bytes are found by the strings themselves."""

    def __init__(self, keys: Ints) -> None:
        self.size = keys.size
        bits = max((_SPARSE * keys.size).bit_length(), _SHORT_BITS)
        self._shift = np.uint64(64 - bits)
        slots = np.zeros(1 << bits, np.int64)
        self._numbers = np.full(1 << bits, -1, np.int32)
        place(keys, slots, self._numbers, self._shift)
        self._slots = np.where(self._numbers < 0, NO_TEXT, slots.view(np.uint64))
        self._numbers[self._numbers < 0] = self.size

    def find(self, ends: Offsets, data: Bytes, valid: Bools) -> tuple[Codes, int]:
        """The number of every string, ``size`` where there is none; how many have none."""
        codes = np.empty(ends.size - 1, np.int32)
        # The last strings may end where the buffer does: the kernel reads a longer copy.
        readable = min(data.size - 8, int(np.iinfo(ends.dtype).max))
        safe = int(np.searchsorted(ends[:-1], ends.dtype.type(readable), "right"))
        rest = np.concatenate([data[ends[safe] : ends[-1]], np.zeros(8, np.uint8)])
        self._find(ends[: safe + 1], data, codes[:safe])
        self._find(ends[safe:] - ends[safe], rest, codes[safe:])
        if valid.size:
            codes[~valid] = self.size
        return codes, int(np.count_nonzero(codes == self.size))

    def _find(self, ends: Offsets, data: Bytes, codes: Codes) -> None:
        find_short(ends, data, self._slots, self._numbers, self._shift, codes)
