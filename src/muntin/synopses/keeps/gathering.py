"""The lines of blocks, and the kernels that read parts of groups from all of them at once.

A line is the numbers by which a kernel finds what a block has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numba.np.numpy_support import carray

from muntin._compiled import compiled, compiled_short
from muntin._typing import Bools, Ints
from muntin.aggregates.columns.codes import NOTHING

# A block's line: its first and last slice, how many runs it has, where their groups, cells and
# ends are, and the slices of entries; then for each part where its numbers are, how many an entry
# has, the first limb's weight, and where running totals are.
_FIRST, _LAST, _RUNS, _GROUPS, _CODES, _ENDS, _SLICES = range(7)
HEAD = 7
_NUMBERS, _WIDTH, _BASE, TOTALS = range(4)
STEP = 4
# Widths that stand for an extreme, and for a part that only its own column can combine.
EXTREME, OTHER = -1, -2
# Short runs are added up as fast as running totals are read.
_SHORT = 32

_POINTER: Any = types.CPointer(types.int64)  # type: ignore[no-untyped-call]


def _pointers() -> Any:
    """A function for kernels that makes a pointer to integers of an address."""

    @intrinsic
    def pointer(context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return _POINTER(types.int64), generate

    return pointer


_pointer = _pointers()


@compiled
def _array(address: int, size: int) -> Ints:
    """The integers at an address, whose holder outlives the call."""
    found: Ints = carray(_pointer(address), size)
    return found


@compiled
def gather(
    table: Ints,
    columns: Ints,
    wanted: Bools,
    groups: Ints,
    every: bool,
    rows: Ints,
    size: int,
    low: int,
    high: int,
) -> tuple[Ints, Ints]:
    """The numbers of each part, part by part and row by row; and the width and base of each."""
    forms = _forms(table, columns)
    out = _blank(forms, size)
    for b in range(table.shape[0]):
        line = table[b]
        runs = line[_RUNS]
        if runs == 0 or line[_FIRST] >= high or line[_LAST] < low:
            continue
        run_groups = _array(line[_GROUPS], runs)
        run_codes = _array(line[_CODES], runs)
        ends = _array(line[_ENDS], runs + 1)
        slices = _array(line[_SLICES], ends[runs])
        for i in range(runs if every else groups.shape[0]):
            group = run_groups[i] if every else groups[i]
            row = int(rows[group]) if rows.shape[0] else 0
            if row < 0:
                continue
            run = i if every else int(np.searchsorted(run_groups, group))
            while run < runs and run_groups[run] == group:
                if wanted[run_codes[run]]:
                    start, stop = ends[run], ends[run + 1]
                    if low > line[_FIRST]:
                        start = _first_from(slices, start, stop, low)
                    if high <= line[_LAST]:
                        stop = _first_from(slices, start, stop, high)
                    if start < stop:
                        _take(line, columns, forms, start, stop, row, size, out)
                run += 1
                if every:
                    break
    return out, forms


@compiled
def one_group(
    table: Ints,
    columns: Ints,
    wanted: Bools,
    group: int,
    low: int,
    high: int,
    inner_low: int,
    inner_high: int,
) -> Ints:
    """The widths of all parts, their bases, and their numbers in both windows."""
    groups, rows = np.full(1, group, np.int64), np.empty(0, np.int64)
    found, forms = gather(table, columns, wanted, groups, False, rows, 1, low, high)
    inner = found
    if inner_low != low or inner_high != high:
        inner = gather(
            table, columns, wanted, groups, False, rows, 1, inner_low, inner_high
        )[0]  # fmt: skip
    count, size = forms.shape[0], found.shape[0]
    out = np.empty(2 * (count + size), np.int64)
    out[:count] = forms[:, 0]
    out[count : 2 * count] = forms[:, 1]
    out[2 * count : 2 * count + size] = found
    out[2 * count + size :] = inner
    return out


@compiled_short
def one_group_short(
    table: Ints,
    columns: Ints,
    wanted: Bools,
    group: int,
    low: int,
    high: int,
    inner_low: int,
    inner_high: int,
) -> Ints:
    """As `one_group`, with the interpreter's lock."""
    return one_group(table, columns, wanted, group, low, high, inner_low, inner_high)


@compiled
def _forms(table: Ints, columns: Ints) -> Ints:
    """How wide the numbers of each part are over all blocks, and where they begin."""
    forms = np.zeros((columns.shape[0], 2), np.int64)
    for i in range(columns.shape[0]):
        at = HEAD + STEP * columns[i]
        low, high = np.int64(1 << 62), np.int64(0)
        for b in range(table.shape[0]):
            width = table[b, at + _WIDTH]
            if width < 0:
                forms[i, 0] = min(forms[i, 0], width)
            elif width > 0:
                low = min(low, table[b, at + _BASE])
                high = max(high, table[b, at + _BASE] + width)
        if forms[i, 0] == 0 and high > 0:
            forms[i, 0], forms[i, 1] = high - low, low
    return forms


@compiled
def _blank(forms: Ints, size: int) -> Ints:
    """Room for the numbers of all parts: zeros, and no value for extremes."""
    total = 0
    for i in range(forms.shape[0]):
        total += size if forms[i, 0] == EXTREME else size * max(forms[i, 0], 0)
    out = np.zeros(total, np.int64)
    at = 0
    for i in range(forms.shape[0]):
        if forms[i, 0] == EXTREME:
            out[at : at + size] = NOTHING
            at += size
        else:
            at += size * max(forms[i, 0], 0)
    return out


@compiled
def _first_from(slices: Ints, start: int, stop: int, bound: int) -> int:
    """The first of some ascending numbers that is not below a bound."""
    while start < stop:
        middle = (start + stop) >> 1
        if slices[middle] < bound:
            start = middle + 1
        else:
            stop = middle
    return start


@compiled
def _least(codes: Ints) -> int:
    """The smallest of some codes."""
    best = NOTHING
    for i in range(codes.shape[0]):
        best = min(best, codes[i])
    return best


@compiled
def _add(numbers: Ints, width: int, out: Ints) -> None:
    """Add up rows of so many numbers; widths that are known are added several at once."""
    if width == 1:
        total = np.int64(0)
        for i in range(numbers.shape[0]):
            total += numbers[i]
        out[0] += total
    elif width == 2:
        low, high = np.int64(0), np.int64(0)
        for i in range(numbers.shape[0] // 2):
            low += numbers[2 * i]
            high += numbers[2 * i + 1]
        out[0] += low
        out[1] += high
    # Sums that are all zero have no numbers.
    elif width > 0:
        for i in range(numbers.shape[0] // width):
            for k in range(width):
                out[k] += numbers[i * width + k]


@compiled
def _take(
    line: Ints, columns: Ints, forms: Ints, start: int, stop: int, row: int, size: int, out: Ints
) -> None:
    """Combine a range of entries into a row, part by part."""
    at = 0
    for i in range(columns.shape[0]):
        part = HEAD + STEP * columns[i]
        wide = forms[i, 0]
        if wide == EXTREME:
            codes = _array(line[part + _NUMBERS], stop)
            out[at + row] = min(out[at + row], _least(codes[start:stop]))
            at += size
        elif wide > 0:
            width = line[part + _WIDTH]
            target = at + row * wide + line[part + _BASE] - forms[i, 1]
            if line[part + TOTALS] != 0 and stop - start > _SHORT:
                totals = _array(line[part + TOTALS], (stop + 1) * width)
                for k in range(width):
                    out[target + k] += totals[stop * width + k] - totals[start * width + k]
            else:
                numbers = _array(line[part + _NUMBERS], stop * width)
                _add(numbers[start * width :], width, out[target : target + width])
            at += size * wide
