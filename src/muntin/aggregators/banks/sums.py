"""SlickDeque(Inv) over many groups: sums, counts and what is read off them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from muntin._typing import Ints, Words
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.exact.limbs import ORIGIN
from muntin.aggregators.banks import numbers as bank_numbers
from muntin.aggregators.banks import numbers as bank_rounding
from muntin.aggregators.banks import sum_loops
from muntin.aggregators.banks.answers import Answers, from_doubles, lower, sum_column
from muntin.aggregators.banks.bank import Bank
from muntin.aggregators.banks.partials import SPECIALS, Batch, Number, read_columns, read_values
from muntin.aggregators.banks.sum_loops import BLOCK


class SumBank(Bank):
    """Running totals a group: an answer is the newest total less an older one.

    One operation a partial and one an answer, instead of two an answer: with totals at hand the
    running answers of SlickDeque(Inv) need not be kept. Words, specials and counts are added
    to the layout when the first partial comes that needs them.
    """

    def _reset(self, slots: int) -> None:
        parts = [part for part in self.aggregate.parts if not part.kind.startswith("count")]
        self.numbers = tuple(Number.of(part) for part in parts)
        self.special = False
        self.counted = not parts
        self.totals = self._zeros(slots)
        self.clocks: Ints = np.zeros(slots, np.int64)

    @property
    def width(self) -> int:
        """Words a partial."""
        return sum(n.width for n in self.numbers) + SPECIALS * self.special + self.counted

    def _zeros(self, slots: int) -> Words:
        block = BLOCK if self.width == 1 else 1
        blocks = -(-slots // block)
        return np.zeros((blocks, self.capacity, block, self.width), np.uint64)

    def _resize(self, slots: int) -> None:
        if slots > len(self.clocks):
            clocks = np.zeros(max(slots, 2 * len(self.clocks)), np.int64)
            clocks[: len(self.clocks)] = self.clocks
            totals = self._zeros(len(clocks))
            totals[: len(self.totals)] = self.totals
            self.clocks, self.totals = clocks, totals

    def _clear(self, slots: Ints) -> None:
        block = self.totals.shape[2]
        self.totals[slots // block, :, slots % block] = 0
        self.clocks[slots] = 0

    def _advance(self, values: pa.Array, slots: Ints, packed: bool) -> Answers:
        return self._take(read_values(self.aggregate.parts, values), slots, packed)

    def _advance_columns(self, columns: Sequence[PartColumn], slots: Ints, packed: bool) -> Answers:
        return self._take(read_columns(columns), slots, packed)

    def _take(self, batch: Batch, slots: Ints, packed: bool) -> Answers:
        self._make_room(batch)
        partials = self._words(batch, len(slots))
        self.operations += len(slots) * (1 + len(self.falling))
        shape = (len(self.falling), len(slots))
        if self.width == 1:
            sums = np.empty(shape, np.uint64)
            run = sum_loops.advance_all_words if packed else sum_loops.advance_words
            run(self.totals, self.clocks, slots, partials, self.falling, self.places, sums)
            return self._read_words(sums, slots)
        if self.width == 2 and not self.special and not self.counted and self._is_floating():
            doubles = np.empty(shape)
            sum_loops.advance_pairs(
                self.totals, self.clocks, slots, partials, self.falling, self.places,
                bank_rounding.POWERS, bank_rounding.scales(self._exponent(0)), doubles,
            )  # fmt: skip
            counts = self._rows(slots) if self.aggregate.name == "avg" else None
            return from_doubles(doubles, counts, average=True, specials=None)
        words = np.empty((*shape, self.width), np.uint64)
        sum_loops.advance_numbers(
            self.totals, self.clocks, slots, partials, self._chained(), self.falling,
            self.places, words,
        )  # fmt: skip
        return self._read_numbers(words, slots)

    def _make_room(self, batch: Batch) -> None:
        room = (self.capacity - 1).bit_length()
        pairs = zip(self.numbers, batch.numbers, strict=True)
        numbers = tuple(number.covering(source.extent, room) for number, source in pairs)
        special = self.special or batch.special
        counted = self.counted or batch.counts is not None
        moved = any(map(Number.moved, self.numbers, numbers))
        if moved or (special, counted) != (self.special, self.counted):
            self._lay_out(numbers, special, counted)
        self.numbers = numbers

    def _lay_out(self, numbers: tuple[Number, ...], special: bool, counted: bool) -> None:
        """Copy the running totals into another layout of words."""
        old, were, had = self._rings(), self.numbers, (self.special, self.counted)
        end = sum(number.width for number in were)
        self.numbers, self.special, self.counted = numbers, special, counted
        new = np.zeros((len(self.clocks), self.capacity, self.width), np.uint64)
        at = to = 0
        for was, number in zip(were, numbers, strict=True):
            if was.unit is not None and number.unit is not None:
                shift = was.unit - number.unit
                bank_numbers.rebase(old, self.clocks, at, was.width, new, to, number.width, shift)
            at, to = at + was.width, to + number.width
        if had[0]:
            new[:, :, to : to + SPECIALS] = old[:, :, end : end + SPECIALS]
        if had[1]:
            new[:, :, -1] = old[:, :, -1]
        elif counted:
            bank_numbers.put_counts(self.clocks, new, self.width - 1)
        self.totals = new[:, :, None, :]

    def _rings(self) -> Words:
        """The totals as (group, slot, word)."""
        blocks, capacity, block, width = self.totals.shape
        rings = self.totals.transpose(0, 2, 1, 3).reshape(blocks * block, capacity, width)
        return np.ascontiguousarray(rings[: len(self.clocks)])

    def _words(self, batch: Batch, count: int) -> Words:
        if self.width == 1 and batch.plain is not None:
            return batch.plain.view(np.uint64)[:, None]
        partials = np.zeros((count, self.width), np.uint64)
        first, specials = 0, sum(number.width for number in self.numbers)
        for number, source in zip(self.numbers, batch.numbers, strict=True):
            source.write(number.unit or 0, partials, first, number.width, specials)
            first += number.width
        if self.counted:
            partials[:, -1] = 1 if batch.counts is None else batch.counts.view(np.uint64)
        return partials

    def _chained(self) -> Words:
        chained = np.zeros(self.width, np.uint64)
        first = 0
        for number in self.numbers:
            chained[first + 1 : first + number.width] = 1
            first += number.width
        return chained

    def _is_floating(self) -> bool:
        return bool(pa.types.is_floating(self.numbers[0].part.types[0]))

    def _exponent(self, index: int) -> int:
        return 32 * (self.numbers[index].unit or 0) - ORIGIN

    def _rows(self, slots: Ints) -> Ints:
        """How many partials each window holds, where each is one row."""
        held = np.minimum(self.clocks[slots], self.capacity)
        return np.minimum(self.distinct[:, None], held[None, :])

    def _read_words(self, sums: Words, slots: Ints) -> Answers:
        """Answers of one word: integers that fit, or counts."""
        values = sums.view(np.int64)
        if self.aggregate.name == "avg":
            return from_doubles(values.astype(np.float64), self._rows(slots), True, None)
        return Answers(values.T)

    def _read_numbers(self, words: Words, slots: Ints) -> Answers:
        first = sum(number.width for number in self.numbers)
        flat = words.reshape(-1, self.width)
        signed = words.view(np.int64)
        counts = signed[:, :, -1] if self.counted else self._rows(slots)
        specials = signed[:, :, first : first + SPECIALS] if self.special else None
        if self.aggregate.name in {"sum", "avg"} and self._is_floating():
            sums = np.empty(len(flat))
            bank_rounding.round_numbers(
                flat, 0, first, self._exponent(0), bank_rounding.POWERS, sums
            )
            marks = None if specials is None else np.moveaxis(specials, 2, 0)
            average = self.aggregate.name == "avg"
            return from_doubles(sums.reshape(counts.shape), counts, average, marks)
        columns, at = [], 0
        marks = None if specials is None else specials.reshape(-1, SPECIALS)
        for number in self.numbers:
            part = flat[:, at : at + number.width]
            columns.append(sum_column(number.part, part, number.unit or 0, marks))
            at += number.width
        return lower(self.aggregate, columns, counts.ravel(), len(self.falling))

    def _arrays(self) -> dict[str, Any]:
        return {"totals": self.totals, "clocks": self.clocks}

    def _layout(self) -> dict[str, Any]:
        numbers = [(n.unit, n.high, n.width) for n in self.numbers]
        return {"numbers": numbers, "special": self.special, "counted": self.counted}

    def _take_over(self, arrays: dict[str, Any], layout: dict[str, Any]) -> None:
        pairs = zip(self.numbers, layout["numbers"], strict=True)
        self.numbers = tuple(Number(number.part, *fields) for number, fields in pairs)
        self.special, self.counted = layout["special"], layout["counted"]
        self.clocks = arrays["clocks"]
        block = BLOCK if self.width == 1 else 1
        self.totals = arrays["totals"].view(np.uint64)
        self.totals = self.totals.reshape(-1, self.capacity, block, self.width)
