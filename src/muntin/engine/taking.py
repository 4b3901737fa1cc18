"""Keys of groups, row by row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.engine.taking_kernels import pack_bytes, take_short

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
