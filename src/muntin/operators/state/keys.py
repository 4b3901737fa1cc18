"""Keys of rows: their hashes, their equality, and small numbers for the keys that are alive.

In joins NULL equals nothing; as values of DISTINCT and EXCEPT, NULLs are equal. NaN equals NaN and
-0.0 equals 0.0 everywhere. Hashes only find candidates: equality is always confirmed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from muntin._compiled import compiled
from muntin._typing import Bools, Bytes, Ints, Offsets, Words
from muntin.errors import DataError
from muntin.operators.rows import Columns
from muntin.operators.state.int_map import IntMap
from muntin.operators.state.row_log import RowLog

_WIDTHS = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
_DECIMAL = 16
Array = TypeVar("Array", bound=npt.NDArray[Any])
_NULL = np.uint64(0x8CB92BA72F3D8DD7)
_EMPTY = np.empty(0, np.bool_)
# More places than that are given up once fewer than one of so many is taken.
_LARGE, _SPARE = 1 << 10, 4


def check_keys(types: Sequence[pa.DataType], what: str) -> None:
    """Refuse types that cannot be compared."""
    for kind in types:
        if not is_comparable(kind):
            raise DataError(
                f"{what} cannot compare values of type {kind}",
                hint="select the parts that matter as columns of their own",
            )


def is_comparable(kind: pa.DataType) -> bool:
    """Whether values of a type can be compared and hashed."""
    return not pa.types.is_nested(kind) and (_is_fixed(kind) or _is_text(kind))


def check_alike(first: Sequence[pa.DataType], other: Sequence[pa.DataType]) -> None:
    """Refuse columns of two inputs whose types differ."""
    if list(first) != list(other):
        raise DataError(
            f"columns of types {', '.join(map(str, first))} are put together with columns of "
            f"types {', '.join(map(str, other))}",
            hint="cast one side to the types of the other",
        )


def canonical(column: pa.Array) -> pa.Array:
    """The column with one NaN and one zero."""
    if not pa.types.is_floating(column.type):
        return column
    column = pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column)
    zero = pa.scalar(0.0, column.type)
    return pc.if_else(pc.equal(column, zero), zero, column)


def hash_columns(columns: Columns, count: int) -> tuple[Ints, bool]:
    """A hash of each row, and whether equal hashes alone prove equal values.

    They do for a single column of at most 64 bits that has no NULL.
    """
    if not columns:
        return np.zeros(count, np.int64), True
    hashes = np.zeros(count, np.uint64)
    for column in columns:
        valid = _valid(column)
        if _is_fixed(column.type):
            hash_words(_words(column).view(np.uint64), valid, hashes)
        else:
            ends, data = _bytes(column)
            hash_texts(ends, data, valid, hashes)
    exact = len(columns) == 1 and _is_fixed(columns[0].type) and not columns[0].null_count
    return hashes.view(np.int64), exact


def equal_rows(left: Columns, right: Columns, count: int) -> Bools:
    """Which rows of two tables of keys are equal, place by place; NULLs are equal here."""
    same = np.ones(count, np.bool_)
    for a, b in zip(left, right, strict=True):
        same &= _equal(a, b)
    return same


def _equal(left: pa.Array, right: pa.Array) -> Bools:
    if _is_fixed(left.type):
        same: Bools = _words(left) == _words(right)
    else:
        same = pc.fill_null(pc.equal(left, right), False).to_numpy(zero_copy_only=False)
    if left.null_count or right.null_count:
        a, b = (_or_all(_valid(each), len(each)) for each in (left, right))
        same = np.where(a & b, same, a == b)
    return same


def has_null(columns: Columns, count: int) -> Bools:
    """Which rows have a NULL in some column."""
    found = np.zeros(count, np.bool_)
    for column in columns:
        if column.null_count:
            found |= column.is_null().to_numpy(zero_copy_only=False)
    return found


class KeyTable:
    """Small numbers for keys that are in use, given again once a key is released.

    >>> table = KeyTable([pa.string()])
    >>> table.codes((pa.array(["a", "b", None, "a"]),), 4).tolist()
    [0, 1, 2, 0]
    >>> table.release(np.array([1]))
    >>> table.codes((pa.array(["c", None]),), 2).tolist()
    [1, 2]
    >>> table.values(np.array([1]))[0].to_pylist()
    ['c']
    """

    STATE = ("_log", "_first", "_hashes", "_next", "_numbers", "_free", "size")

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._log = RowLog(types)
        self._first = IntMap()  # the first code of each hash
        self._hashes = np.empty(0, np.int64)
        self._next = np.empty(0, np.int64)  # another code of the same hash, or -1
        self._numbers = np.empty(0, np.int64)  # where the log holds the key; -1 for a free code
        self._free = np.empty(0, np.int64)
        self.size = 0

    def __len__(self) -> int:
        return int(self.size - self._free.size)

    def codes(self, columns: Columns, count: int) -> Ints:
        """The code of each row's key; keys that are not known get one."""
        columns = tuple(canonical(column) for column in columns)
        hashes, exact = hash_columns(columns, count)
        # Hashes of fixed values prove equality only against keys without NULL.
        exact = exact and not self._log.nulls
        codes = self._first.get(hashes)
        pending = np.arange(count)
        while pending.size:
            self._add(columns, hashes, codes, pending)
            if exact:
                break
            held = self._log.take(self._numbers[codes[pending]])
            given = tuple(column.take(pa.array(pending)) for column in columns)
            pending = pending[~equal_rows(given, held, pending.size)]
            codes[pending] = self._next[codes[pending]]
        return codes

    def _add(self, columns: Columns, hashes: Ints, codes: Ints, pending: Ints) -> None:
        """Give a code to one row of each hash that found none, and point the others at it."""
        lost = pending[codes[pending] < 0]
        if not lost.size:
            return
        wanted = hashes[lost]
        if (self._first.get(wanted) < 0).all():
            codes[lost], firsts = self._first.claim(wanted, self._next_codes(lost.size))
            fresh = self._fresh(firsts.size)
        else:
            fresh, firsts, which = self._chained(wanted)
            codes[lost] = fresh[which]
        self._hashes[fresh] = wanted[firsts]
        rows = lost[firsts]
        self._numbers[fresh] = self._log.append(
            tuple(column.take(pa.array(rows)) for column in columns), rows.size
        )

    def _chained(self, hashes: Ints) -> tuple[Ints, Ints, Ints]:
        """Codes for hashes of which some have one of another key: they are put behind it.

        Returns:
            The codes, where each of their hashes stands first, and the place of each row's code.
        """
        distinct, firsts, which = np.unique(hashes, return_index=True, return_inverse=True)
        order = np.argsort(firsts)
        distinct, firsts, which = distinct[order], firsts[order], np.argsort(order)[which]
        fresh = self._fresh(distinct.size)
        known = self._first.get(distinct)
        self._first.put(distinct[known < 0], fresh[known < 0])
        for last, code in zip(known[known >= 0].tolist(), fresh[known >= 0].tolist(), strict=True):
            while self._next[last] >= 0:
                last = int(self._next[last])  # noqa: PLW2901
            self._next[last] = code
        return fresh, firsts, which

    def _next_codes(self, count: int) -> Ints:
        """The codes that as many keys would get."""
        reused = self._free[:count]
        return np.concatenate((reused, np.arange(self.size, self.size + count - reused.size)))

    def _fresh(self, count: int) -> Ints:
        codes = self._next_codes(count)
        self.size += max(count - self._free.size, 0)
        self._free = self._free[count:]
        if self.size > self._numbers.size:
            self._hashes, self._next, self._numbers = (
                grown(array, self.size, -1) for array in (self._hashes, self._next, self._numbers)
            )
        self._next[codes] = -1
        return codes

    def values(self, codes: Ints) -> Columns:
        """The keys of codes."""
        return self._log.take(self._numbers[codes])

    def release(self, codes: Ints) -> None:
        """Forget keys, and free their codes; those that are free already are passed over."""
        codes = codes[self._numbers[codes] >= 0]
        hashes = self._hashes[codes]
        alone = (self._next[codes] < 0) & (self._first.get(hashes) == codes)
        self._first.drop(hashes[alone])
        for code in codes[~alone].tolist():
            self._unlink(code)
        self._log.drop(self._numbers[codes])
        self._numbers[codes] = -1
        self._free = np.concatenate((self._free, codes))

    def packed(self) -> Ints | None:
        """Give all keys the first codes, where a large batch has left most others free.

        Returns:
            The codes that the keys had, in order: the first is now code 0. None if all stay.
        """
        if not is_sparse(self._numbers.size, self.size - self._free.size):
            return None
        held = np.flatnonzero(self._numbers >= 0)
        self._hashes, self._numbers = self._hashes[held], self._numbers[held]
        self._next = moved(self._next[held], held)
        self.size, self._free = held.size, np.empty(0, np.int64)
        is_first = np.ones(held.size, np.bool_)
        is_first[self._next[self._next >= 0]] = False
        firsts = np.flatnonzero(is_first)
        self._first = IntMap()
        self._first.put(self._hashes[firsts], firsts)
        return held

    def _unlink(self, code: int) -> None:
        """Take a key out of the chain of keys that share its hash."""
        one = self._hashes[code : code + 1]
        first, after = int(self._first.get(one)[0]), int(self._next[code])
        if first == code:
            self._first.drop(one)
            if after >= 0:
                self._first.put(one, np.array([after]))
            return
        while self._next[first] != code:
            first = int(self._next[first])
        self._next[first] = after


def grown(array: Ints, size: int, filler: int) -> Ints:
    """An array with room for at least so many values, twice as much as before."""
    room = np.full(max(size, 2 * array.size, 16), filler, array.dtype)
    room[: array.size] = array
    return room


def is_sparse(room: int, taken: int) -> bool:
    """Whether so few places are taken that the others should be given up."""
    return room > max(_LARGE, _SPARE * taken)


def moved(places: Ints, held: Ints) -> Ints:
    """Places once those that are held, in order, are the only ones; -1 is none, and stays."""
    return np.where(places < 0, places, np.searchsorted(held, places))


def _is_fixed(kind: pa.DataType) -> bool:
    timed = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return bool(pa.types.is_boolean(kind) or number or timed)


def _is_text(kind: pa.DataType) -> bool:
    text = pa.types.is_string(kind) or pa.types.is_binary(kind)
    return bool(text or pa.types.is_decimal128(kind))


def _valid(column: pa.Array) -> Bools:
    """Which values are not NULL; nothing where all are."""
    if not column.null_count:
        return _EMPTY
    valid: Bools = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _or_all(valid: Bools, count: int) -> Bools:
    return valid if valid.size else np.ones(count, np.bool_)


def _words(column: pa.Array) -> Ints:
    """Values as integers, equal where the values are; anything at all where they are NULL."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if not len(column):
        return _frozen(np.empty(0, np.int64))
    width = column.type.bit_width
    stored = np.frombuffer(column.buffers()[1], _WIDTHS[width])
    stored = stored[column.offset : column.offset + len(column)]
    if pa.types.is_floating(column.type):
        values = stored.view(f"f{width // 8}")
        # A sum with 0.0 turns -0.0 into 0.0 and leaves all else as it is.
        values = values + values.dtype.type(0)
        stored = np.where(np.isnan(values), values.dtype.type(np.nan), values).view(_WIDTHS[width])
    return _frozen(stored.astype(np.int64, copy=False))


def _frozen(values: Array) -> Array:
    """A view that cannot be written, as Arrow's memory mostly is: one type less for kernels."""
    view = values.view()
    view.flags.writeable = False
    return view


def _bytes(column: pa.Array) -> tuple[Offsets, Bytes]:
    """Where each value's bytes begin and end, and the bytes."""
    begin, end = column.offset, column.offset + len(column)
    buffer = column.buffers()[-1]
    data = _frozen(np.frombuffer(buffer if buffer is not None else b"", np.uint8))
    if pa.types.is_decimal(column.type):
        return _DECIMAL * np.arange(begin, end + 1, dtype=np.int64), data
    if not len(column):
        return np.zeros(1, np.int64), data
    return np.frombuffer(column.buffers()[1], np.int32)[begin : end + 1].astype(np.int64), data


@compiled
def _mix(word: np.uint64) -> np.uint64:
    """A permutation of 64-bit words that spreads every bit (splitmix64's finalizer)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@compiled
def hash_words(words: Words, valid: Bools, hashes: Words) -> None:
    """Mix one column of words into the hashes of rows."""
    for i in range(words.size):
        word = words[i] if valid.size == 0 or valid[i] else _NULL
        hashes[i] = _mix(hashes[i] * np.uint64(31) ^ word)


@compiled
def hash_texts(ends: Offsets, data: Bytes, valid: Bools, hashes: Words) -> None:
    """Mix one column of bytes into the hashes of rows."""
    for i in range(ends.size - 1):
        word = _NULL
        if valid.size == 0 or valid[i]:
            word = np.uint64(ends[i + 1] - ends[i])
            packed, filled = np.uint64(0), 0
            for at in range(ends[i], ends[i + 1]):
                packed = (packed << np.uint64(8)) | np.uint64(data[at])
                filled += 1
                if filled == 8:
                    word = _mix(word ^ packed)
                    packed, filled = np.uint64(0), 0
            if filled:
                word = _mix(word ^ packed)
        hashes[i] = _mix(hashes[i] * np.uint64(31) ^ word)
