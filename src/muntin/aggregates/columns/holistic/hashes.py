"""Hashes of values of any type, the same wherever and whenever they are computed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.aggregates.columns.arrow_views import decimal_words, integers
from muntin.aggregates.columns.codes import DictionaryCoder, coder


def hashes_of(values: pa.Array) -> Ints:
    """Hashes of 63 bits; values that SQL calls equal have one, NULL slots have any."""
    found = coder(values.type)
    if not isinstance(found, DictionaryCoder):
        codes = found.encode(values).codes
        if pa.types.is_floating(values.type):
            # The code of -0.0 lies right below that of 0.0.
            codes = np.where(codes == -1, 0, codes)
        return mixed(codes.view(np.uint64))
    if pa.types.is_uint64(values.type):
        return mixed(integers(values.view(pa.int64())).view(np.uint64))
    if pa.types.is_decimal128(values.type):
        words = decimal_words(values).view(np.uint64)
        high = mixed(np.ascontiguousarray(words[:, 1])).view(np.uint64)
        return mixed(words[:, 0] ^ high)
    indexed = values.dictionary_encode()
    texts = indexed.dictionary.cast(pa.large_binary())
    if not len(texts):
        return np.zeros(len(values), np.int64)
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    raw = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return hashed(ends, raw)[integers(indexed.indices.fill_null(0))]


_OFFSET = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_1U, _27U, _30U, _31U = (np.uint64(k) for k in (1, 27, 30, 31))


@compiled
def _mix(x: np.uint64) -> np.int64:
    """The finaliser of SplitMix64, without the last bit."""
    x += _STEP
    x = (x ^ (x >> _30U)) * _FIRST
    x = (x ^ (x >> _27U)) * _SECOND
    return np.int64((x ^ (x >> _31U)) >> _1U)


@compiled
def mixed(words: npt.NDArray[np.uint64]) -> Ints:
    """The hashes of words."""
    out = np.empty(words.shape[0], np.int64)
    for i in range(words.shape[0]):
        out[i] = _mix(words[i])
    return out


@compiled
def hashed(offsets: Ints, data: npt.NDArray[np.uint8]) -> Ints:
    """The hashes of byte strings: FNV-1a, mixed."""
    out = np.empty(offsets.shape[0] - 1, np.int64)
    for i in range(out.shape[0]):
        x = _OFFSET
        for at in range(offsets[i], offsets[i + 1]):
            x = (x ^ np.uint64(data[at])) * _PRIME
        out[i] = _mix(x)
    return out
