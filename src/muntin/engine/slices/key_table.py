"""Group keys of a stream, each with a slot that stays the same while the group is known.

Keys are written as rows of bytes and found by a hash of them; equal hashes are told apart by the
bytes themselves. A batch costs as much as it has keys, however many groups are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Bools, Bytes, Ints, Offsets
from muntin.engine.rows.dictionary import canonical
from muntin.engine.slices.array_pack import Arrays

Words = npt.NDArray[np.uint32]

_OFFSET = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_31 = np.uint64(31)
# The length that stands for NULL in front of a string.
_NULL = 0xFFFFFFFF
_FEW = 64
# So full may the table be, in quarters: keys take most of the bytes of short windows.
_QUARTERS = 3
_NARROW = 2**31 - 1


class _Rows(NamedTuple):
    """Keys as bytes: row i from ``offsets[i]`` to ``offsets[i + 1]`` of ``data``."""

    offsets: Ints
    data: Bytes


class KeyTable:
    """Slots of group keys, numbered as they first appear.

    NULL is a key like any other, NaN equals NaN and -0.0 equals 0.0, as SQL groups them.

    >>> table = KeyTable([pa.string(), pa.int64()])
    >>> table.slots([pa.array(["a", "b", "a"]), pa.array([1, None, 1])]).tolist()
    [0, 1, 0]
    >>> [key.to_pylist() for key in table.keys(np.array([1, 0]))]
    [['b', 'a'], [None, 1]]
    """

    @staticmethod
    def takes(kind: pa.DataType) -> bool:
        """Whether keys of a type can be written as bytes."""
        types = pa.types
        plain = types.is_primitive(kind) or types.is_decimal(kind) or types.is_null(kind)
        return plain or types.is_fixed_size_binary(kind) or _is_text(kind)

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self.types = tuple(types)
        self._plain = [place for place, kind in enumerate(types) if not _is_text(kind)]
        self._texts = [place for place, kind in enumerate(types) if _is_text(kind)]
        self._widths = [_width(self.types[place]) for place in self._plain]
        self._fixed = sum(width + 1 for width in self._widths)
        self.count = 0
        self._places = np.full(2 * _FEW, -1, np.int32)
        self._hashes = np.empty(_FEW, np.uint32)
        self._offsets: npt.NDArray[Any] = np.zeros(_FEW + 1, np.int32)
        self._data = np.empty(_FEW * (self._fixed + 8), np.uint8)

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and of the table that finds them."""
        held = self._places, self._hashes, self._offsets, self._data
        return sum(array.nbytes for array in held)

    def slots(self, keys: Sequence[pa.Array]) -> Ints:
        """The slot of every key; keys that are not known yet get the next ones."""
        rows = self._written(keys)
        found = np.empty(len(keys[0]), np.int64)
        done = 0
        while True:
            done, self.count = _find(
                rows.offsets, rows.data, self._places, self._hashes, self._offsets, self._data,
                self.count, done, found,
            )  # fmt: skip
            if done == found.size:
                return found
            # Room is made for keys that are new, and not for all: few are, mostly.
            self._grow(int(rows.offsets[done + 1] - rows.offsets[done]))

    def keys(self, slots: Ints) -> tuple[pa.Array, ...]:
        """The keys of some slots, a column each."""
        found: dict[int, pa.Array] = {}
        fixed = _gather_fixed(self._data, self._offsets, slots, self._fixed)
        at = 0
        for place, width in zip(self._plain, self._widths, strict=True):
            column = np.ascontiguousarray(fixed[:, at + 1 : at + 1 + width])
            found[place] = _plain_array(self.types[place], fixed[:, at] > 0, column)
            at += width + 1
        for number, place in enumerate(self._texts):
            lengths = _text_lengths(self._data, self._offsets, slots, self._fixed, number)
            ends = np.concatenate(([0], np.cumsum(np.maximum(lengths, 0))))
            data = np.empty(int(ends[-1]), np.uint8)
            _gather_texts(self._data, self._offsets, slots, self._fixed, number, ends, data)
            found[place] = _text_array(self.types[place], lengths >= 0, ends, data)
        return tuple(found[place] for place in range(len(self.types)))

    def arrays(self) -> Arrays:
        """All keys, as arrays."""
        offsets = self._offsets[: self.count + 1]
        data = self._data[: int(offsets[-1])]
        return {"hashes": self._hashes[: self.count], "offsets": offsets, "data": data}

    def restore(self, arrays: Arrays) -> None:
        """Go on from what `arrays` made."""
        self._hashes, self._offsets = np.array(arrays["hashes"]), np.array(arrays["offsets"])
        self._data, self.count = np.array(arrays["data"]), self._hashes.size
        room = 2 * _FEW
        while 4 * (self.count + 1) > _QUARTERS * room:
            room *= 2
        self._places = np.full(room, -1, np.int32)
        _place(self._places, self._hashes, self.count)

    def _written(self, keys: Sequence[pa.Array]) -> _Rows:
        count = len(keys[0])
        fixed = np.zeros((count, self._fixed), np.uint8)
        at = 0
        for place, width in zip(self._plain, self._widths, strict=True):
            valid, column = _plain_bytes(canonical(keys[place]), width)
            fixed[:, at] = valid
            fixed[:, at + 1 : at + 1 + width] = column
            at += width + 1
        if not self._texts:
            return _Rows(np.arange(count + 1) * self._fixed, fixed.reshape(-1))
        texts = [_text_bytes(keys[place]) for place in self._texts]
        sizes = self._fixed + sum(4 + np.diff(offsets) for _, offsets, _ in texts)
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        data = np.empty(int(offsets[-1]), np.uint8)
        ends = offsets[:-1].copy()
        _write_fixed(data, ends, fixed)
        for valid, bounds, text in texts:
            _write_texts(data, ends, valid, bounds, text)
        return _Rows(offsets, data)

    def _grow(self, size: int) -> None:
        """Make room for at least one more key, of so many bytes."""
        if self.count == self._hashes.size:
            room = self.count * 9 // 8 + _FEW
            self._hashes = _longer(self._hashes, self.count, room)
            self._offsets = _longer(self._offsets, self.count + 1, room + 1)
        used = int(self._offsets[self.count])
        if used + size > self._data.size:
            self._data = _longer(self._data, used, max(used + size, used * 9 // 8 + _FEW))
            if self._data.size > _NARROW:
                self._offsets = self._offsets.astype(np.int64)
        if 4 * (self.count + 1) > _QUARTERS * self._places.size:
            self._places = np.full(2 * self._places.size, -1, np.int32)
            _place(self._places, self._hashes, self.count)


def _longer(array: npt.NDArray[Any], used: int, size: int) -> npt.NDArray[Any]:
    out = np.empty(size, array.dtype)
    out[:used] = array[:used]
    return out


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    checks = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return any(check(kind) for check in checks)


def _width(kind: pa.DataType) -> int:
    if pa.types.is_null(kind):
        return 0
    return 1 if pa.types.is_boolean(kind) else kind.bit_width // 8


def _plain_bytes(column: pa.Array, width: int) -> tuple[Bools, Bytes]:
    """Which values are not NULL, and the bytes of each; zeros for NULL."""
    count = len(column)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if not width or not count:
        return valid, np.zeros((count, width), np.uint8)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    data = np.frombuffer(column.buffers()[1], np.uint8)
    rows = data[column.offset * width : (column.offset + count) * width].reshape(count, width)
    if column.null_count:
        rows = np.where(valid[:, None], rows, np.uint8(0))
    return valid, rows


def _plain_array(kind: pa.DataType, valid: Bools, rows: Bytes) -> pa.Array:
    if pa.types.is_null(kind):
        return pa.nulls(len(valid))
    if pa.types.is_boolean(kind):
        return pa.array(rows[:, 0] > 0, mask=~valid)
    bitmap = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    return pa.Array.from_buffers(kind, len(valid), [bitmap, pa.py_buffer(rows.tobytes())])


def _text_bytes(column: pa.Array) -> tuple[Bools, Ints, Bytes]:
    large = column.cast(pa.large_binary()) if len(column) else pa.array([], pa.large_binary())
    valid = large.is_valid().to_numpy(zero_copy_only=False)
    if large.null_count:
        # The bytes beneath a NULL, if there are any, are not part of the key.
        large = large.fill_null(b"")
    _, offsets, data = large.buffers()
    if offsets is None:
        return valid, np.zeros(1, np.int64), np.zeros(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int64)[large.offset : large.offset + len(large) + 1]
    return valid, bounds, np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


def _text_array(kind: pa.DataType, valid: Bools, ends: Ints, data: Bytes) -> pa.Array:
    bitmap = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    buffers = [bitmap, pa.py_buffer(ends.tobytes()), pa.py_buffer(data.tobytes())]
    large = (
        pa.large_string() if pa.types.is_string(kind) or pa.types.is_large_string(kind) else None
    )
    found = pa.Array.from_buffers(large or pa.large_binary(), len(valid), buffers)
    return found if found.type == kind else found.cast(kind)


@compiled
def _write_fixed(data: Bytes, ends: Ints, fixed: Bytes) -> None:
    """Write the columns of fixed width, and move each row's end on."""
    for i in range(ends.size):
        at = ends[i]
        for k in range(fixed.shape[1]):
            data[at + k] = fixed[i, k]
        ends[i] = at + fixed.shape[1]


@compiled
def _write_texts(data: Bytes, ends: Ints, valid: Bools, bounds: Ints, text: Bytes) -> None:
    """Write a string in each row, its length in front, and move the row's end on."""
    for i in range(ends.size):
        at = ends[i]
        size = bounds[i + 1] - bounds[i]
        length = size if valid[i] else _NULL
        for k in range(4):
            data[at + k] = (length >> (8 * k)) & 0xFF
        for k in range(size):
            data[at + 4 + k] = text[bounds[i] + k]
        ends[i] = at + 4 + size


@compiled
def _place(places: npt.NDArray[np.int32], hashes: Words, count: int) -> None:
    """Put known keys into an empty table."""
    mask = places.size - 1
    for slot in range(count):
        at = np.int64(hashes[slot]) & mask
        while places[at] >= 0:
            at = (at + 1) & mask
        places[at] = slot


@compiled
def _find(
    offsets: Ints,
    data: Bytes,
    places: npt.NDArray[np.int32],
    hashes: Words,
    ends: Offsets,
    known: Bytes,
    count: int,
    done: int,
    found: Ints,
) -> tuple[int, int]:
    """Find or add the slot of every row from ``done`` on, until a new key has no room.

    Returns how many rows are done, and how many keys are known.
    """
    mask = places.size - 1
    for i in range(done, found.size):
        begin, end = offsets[i], offsets[i + 1]
        x = _OFFSET
        for k in range(begin, end):
            x = (x ^ np.uint64(data[k])) * _PRIME
        x = (x ^ (x >> _31)) * _MIX
        x ^= x >> _31
        short = np.uint32(x)
        at = np.int64(short) & mask
        slot = np.int64(-1)
        while places[at] >= 0:
            other = np.int64(places[at])
            if hashes[other] == short and ends[other + 1] - ends[other] == end - begin:
                same, shift = True, ends[other] - begin
                for k in range(begin, end):
                    if data[k] != known[k + shift]:
                        same = False
                        break
                if same:
                    slot = other
                    break
            at = (at + 1) & mask
        if slot < 0:
            full = count == hashes.size or 4 * (count + 1) > _QUARTERS * places.size
            if full or ends[count] + end - begin > known.size:
                return i, count
            slot = np.int64(count)
            count += 1
            places[at] = slot
            hashes[slot] = short
            shift = ends[slot] - begin
            for k in range(begin, end):
                known[k + shift] = data[k]
            ends[slot + 1] = ends[slot] + end - begin
        found[i] = slot
    return found.size, count


@compiled
def _gather_fixed(known: Bytes, ends: Offsets, slots: Ints, width: int) -> Bytes:
    out = np.empty((slots.size, width), np.uint8)
    for i in range(slots.size):
        at = ends[slots[i]]
        for k in range(width):
            out[i, k] = known[at + k]
    return out


@compiled
def _text_at(known: Bytes, at: int, number: int) -> tuple[int, int]:
    """Where the string of that number begins, and its length; -1 for NULL."""
    length = 0
    for text in range(number + 1):
        length = 0
        for k in range(4):
            length |= int(known[at + k]) << (8 * k)
        at += 4
        if length == _NULL:
            length = -1
        if text < number and length > 0:
            at += length
    return at, length


@compiled
def _text_lengths(known: Bytes, ends: Offsets, slots: Ints, fixed: int, number: int) -> Ints:
    out = np.empty(slots.size, np.int64)
    for i in range(slots.size):
        out[i] = _text_at(known, ends[slots[i]] + fixed, number)[1]
    return out


@compiled
def _gather_texts(
    known: Bytes, ends: Offsets, slots: Ints, fixed: int, number: int, bounds: Ints, out: Bytes
) -> None:
    for i in range(slots.size):
        at, length = _text_at(known, ends[slots[i]] + fixed, number)
        for k in range(length):
            out[bounds[i] + k] = known[at + k]
