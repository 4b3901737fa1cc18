"""What operators keep, as bytes and back.

An object that keeps something names the attributes in ``STATE``; all else is made anew from the
plan. Numbers and structure are JSON, arrays lie behind it as they are in memory, columns as Arrow
streams.
"""

from __future__ import annotations

import dataclasses
import json
import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.errors import DataError

# What lies behind the head begins where arrays may begin.
_MAGIC = b"MNTNROW2"
_HEAD = struct.Struct("<8sI4xq")
_LENGTH = struct.Struct("<q")


def pack(
    state: Any, classes: Mapping[str, type], outside: Callable[[Any], str | None] | None = None
) -> bytes:
    """A tree of plain values, arrays, columns and objects as bytes.

    Objects are of the classes that are named, or have a ``STATE``. Of an object of these classes
    that ``outside`` gives a name, only the name is written.
    """
    names = {kind: name for name, kind in classes.items()}
    blobs = _Blobs(outside)
    text = json.dumps(_encode(state, names, blobs), separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    body = b"".join([_LENGTH.pack(len(text)), text, *blobs.parts])
    return _HEAD.pack(_MAGIC, zlib.crc32(body), len(body)) + body


def unpack(
    data: bytes | memoryview,
    classes: Mapping[str, type],
    inside: Callable[[str], Any] | None = None,
    *,
    mapped: bool = False,
) -> Any:
    """What `pack` was given; an object with a ``STATE`` comes back as a dict for `load`.

    ``inside`` brings what only the name was written of. With ``mapped``, data that somebody else
    has checked is left where it lies, and arrays are read when they are looked at.
    """
    if len(data) < _HEAD.size or data[:8] != _MAGIC:
        raise DataError("this is no snapshot of rows with lifetimes", hint="give what was saved")
    _, checksum, size = _HEAD.unpack_from(data)
    body = memoryview(data)[_HEAD.size :]
    if len(body) != size or not (mapped or zlib.crc32(body) == checksum):
        raise DataError("the snapshot is damaged", hint="go back to an earlier one")
    (length,) = _LENGTH.unpack_from(body)
    begin = _LENGTH.size + length
    reader = _Reader(classes, body[begin:], inside, mapped)
    return reader.read(json.loads(bytes(body[_LENGTH.size : begin])))


def load(target: Any, state: dict[str, Any]) -> None:
    """Put what was kept into an object that is made anew."""
    for name, value in state.items():
        current = getattr(target, name)
        setattr(target, name, _loaded(current, value))


def _loaded(current: Any, value: Any) -> Any:
    if hasattr(current, "STATE") and isinstance(value, dict):
        load(current, value)
        return current
    if isinstance(current, list) and current and hasattr(current[0], "STATE"):
        return [_loaded(each, one) for each, one in zip(current, value, strict=True)]
    return value


class _Blobs:
    """Bytes behind the structure, each from a place that arrays may begin at."""

    def __init__(self, outside: Callable[[Any], str | None] | None) -> None:
        self.outside = outside or (lambda value: None)
        self.parts: list[bytes] = []
        self.size = 0

    def add(self, data: bytes) -> int:
        begin = self.size
        padding = -len(data) % 8
        self.parts.extend((data, bytes(padding)))
        self.size += len(data) + padding
        return begin


def _encode(value: Any, names: Mapping[type, str], blobs: _Blobs) -> Any:
    def inner(each: Any) -> Any:
        return _encode(each, names, blobs)

    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, np.ndarray):
        return {"array": [value.dtype.str, value.shape, blobs.add(value.tobytes())]}
    if isinstance(value, pa.Array):
        data = _column_bytes(value)
        return {"column": [blobs.add(data), len(data)]}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [inner(each) for each in value]}
    if isinstance(value, dict):
        return {"dict": [[inner(key), inner(each)] for key, each in value.items()]}
    if type(value) in names:
        name = blobs.outside(value)
        if name is not None:
            return {"outside": name}
        fields = {each.name: inner(getattr(value, each.name)) for each in dataclasses.fields(value)}
        return {"object": [names[type(value)], fields]}
    return {"state": {name: inner(getattr(value, name)) for name in value.STATE}}


@dataclasses.dataclass(frozen=True)
class _Reader:
    """Reads back what was written: classes by name, the bytes behind, and what lies elsewhere."""

    classes: Mapping[str, type]
    blobs: memoryview
    inside: Callable[[str], Any] | None
    mapped: bool

    def read(self, value: Any) -> Any:
        """A value, and all that it is made of."""
        if not isinstance(value, dict):
            return value
        [(kind, held)] = value.items()
        if kind == "array":
            dtype, shape, begin = held
            found = np.frombuffer(self.blobs, dtype, int(np.prod(shape)), begin).reshape(shape)
            return found if self.mapped else found.copy()
        if kind == "column":
            begin, size = held
            return _column_of(self.blobs[begin : begin + size])
        if kind == "outside":
            assert self.inside is not None
            return self.inside(held)
        if kind in ("list", "tuple"):
            several = [self.read(each) for each in held]
            return several if kind == "list" else tuple(several)
        if kind == "dict":
            return {self.read(key): self.read(each) for key, each in held}
        if kind == "object":
            name, fields = held
            return self.classes[name](**{each: self.read(one) for each, one in fields.items()})
        return {name: self.read(each) for name, each in held.items()}


def _column_bytes(column: pa.Array) -> bytes:
    batch = pa.record_batch([column], names=[""])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _column_of(data: memoryview) -> pa.Array:
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_next_batch().column(0)
