"""Rounding a DOUBLE half up, as its shortest decimal text would be rounded.

Spark rounds the number that is printed: round(2.675, 2) is 2.68, although the nearest DOUBLE is a
little below 2.675. The text is needed only where a number has about as many digits as a DOUBLE
can tell apart; elsewhere a few exact floating-point comparisons decide.
"""

from __future__ import annotations

import numpy as np
import polars as pl

# Decimals of up to 15 digits are told apart by a DOUBLE; the halfway points need one more digit.
SAFE = 10.0**14
# From here on neighbours are at least one unit of the last kept digit apart.
LARGE = 2.0**53


def half_up(value: pl.Expr, digits: int, dtype: pl.DataType) -> pl.Expr:
    """Rounded to so many digits behind the point."""

    def compute(column: pl.Series) -> pl.Series:
        numbers = column.to_numpy().astype(np.float64)
        return pl.Series(_round(numbers, digits), dtype=dtype)

    computed = value.map_batches(compute, return_dtype=dtype, is_elementwise=True)
    return pl.when(value.is_not_null()).then(computed)


def _round(numbers: np.ndarray, digits: int) -> np.ndarray:
    unit = 10.0**digits
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.abs(numbers)
        near = np.rint(size * unit)
        # Both halfway points around the candidate are correctly rounded quotients of integers.
        near = near - (size < (2 * near - 1) / (2 * unit)) + (size >= (2 * near + 1) / (2 * unit))
        result = np.copysign(near / unit, numbers)
        scaled = size * unit
    result = np.where(near == 0, 0.0, result)
    result = np.where((scaled < LARGE) & np.isfinite(numbers), result, numbers)
    close = (scaled >= SAFE) & (scaled < LARGE)
    if close.any():
        result[close] = _by_text(numbers[close], digits)
    return result


def _by_text(numbers: np.ndarray, digits: int) -> np.ndarray:
    """The few numbers with too many digits for the comparisons above, through their text."""
    exact = pl.Series(np.abs(numbers)).cast(pl.String).str.to_decimal(scale=18)
    unit = pl.lit(10 ** (18 - digits), dtype=pl.Int128)
    unscaled = exact.to_physical().rename("x").to_frame()
    whole = unscaled.select((pl.col("x") + unit // 2).floordiv(unit)).to_series()
    text = whole.cast(pl.String) + f"e-{digits}"
    result: np.ndarray = np.copysign(text.cast(pl.Float64).to_numpy(), numbers)
    return result
