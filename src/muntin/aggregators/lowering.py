"""Answers from sums of limbs, as the aggregates themselves would round them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates import rounding_kernels as rounding
from muntin.aggregates.exact_kernels import ORIGIN
from muntin.aggregates.moment_kernels import variances
from muntin.aggregates.sums import Avg
from muntin.aggregators import limb_rounding_kernels as kernels
from muntin.aggregators.contract import Ints
from muntin.aggregators.encoding import Bools

Doubles = npt.NDArray[np.float64]
# Rows of lanes, the first lane of the limbs, and where they lie.
Part = tuple[Ints, int, Any]
_NO_DIVISORS = np.zeros(0, np.uint64)


def lower(
    aggregate: Any,
    total: Part,
    squares: Part,
    rows: Ints,
    marks: Ints | None,
    out: npt.NDArray[Any],
) -> Bools | None:
    """The answers of sum, avg, and the spreads; which of them are NULL."""
    if marks is not None:
        rows = marks[:, 0]
    if squares[2] is not None:
        return _lower_spread(aggregate, total, squares, rows, marks, out)
    if pa.types.is_integer(aggregate.type):
        _lower_integers(aggregate.name, total, out)
    else:
        _lower_doubles(total, out)
        if marks is not None:
            _, nans, ups, downs = marks.T
            out[ups > 0] = np.inf
            out[downs > 0] = -np.inf
            out[(nans > 0) | ((ups > 0) & (downs > 0))] = np.nan
        if isinstance(aggregate, Avg):
            out /= np.maximum(rows, 1)
    return None if marks is None else rows == 0


def _lower_doubles(part: Part, out: Doubles) -> None:
    lanes, _, limbs = part
    if limbs.count == 0:
        # Only zeros were seen.
        out[:] = 0.0
        return
    if limbs.base < -1074:
        gathered, base = _gathered(part)
        out[:] = rounding.to_doubles(gathered, base).view(np.float64)
        return
    places = limbs.base + limbs.width * np.arange(limbs.count)
    # Far from denormal numbers, room is left above, so that only the answer can overflow.
    lasts = np.where(places >= 0, 2.0**512, 1.0)
    units = np.ldexp(1.0 / lasts, places)
    if limbs.count == 1:
        with np.errstate(over="ignore"):
            out[:] = lanes[:, 0] * units[0] * lasts[0]
    elif limbs.count == 2:
        kernels.round_pairs(lanes, limbs.width, units[0], lasts[0], out)
    else:
        kernels.round_many(lanes, limbs.count, limbs.width, units, lasts, out)


def _gathered(part: Part) -> tuple[Ints, int]:
    """The exact accumulators' limbs, and the place of the first."""
    lanes, column, limbs = part
    first = max(limbs.base + ORIGIN, 0) >> 5
    end = (max(limbs.top + ORIGIN, 0) >> 5) + 3
    out: Ints = np.zeros((len(lanes), end - first), np.int64)
    kernels.gather_limbs(lanes, column, limbs.count, limbs.base, limbs.width, out, first)
    return out, first


def _lower_integers(name: str, part: Part, out: Ints) -> None:
    lanes, column, limbs = part
    if limbs.count < 2:
        out[:] = lanes[:, column] if limbs.count else 0
        return
    gathered, first = _gathered(part)
    words: Ints = np.zeros((len(lanes), 2), np.int64)
    failed = rounding.to_words(gathered, first, words) | (words[:, 1] != words[:, 0] >> 63)
    if failed.any():
        raise OverflowError(f"{name} is outside BIGINT")
    out[:] = words[:, 0]


def _lower_spread(
    aggregate: Any, total: Part, squares: Part, rows: Ints, marks: Ints | None, out: Doubles
) -> Bools:
    sums, sum_base = _gathered(total)
    squared, square_base = _gathered(squares)
    bits = variances(
        sums, sum_base, squared, square_base, np.ascontiguousarray(rows), aggregate.ddof,
        _NO_DIVISORS,
    )  # fmt: skip
    out[:] = bits.view(np.float64)
    if marks is not None:
        out[(marks[:, 1:] != 0).any(axis=1)] = np.nan
    if aggregate.name.startswith("stddev"):
        np.sqrt(out, out=out)
    nulls: Bools = rows <= aggregate.ddof
    return nulls
