"""Keys of groups, row by row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from muntin._compiled import compiled
from muntin._typing import Words

Int32s = npt.NDArray[np.int32]

_LONGEST = 7
_MOST_BYTES = 2**31 - 1


def take_once(keys: pa.Array, indices: Int32s) -> pa.Array:
    """The keys at ``indices``, which may repeat; afterwards the indices are gone.

    Where strings begin is written over them: results may be larger than all else. There is one
    more of them than keys are taken, of no meaning.

    >>> take_once(pa.array(["sash", "rail"]), np.array([1, 0, 1, 0], np.int32)).to_pylist()
    ['rail', 'sash', 'rail']
    """
    strings = pa.types.is_string(keys.type) and not keys.null_count
    if strings and len(keys) and _LONGEST * indices.size < _MOST_BYTES:
        _, offsets, data = keys.buffers()
        begin, end = keys.offset, keys.offset + len(keys) + 1
        bytes_ = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        words = pack_bytes(np.frombuffer(offsets, np.int32)[begin:end], bytes_)
        if words.size:
            return _taken(words, indices, keys.type)
    return keys.take(pa.array(indices[:-1]))


def _taken(words: npt.NDArray[np.uint64], indices: Int32s, kind: pa.DataType) -> pa.Array:
    longest = int(words.max() >> np.uint64(56))
    out = np.empty(indices.size * longest // 8 + 2, np.uint64)
    take_short(words, indices, out)
    buffers = [None, pa.py_buffer(indices), pa.py_buffer(out)]
    return pa.Array.from_buffers(kind, indices.size - 1, buffers, null_count=0)


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


def sort_order(columns: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Array:
    """The indices that sort rows by some columns, ascending, from left to right.

    >>> sort_order([pa.array([2.0, float("nan"), None, 1.0])]).to_pylist()
    [2, 3, 0, 1]
    """
    keys: dict[str, pa.Array | pa.ChunkedArray] = {}
    for i, column in enumerate(columns):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)  # noqa: PLW2901
        if pa.types.is_floating(column.type):
            # Arrow would put NaN next to NULL.
            keys[f"nan {i}"] = pc.is_nan(column)
        keys[f"key {i}"] = column
    return pc.sort_indices(pa.table(keys), [(name, "ascending", "at_start") for name in keys])


def in_time_order(table: pa.Table, time: str) -> pa.Table:
    """The table sorted by time, ties by every other column from left to right.

    Rows that are equal in all columns are interchangeable, so the order does not depend on how
    the rows arrived. Columns of nested types cannot be compared and do not take part.

    >>> table = pa.table({"ts": [2, 1, 1], "v": [0, 7, 3]})
    >>> in_time_order(table, "ts").to_pydict()
    {'ts': [1, 1, 2], 'v': [3, 7, 0]}
    """
    others = [name for name in table.column_names if name != time]
    columns = [table[name] for name in (time, *others)]
    order = sort_order([column for column in columns if not pa.types.is_nested(column.type)])
    return table.take(order)
