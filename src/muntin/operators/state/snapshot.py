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

# The version of what operators keep is the last byte. What lies behind the head begins where arrays
# may begin.
_MAGIC = b"MNTNROW3"
_HEAD = struct.Struct("<8sI4xq")
_LENGTH = struct.Struct("<q")
# Less is not worth compressing.
_SMALL = 1 << 12
_CODEC = pa.Codec("zstd", compression_level=1)


class OtherFormatError(DataError):
    """A snapshot of another version."""


def pack(
    state: Any,
    classes: Mapping[str, type],
    outside: Callable[[Any], str | None] | None = None,
    *,
    is_dense: bool = False,
) -> bytes:
    """A tree of plain values, arrays, columns and objects as bytes.

    Objects are of the classes that are named, or have a ``STATE``. Of an object of these classes
    that ``outside`` gives a name, only the name is written. What is dense is compressed, and
    cannot be mapped.
    """
    names = {kind: name for name, kind in classes.items()}
    blobs = _Blobs(outside, is_dense)
    text = json.dumps(_encode(state, names, blobs), separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    length = _LENGTH.pack(len(text))
    checksum = 0
    for part in (length, text, *blobs.parts):
        checksum = zlib.crc32(part, checksum)
    head = _HEAD.pack(_MAGIC, checksum, len(length) + len(text) + blobs.size)
    # Parts lie where they are until they are copied here, once.
    return b"".join((head, length, text, *blobs.parts))


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
    if bytes(data[:7]) == _MAGIC[:7] and data[:8] != _MAGIC:
        found, reads = (bytes(each[7:8]).decode("ascii", "replace") for each in (data, _MAGIC))
        raise OtherFormatError(
            f"the rows of the snapshot have format {found}, this version reads {reads}",
            hint="restore it with the version of Muntin that made it",
        )
    if len(data) < _HEAD.size or data[:8] != _MAGIC:
        raise DataError(
            "this is not a snapshot of rows with lifetimes", hint="give what snapshot() returned"
        )
    _, checksum, size = _HEAD.unpack_from(data)
    body = memoryview(data)[_HEAD.size :]
    if len(body) != size or not (mapped or zlib.crc32(body) == checksum):
        raise DataError("the snapshot is damaged", hint="resume from an earlier one")
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

    def __init__(self, outside: Callable[[Any], str | None] | None, is_dense: bool) -> None:
        self.outside = outside or (lambda value: None)
        self.is_dense = is_dense
        self.parts: list[Any] = []
        self.size = 0
        # Where arrays lie that were written, with themselves, so that nothing else takes their id.
        self._arrays: dict[int, tuple[dict[str, Any], Any]] = {}

    def array(self, value: Any) -> dict[str, Any]:
        """What says where an array lies; one that several objects have is written once."""
        known = self._arrays.get(id(value))
        if known is None:
            known = self._arrays[id(value)] = self._placed(value), value
        return known[0]

    def _placed(self, value: Any) -> dict[str, Any]:
        head = [value.dtype.str, value.shape]
        if not self.is_dense or value.nbytes < _SMALL:
            data = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
            return {"array": [*head, self.add(data, value.nbytes)]}
        # Numbers of one size differ in few of their bytes: those of a place lie together.
        lanes = np.ascontiguousarray(value).view(np.uint8).reshape(-1, value.itemsize).T
        data = _CODEC.compress(np.ascontiguousarray(lanes), asbytes=True)
        return {"dense": [*head, self.add(data, len(data)), len(data)]}

    def add(self, data: Any, size: int) -> int:
        """Put so many bytes behind the others; where they begin."""
        begin = self.size
        padding = -size % 8
        self.parts.extend((data, bytes(padding)))
        self.size += size + padding
        return begin


def _encode(value: Any, names: Mapping[type, str], blobs: _Blobs) -> Any:
    def inner(each: Any) -> Any:
        return _encode(each, names, blobs)

    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, np.ndarray):
        return blobs.array(value)
    if isinstance(value, pa.Array):
        data = _column_bytes(value, is_dense=blobs.is_dense)
        return {"column": [blobs.add(data, data.size), data.size]}
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
    arrays: dict[str, Any] = dataclasses.field(default_factory=dict)

    def read(self, value: Any) -> Any:
        """A value, and all that it is made of."""
        if not isinstance(value, dict):
            return value
        [(kind, held)] = value.items()
        if kind in ("array", "dense"):
            return self._array(*held)
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

    def _array(self, dtype: str, shape: list[int], begin: int, packed: int = 0) -> Any:
        """An array; one that several objects had is one again."""
        key = f"{dtype} {shape} {begin}"
        if key not in self.arrays:
            count, kind = int(np.prod(shape)), np.dtype(dtype)
            if packed:
                data = self.blobs[begin : begin + packed]
                plain = _CODEC.decompress(data, count * kind.itemsize)
                lanes = np.frombuffer(plain, np.uint8).reshape(kind.itemsize, count)
                found = np.ascontiguousarray(lanes.T).view(kind).reshape(shape)
            else:
                found = np.frombuffer(self.blobs, kind, count, begin).reshape(shape)
            self.arrays[key] = found if self.mapped or packed else found.copy()
        return self.arrays[key]


def _column_bytes(column: pa.Array, *, is_dense: bool) -> pa.Buffer:
    batch = pa.record_batch([column], names=[""])
    sink = pa.BufferOutputStream()
    how = pa.ipc.IpcWriteOptions(compression=_CODEC if is_dense else None)
    with pa.ipc.new_stream(sink, batch.schema, options=how) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _column_of(data: memoryview) -> pa.Array:
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_next_batch().column(0)
