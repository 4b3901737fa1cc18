"""HyperLogLog registers as a column: hashes of few values, or the registers of many.

A cell's codes are hashes, which are not negative, or registers: `-1 - (64 * place + rank)`.
"""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.aggregates.algebra import REGISTERS, Part
from muntin.aggregates.columns.arrow_views import decimal_words, integers
from muntin.aggregates.columns.codes import DictionaryCoder, IntegerCoder, coder
from muntin.aggregates.columns.column import Slide
from muntin.aggregates.columns.holistic.rows import Rows
from muntin.aggregates.columns.holistic.runs import RunColumn, RunWindows
from muntin.aggregates.holistic.sketches import EXACT

RANKS = 64
_NONE = np.empty(0, np.int64)


class RegisterColumn(RunColumn):
    """The codes of every cell, sorted: up to 256 hashes, or the registers that hold something."""

    @classmethod
    def empty(cls, part: Part, size: int) -> Self:
        """No values."""
        rows = Rows(np.zeros(size + 1, np.int64), _NONE.reshape(0, 1), _NONE)
        return cls(part, rows, IntegerCoder(pa.int64()), None)

    @property
    def weighted(self) -> bool:
        """It does not matter how often a value occurs."""
        return False

    def codes_of(self, args: tuple[pa.Array, ...], times: Ints | None) -> Ints:
        """The hashes."""
        return hashes_of(args[0]).reshape(-1, 1)

    def _add(self, other: Rows) -> None:
        """Merge other codes, cell by cell, into hashes or registers."""
        super()._add(self._reduced(other) if not len(self.rows.codes) else other)
        self.rows = self._reduced(self.rows)

    def holding(self, rows: Rows) -> Self:
        """A column of other codes."""
        return type(self)(self.part, self._reduced(rows), self.values, None)

    def sliding(self, longest: int) -> Slide:
        """Windows over these cells, which are looked through when they are lowered."""
        return lambda starts, ends: RegisterWindows(self, starts, ends)

    def _reduced(self, rows: Rows) -> Rows:
        offsets, codes = reduce_codes(rows.offsets, rows.codes[:, 0], bits_of(self.part))
        return Rows(offsets, codes.reshape(-1, 1), _NONE)

    @classmethod
    def from_arrow(cls, part: Part, batch: pa.RecordBatch) -> Self:
        """The codes of a snapshot."""
        column = cls.empty(part, batch.num_rows)
        lists = batch.column("value")
        offsets = np.concatenate(([0], np.cumsum(np.diff(lists.offsets.to_numpy()))))
        codes = np.array(lists.flatten().to_numpy(), np.int64)
        column.rows = Rows(offsets, codes.reshape(-1, 1), _NONE)
        return column


class RegisterWindows(RunWindows, RegisterColumn):
    """Windows over the cells of a column of registers."""

    def holding(self, rows: Rows) -> RunColumn:  # type: ignore[override]
        """A column that is written out."""
        return self.base.holding(rows)


def bits_of(part: Part) -> int:
    """How many bits of a hash choose its register."""
    return int(part.kind.removeprefix(REGISTERS))


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


@compiled
def _rank(code: int, bits: int) -> int:
    """The place of the first bit set behind the number of a hash's register, from 1 on."""
    rest = code & ((np.int64(1) << (63 - bits)) - 1)
    rank = 1
    while rank <= 63 - bits and not (rest >> (63 - bits - rank)) & 1:
        rank += 1
    return rank


@compiled
def _register(code: int, bits: int) -> int:
    """A code as one number: 64 times the register's place, and the rank."""
    if code < 0:
        return -1 - code
    return RANKS * (code >> (63 - bits)) + _rank(code, bits)


@compiled
def registers_of(codes: Ints, bits: int) -> npt.NDArray[np.int32]:
    """Codes as numbers of registers and ranks."""
    out = np.empty(codes.shape[0], np.int32)
    for i in range(codes.shape[0]):
        out[i] = _register(codes[i], bits)
    return out


@compiled
def reduce_codes(offsets: Ints, codes: Ints, bits: int) -> tuple[Ints, Ints]:
    """Sorted codes of cells, with registers where a cell has too many, or registers already."""
    out = np.empty(codes.shape[0], np.int64)
    ends = np.zeros(offsets.shape[0], np.int64)
    held = np.zeros(1 << bits, np.int64)
    at = 0
    for cell in range(offsets.shape[0] - 1):
        first, last = offsets[cell], offsets[cell + 1]
        if last - first <= EXACT and (first == last or codes[first] >= 0):
            for i in range(first, last):
                out[at] = codes[i]
                at += 1
        else:
            held[:] = 0
            for i in range(first, last):
                place, rank = divmod(_register(codes[i], bits), RANKS)
                held[place] = max(held[place], rank)
            for place in range((1 << bits) - 1, -1, -1):
                if held[place]:
                    out[at] = -1 - (RANKS * place + held[place])
                    at += 1
        ends[cell + 1] = at
    return ends, out[:at].copy()
