"""Arrow arrays as numpy arrays, without copies where the layout allows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Ints


def buffer_view(
    array: pa.Array, dtype: type[np.generic], words: int = 1
) -> npt.NDArray[np.generic]:
    """The values buffer of a fixed-width array as `words` items a value; NULL slots hold anything.

    >>> buffer_view(pa.array([1, None, 3])[1:], np.int64)[1]
    np.int64(3)
    """
    if len(array) == 0:
        return np.empty(0, dtype)
    flat: npt.NDArray[np.generic] = np.frombuffer(array.buffers()[1], dtype=dtype)
    return flat[array.offset * words : (array.offset + len(array)) * words]


def integers(array: pa.Array) -> Ints:
    """Integers, booleans, dates, times and timestamps as 64-bit integers."""
    kind = array.type
    if not pa.types.is_integer(kind):
        width = kind.bit_width
        array = (
            array.cast(pa.int8())
            if width == 1
            else array.view(pa.int32() if width == 32 else pa.int64())
        )
    if array.type != pa.int64():
        array = array.cast(pa.int64())
    return buffer_view(array, np.int64)  # type: ignore[return-value]


def double_bits(array: pa.Array) -> Ints:
    """Numbers cast to DOUBLE, as the bits of the doubles."""
    if pa.types.is_decimal(array.type):
        # Arrow scales decimals by inexact powers of ten; its parser rounds correctly.
        array = array.cast(pa.string())
    if array.type != pa.float64():
        # Rounding is what a cast to DOUBLE does: the safe cast would refuse large integers.
        array = array.cast(pa.float64(), safe=False)
    return buffer_view(array, np.int64)  # type: ignore[return-value]


def decimal_words(array: pa.Array) -> Ints:
    """Decimals as unscaled 128-bit integers: pairs of words, low word first."""
    return buffer_view(array, np.int64, 2).reshape(-1, 2)  # type: ignore[return-value]


def valid_mask(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Which values are not NULL; None if all are."""
    if array.null_count == 0:
        return None
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False))


def live_cells(cells: Ints, *args: pa.Array) -> Ints:
    """The cells, -1 where an argument is NULL."""
    for array in args:
        if len(array) != len(cells):
            raise ValueError(f"{len(array)} values for {len(cells)} rows")
        if array.null_count == len(array):
            # Arrays of the null type have no bitmap at all.
            return np.full(len(cells), -1, np.int64)
        if array.null_count:
            cells = keep_set(cells, _bitmap(array, 0), array.offset)
    return cells


def true_cells(cells: Ints, array: pa.Array) -> Ints:
    """The cells, -1 where a boolean is not true."""
    return keep_set(live_cells(cells, array), _bitmap(array, 1), array.offset)


def _bitmap(array: pa.Array, index: int) -> npt.NDArray[np.uint8]:
    buffer = array.buffers()[index]
    return np.empty(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)


def as_lists(rows: Ints) -> pa.Array:
    """Rows of integers as lists of one length."""
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])


def as_rows(lists: pa.Array) -> Ints:
    """A copy of lists of one length as rows of integers."""
    return np.array(lists.flatten().to_numpy().reshape(len(lists), lists.type.list_size))


@compiled
def count_rows(counts: Ints, cells: Ints) -> None:
    """Count each row in its cell; -1 skips a row."""
    for i in range(cells.shape[0]):
        if cells[i] >= 0:
            counts[cells[i]] += 1


@compiled
def add_counts(counts: Ints, cells: Ints, others: Ints) -> None:
    """Add other counters to the cells they go to."""
    for i in range(cells.shape[0]):
        if cells[i] >= 0:
            counts[cells[i]] += others[i]


@compiled
def keep_set(cells: Ints, bitmap: npt.NDArray[np.uint8], offset: int) -> Ints:
    """The cells, -1 where the row's bit is not set."""
    out = np.empty_like(cells)
    for i in range(cells.shape[0]):
        at = offset + i
        bit = np.int64(bitmap[at >> 3] >> (at & 7)) & 1
        # All ones where the bit is clear: no branch that random bits would mispredict.
        out[i] = cells[i] | (bit - 1)
    return out
