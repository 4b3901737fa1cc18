"""Compiled loops that copy short strings."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled import compiled

Int32s = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]

_ZERO = np.uint64(0)
_8U, _56U, _64U = np.uint64(8), np.uint64(56), np.uint64(64)
_BYTES = np.uint64(2**56 - 1)


@compiled
def pack_bytes(offsets: Int32s, data: npt.NDArray[np.uint8]) -> Words:
    """Each string as a word: its bytes, the first one lowest, and its length in the top byte.

    Empty if a string is longer than seven bytes.
    """
    words = np.zeros(offsets.size - 1, np.uint64)
    for i in range(words.size):
        begin, size = offsets[i], offsets[i + 1] - offsets[i]
        if size > 7:
            return np.empty(0, np.uint64)
        words[i] = np.uint64(size) << _56U
        for k in range(size):
            words[i] |= np.uint64(data[begin + k]) << np.uint64(8 * k)
    return words


@compiled
def take_short(words: Words, indices: Int32s, out: Words) -> None:
    """Write the strings at all indices but the last, one after the other.

    Where each begins, and where the last ends, is written over the indices. Eight bytes are
    written at a time, the last ones with zeros behind them.
    """
    held, bits = _ZERO, _ZERO
    at = _ZERO
    begin = 0
    for i in range(indices.size - 1):
        word = words[indices[i]]
        indices[i] = begin
        size = word >> _56U
        begin += int(size)
        word &= _BYTES
        out[at] = held | (word << bits)
        after = bits + _8U * size
        if after >= _64U:
            at += np.uint64(1)
            # What did not fit any more; shifted by less than 64, since it is 56 bits at most.
            held = word >> (_64U - bits)
            bits = after - _64U
        else:
            held |= word << bits
            bits = after
    indices[indices.size - 1] = begin
    out[at] = held
