"""Which bucket a group belongs to, decided alike by every worker."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.engine.encoding import canonical
from muntin.engine.hash_kernels import hash_bytes, mix

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_NULL = np.uint64(0x6D756E74696E)


def buckets_of(keys: Sequence[pa.Array], rows: int, buckets: int) -> Ints:
    """The bucket of every row's group, from 0 on; NULL, NaN and -0.0 group as in SQL.

    >>> buckets_of([pa.array(["a", "b", "a", None])], 4, 1000).tolist()
    [583, 980, 583, 461]
    """
    hashes = np.zeros(rows, np.uint64)
    for key in keys:
        # What is hashed are the few different values.
        encoded = canonical(key).dictionary_encode(null_encoding="encode")
        words = _words(encoded.dictionary)
        mix(hashes, words[encoded.indices.to_numpy()])
    return (hashes % np.uint64(buckets)).astype(np.int64)


def _words(values: pa.Array) -> Words:
    """A word for each value, whatever its type."""
    missing = values.is_null().to_numpy(zero_copy_only=False)
    kind = values.type
    if pa.types.is_null(kind):
        return np.full(len(values), _NULL)
    if pa.types.is_boolean(kind):
        words = values.fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint64)
    elif pa.types.is_floating(kind):
        doubles = values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        words = np.ascontiguousarray(doubles).view(np.uint64)
    elif pa.types.is_decimal(kind) or _is_text(kind):
        words = _hashed(values)
    else:
        words = _integers(values)
    return np.where(missing, _NULL, words)


def _is_text(kind: pa.DataType) -> bool:
    text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary)
    return any(check(kind) for check in (*text, pa.types.is_large_binary))


def _integers(values: pa.Array) -> Words:
    """Whole numbers, dates and times by the number that stands for them."""
    if not pa.types.is_integer(values.type):
        width = values.type.bit_width
        values = values.view(pa.int64() if width == 64 else pa.int32())
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    words: Words = numbers.astype(np.int64, copy=False).view(np.uint64)
    return words


def _hashed(values: pa.Array) -> Words:
    """Strings and bytes; decimals as they are written."""
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.string())
    large = values.cast(pa.large_binary()) if len(values) else pa.array([], pa.large_binary())
    _, offsets, data = large.buffers()
    ends = np.frombuffer(offsets, np.int64)[large.offset : large.offset + len(large) + 1]
    raw = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    hashed: Words = hash_bytes(ends, raw)
    return hashed
