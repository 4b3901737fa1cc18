"""Packs of named arrays as bytes: what comes back lies where the bytes lie, and is not copied."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = dict[str, npt.NDArray[Any]]
_LENGTH = struct.Struct("<q")
_ALIGNED = 64


def pack_arrays(arrays: Mapping[str, npt.NDArray[Any]]) -> Iterator[bytes | memoryview]:
    """Arrays as bytes, part by part.

    >>> data = b"".join(pack_arrays({"a": np.arange(3), "b": np.zeros((0, 2), np.int32)}))
    >>> {name: (each.tolist(), each.shape) for name, each in unpack_arrays(data).items()}
    {'a': ([0, 1, 2], (3,)), 'b': ([], (0, 2))}
    """
    head = {name: (array.dtype.str, array.shape) for name, array in arrays.items()}
    text = json.dumps(head, separators=(",", ":")).encode()
    at = _LENGTH.size + len(text)
    yield _LENGTH.pack(len(text)) + text
    for array in arrays.values():
        padding = -at % _ALIGNED
        yield bytes(padding)
        if array.nbytes:
            yield as_bytes(array)
        at += padding + array.nbytes


def as_bytes(array: npt.NDArray[Any]) -> memoryview:
    """The bytes of an array, where they lie if they follow each other."""
    plain: Any = np.ascontiguousarray(array)
    return memoryview(plain).cast("B")


def unpack_arrays(data: bytes | memoryview) -> Arrays:
    """The arrays that `pack_arrays` wrote."""
    (length,) = _LENGTH.unpack_from(data)
    at = _LENGTH.size + length
    found: Arrays = {}
    for name, (kind, shape) in json.loads(bytes(data[_LENGTH.size : at])).items():
        at += -at % _ALIGNED
        count = int(np.prod(shape))
        found[name] = np.frombuffer(data, kind, count, at).reshape(shape)
        at += found[name].nbytes
    return found


def inside(arrays: Arrays, prefix: str) -> Arrays:
    """The arrays whose names begin with a prefix, named by what follows it."""
    size = len(prefix)
    return {name[size:]: array for name, array in arrays.items() if name.startswith(prefix)}


def under(prefix: str, arrays: Arrays) -> Arrays:
    """Arrays with a prefix before their names."""
    return {prefix + name: array for name, array in arrays.items()}
