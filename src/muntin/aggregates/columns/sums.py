"""Exact sums, and sums of squares, as a column of integer limbs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._typing import Bools, Ints
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.arrow_views import (
    as_lists,
    as_rows,
    decimal_words,
    double_bits,
    integers,
    live_cells,
)
from muntin.aggregates.columns.column import AdditiveColumn, Slide, Sums, grown
from muntin.aggregates.exact import doubles as double_kernels
from muntin.aggregates.exact import limbs as kernels
from muntin.aggregates.exact import logarithms, rounding
from muntin.aggregates.products import exp2_units
from muntin.errors import DataError

# A limb has room for this many numbers, less the one unit that settling leaves behind.
LOAD_LIMIT = 2**31 - 2
# Most sums take three to five limbs.
WIDE = 6
_Adder = Callable[[Ints, int, Ints, Ints], None]
_Adders = dict[bool, tuple[_Adder, int]]
# By whether squares are summed: the kernel, and how many limbs it adds to.
_INTEGER_ADDERS: _Adders = {
    False: (kernels.add_integers, 2),
    True: (kernels.add_integer_squares, 5),
}
_DECIMAL_ADDERS: _Adders = {
    False: (kernels.add_decimals, 4),
    True: (kernels.add_decimal_squares, 8),
}
_NO_SPECIALS = np.zeros((0, 3), np.int64)


def align(columns: Sequence[SumColumn]) -> None:
    """Let all columns have the same window of exponents, and specials if any has them."""
    wide = [each for each in columns if each.limbs.shape[1]]
    if wide:
        low = min(each.base for each in wide)
        high = max(each.base + each.limbs.shape[1] for each in wide)
        for each in columns:
            each.widen(low, high)
    if any(each.specials is not None for each in columns):
        for each in columns:
            each.keep_specials()


class SumColumn(AdditiveColumn):
    """An exact sum a cell: limbs over a window of exponents that all cells share.

    The window, limbs `base` to `base + width`, widens when a number falls outside it. `load`
    bounds every limb: none exceeds `load * 2**32`. Carries are settled before a limb could
    overflow. NaN and infinities are counted apart, in `specials`, from the first one on.
    """

    special_kinds = 3

    def __init__(
        self, part: Part, limbs: Ints, base: int, load: int, specials: Ints | None
    ) -> None:
        super().__init__(part)
        self.limbs = limbs
        self.base = base
        self.load = load
        self.specials = specials

    @classmethod
    def empty(cls, part: Part, size: int) -> Self:
        """Zero sums that hold no limbs yet."""
        return cls(part, np.zeros((size, 0), np.int64), kernels.ONE_LIMB, 0, None)

    def blank(self, size: int) -> Self:
        """Zero sums over the same window of exponents, unless that is unusually wide."""
        if self.limbs.shape[1] > WIDE:
            return self.empty(self.part, size)
        limbs = np.zeros((size, self.limbs.shape[1]), np.int64)
        return type(self)(self.part, limbs, self.base, 0, None)

    def __len__(self) -> int:
        return len(self.limbs)

    @property
    def nbytes(self) -> int:
        """Eight bytes a limb, and 24 a cell once a NaN or infinity was seen."""
        return self.limbs.nbytes + (0 if self.specials is None else self.specials.nbytes)

    def update(self, cells: Ints, args: tuple[pa.Array, ...], times: Ints | None = None) -> None:
        """Add the first argument, or its square, of rows where no argument is NULL."""
        values = args[0]
        cells = live_cells(cells, *args)
        self._reserve(len(cells))
        squares = self.part.kind in ("sum_squares", "squares_given")
        if pa.types.is_uint64(values.type):
            values = values.cast(pa.decimal128(20, 0))
        if pa.types.is_floating(values.type):
            self._add_doubles(cells, double_bits(values), squares)
        elif pa.types.is_decimal(values.type):
            add, reach = _DECIMAL_ADDERS[squares]
            self._add_integers(add, reach, cells, decimal_words(values))
        else:
            add, reach = _INTEGER_ADDERS[squares]
            self._add_integers(add, reach, cells, integers(values))

    def _add_integers(self, add: _Adder, reach: int, cells: Ints, values: Ints) -> None:
        self.widen(kernels.ONE_LIMB, kernels.ONE_LIMB + reach)
        add(self.limbs, kernels.ONE_LIMB - self.base, cells, values)

    def _add_doubles(self, cells: Ints, bits: Ints, squares: bool) -> None:
        add = double_kernels.add_double_squares if squares else double_kernels.add_doubles
        scale, reach = (2, 5) if squares else (1, 3)
        row = 0
        while row < len(cells):
            row = add(self.limbs, self._marks(), self.base, cells, bits, row)
            if row == len(cells):
                return
            # One look at the rest, so that a batch stops for its exponents only once.
            low, high = double_kernels.double_range(cells, bits, row, scale, reach)
            if low < high:
                self.widen(low, high)
            if not np.isfinite(bits[row : row + 1].view(np.float64)[0]):
                self.keep_specials()

    def _marks(self) -> Ints:
        """The specials for a kernel, which takes no None."""
        return _NO_SPECIALS if self.specials is None else self.specials

    def keep_specials(self) -> None:
        """Count NaN and infinities from now on, if they are not counted yet."""
        if self.specials is None:
            self.specials = np.zeros((len(self), self.special_kinds), np.int64)

    def merge(self, cells: Ints, other: Self) -> None:
        """Add the sums."""
        added = other.load * len(cells)
        if self.load + added > LOAD_LIMIT:
            other.settle()
            added = len(cells)
        self._reserve(added)
        width = other.limbs.shape[1]
        if width:
            self.widen(other.base, other.base + width)
            kernels.add_limbs(self.limbs, other.base - self.base, cells, other.limbs)
        if other.specials is not None:
            self.keep_specials()
            kernels.add_limbs(self._marks(), 0, cells, other.specials)

    def take(self, indices: Ints) -> Self:
        """The sums at `indices`."""
        specials = None if self.specials is None else self.specials[indices]
        return type(self)(self.part, self.limbs[indices], self.base, self.load, specials)

    def slide(self, starts: Ints, ends: Ints) -> Self:
        """Differences of running totals: exact, because nothing is rounded."""
        longest = max(int(np.max(ends - starts, initial=0)), 1)
        return cast("Self", self.sliding(longest)(starts, np.maximum(starts, ends)))

    def sliding(self, longest: int) -> Slide:
        """Running totals, made once."""
        if self.load * longest > LOAD_LIMIT:
            self.settle()
        totals = kernels.running_totals(self.limbs)
        marks = None if self.specials is None else kernels.running_totals(self.specials)
        base, load = self.base, self.load * longest

        def slide(starts: Ints, ends: Ints) -> SumColumn:
            limbs = kernels.differences(totals, starts, ends)
            specials = None if marks is None else kernels.differences(marks, starts, ends)
            return type(self)(self.part, limbs, base, load, specials)

        return slide

    def summed(self, sums: Sums, others: Sequence[Self] = ()) -> Self:
        """Sums of limbs, with room for the carries of all cells."""
        columns = (self, *others)
        if sum(each.load * len(each) for each in columns) > LOAD_LIMIT:
            for each in columns:
                each.settle()
        align(columns)
        load = max(sum(each.load * len(each) for each in columns), self.load)
        marks = [each.specials for each in columns if each.specials is not None]
        specials = sums(*marks) if marks else None
        limbs = sums(*(each.limbs for each in columns))
        return type(self)(self.part, limbs, self.base, load, specials)

    def resize(self, size: int) -> None:
        """Grow with zeros."""
        self.limbs = grown(self.limbs, size)  # type: ignore[assignment]
        if self.specials is not None:
            self.specials = grown(self.specials, size)  # type: ignore[assignment]

    def settle(self) -> None:
        """Move carries up, so that every limb but the top one lies in [0, 2**32).

        The values stay as they are; a top limb that has grown large gets another one above it.
        """
        if self.load > 1 and self.limbs.shape[1]:
            while kernels.settle_carries(self.limbs) >= 2**31:
                self.widen(self.base, self.base + self.limbs.shape[1] + 1)
        self.load = min(self.load, 1)

    def normalize(self) -> None:
        """Settle all carries: equal sums then have equal limbs, and the top one has 32 bits."""
        while self.limbs.shape[1] and kernels.settle_carries(self.limbs) >= 2**31:
            self.widen(self.base, self.base + self.limbs.shape[1] + 1)
        self.load = min(self.load, 1)

    def negate(self) -> None:
        """Change the sign of every sum of finite values."""
        np.negative(self.limbs, out=self.limbs)

    def reserve(self, base: int, width: int, added: int) -> None:
        """Make room for `added` numbers in any one cell, over `width` limbs from `base` on."""
        self._reserve(added)
        self.widen(base, base + width)

    def add_specials(self, cells: Ints, marks: Ints) -> None:
        """Add counts of what is counted apart."""
        self.keep_specials()
        kernels.add_limbs(self._marks(), 0, cells, marks)

    def _reserve(self, added: int) -> None:
        """Make room for `added` numbers in any one cell."""
        if self.load + added > LOAD_LIMIT:
            self.settle()
        if self.load + added > LOAD_LIMIT:
            raise DataError(
                f"{added} rows in one batch", hint="feed batches of fewer than 2**31 rows"
            )
        self.load += added

    def widen(self, low: int, high: int) -> None:
        """Make the window cover limbs `low` to `high`."""
        width = self.limbs.shape[1]
        if width:
            low, high = min(low, self.base), max(high, self.base + width)
            if (low, high) == (self.base, self.base + width):
                return
        limbs = np.zeros((len(self), high - low), np.int64)
        limbs[:, self.base - low : self.base - low + width] = self.limbs
        self.limbs, self.base = limbs, low

    def doubles(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The sums, each rounded once to the nearest double."""
        out = rounding.to_doubles(self.limbs, self.base).view(np.float64)
        if self.specials is not None:
            nans, ups, downs = self.specials.T
            out[ups > 0] = np.inf
            out[downs > 0] = -np.inf
            out[(nans > 0) | ((ups > 0) & (downs > 0))] = np.nan
        return out

    def words(self) -> tuple[Ints, Bools]:
        """Sums of integers or decimals as 128-bit integers, and which do not fit."""
        words = np.zeros((len(self), 2), np.int64)
        return words, rounding.to_words(self.limbs, self.base, words)

    def units(self, cell: int) -> int:
        """One sum as a Python integer, in units of the first limb of the grid."""
        return sum(int(limb) << (32 * (self.base + k)) for k, limb in enumerate(self.limbs[cell]))

    def to_arrow(self) -> pa.RecordBatch:
        """Limbs as lists of one length; the window and load as metadata."""
        if self.limbs.shape[1] == 0:
            self.widen(self.base, self.base + 1)
        columns = {"limbs": as_lists(self.limbs)}
        if self.specials is not None:
            columns["specials"] = as_lists(self.specials)
        metadata = {"base": str(self.base), "load": str(self.load)}
        return pa.RecordBatch.from_pydict(columns).replace_schema_metadata(metadata)

    @classmethod
    def from_arrow(cls, part: Part, batch: pa.RecordBatch) -> Self:
        """The sums of a snapshot."""
        metadata = batch.schema.metadata
        specials = as_rows(batch.column("specials")) if "specials" in batch.schema.names else None
        base, load = int(metadata[b"base"]), int(metadata[b"load"])
        return cls(part, as_rows(batch.column("limbs")), base, load, specials)


_BASE = 65
_WIDTH = 4


class LogColumn(SumColumn):
    """log2|x| summed in units of 2**-96; `specials` count zeros, negatives, NaN and infinities."""

    special_kinds = 4

    def update(self, cells: Ints, args: tuple[pa.Array, ...], times: Ints | None = None) -> None:
        """Add the logarithms of the values that are not NULL."""
        cells = live_cells(cells, args[0])
        bits = double_bits(args[0])
        # A logarithm's limbs reach up to twice what a number's do.
        self._reserve(2 * len(cells))
        self.widen(_BASE, _BASE + _WIDTH)
        row = 0
        while row < len(cells):
            row = logarithms.add_logs(self.limbs, self._marks(), cells, bits, row)
            if row < len(cells):
                self.keep_specials()

    def powers(self, counts: Ints, mean: bool) -> npt.NDArray[np.float64]:
        """Two to each sum, or to each sum divided by its count; specials are not looked at."""
        self.widen(_BASE, _BASE + _WIDTH)
        out = logarithms.powers(self.limbs, counts, mean).view(np.float64)
        if mean:
            # Counts too large for the kernel's division; a handful of cells in a lifetime.
            for cell in np.flatnonzero(counts >= 2**31).tolist():
                out[cell] = exp2_units((self.units(cell) >> (32 * _BASE)) // int(counts[cell]))
        return out
