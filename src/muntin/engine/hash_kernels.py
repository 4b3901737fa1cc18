"""Compiled loops that hash group keys: the same in every process and version."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled import compiled

Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int32] | npt.NDArray[np.int64]

_OFFSET = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_27, _30, _31 = np.uint64(27), np.uint64(30), np.uint64(31)


@compiled
def mix(hashes: Words, words: Words) -> None:
    """Fold a word into every hash, in place, by the finaliser of SplitMix64."""
    for i in range(hashes.size):
        x = (hashes[i] ^ words[i]) + _STEP
        x = (x ^ (x >> _30)) * _FIRST
        x = (x ^ (x >> _27)) * _SECOND
        hashes[i] = x ^ (x >> _31)


@compiled
def hash_bytes(offsets: Offsets, data: Bytes) -> Words:
    """The 64-bit FNV-1a hash of every byte string."""
    hashes = np.empty(offsets.size - 1, np.uint64)
    for i in range(hashes.size):
        x = _OFFSET
        for at in range(offsets[i], offsets[i + 1]):
            x = (x ^ np.uint64(data[at])) * _PRIME
        hashes[i] = x
    return hashes
