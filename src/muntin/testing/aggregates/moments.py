"""Variances, skewness and kurtosis, covariances and regressions."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import pyarrow as pa

from muntin.testing.aggregates.meaning import Rows, aggregate, given, to_float


def _spread(rows: Rows, correction: int) -> float | None:
    """The exact (n Σx² − (Σx)²) / (n (n − correction)), rounded once."""
    values = given(rows)
    n = len(values)
    if n <= correction:
        return None
    if not all(math.isfinite(value) for value in values):
        return math.nan
    exact = [Fraction(value) for value in values]
    numerator = n * sum(x * x for x in exact) - sum(exact) ** 2
    return to_float(Fraction(numerator) / (n * (n - correction)))


@aggregate("var_pop")
def _var_pop(rows: Rows, _type: pa.DataType) -> float | None:
    return _spread(rows, 0)


@aggregate("var_samp")
def _var_samp(rows: Rows, _type: pa.DataType) -> float | None:
    return _spread(rows, 1)


@aggregate("stddev_pop")
def _stddev_pop(rows: Rows, _type: pa.DataType) -> float | None:
    variance = _spread(rows, 0)
    return None if variance is None else math.sqrt(variance)


@aggregate("stddev_samp")
def _stddev_samp(rows: Rows, _type: pa.DataType) -> float | None:
    variance = _spread(rows, 1)
    return None if variance is None else math.sqrt(variance)


def _shape(rows: Rows, power: int) -> float | None:
    """The mean power of the distances from the mean over that of the deviation."""
    values = given(rows)
    if not all(math.isfinite(value) for value in values):
        return math.nan
    exact = [Fraction(value) for value in values]
    mean = Fraction(sum(exact)) / max(len(exact), 1)
    variance = Fraction(sum((x - mean) ** 2 for x in exact)) / max(len(exact), 1)
    if not variance:
        return None
    moment = Fraction(sum((x - mean) ** power for x in exact)) / len(exact)
    if power == 4:
        return to_float(moment / variance**2 - 3)
    return _signed_root(moment, moment**2 / variance**3)


def _signed_root(sign: Fraction | int, square: Fraction) -> float:
    """The root of a square, in 60 digits, with the sign of another number."""
    with localcontext(prec=60):
        root = (Decimal(square.numerator) / Decimal(square.denominator)).sqrt()
    return -float(root) if sign < 0 else float(root)


@aggregate("skewness")
def _skewness(rows: Rows, _type: pa.DataType) -> float | None:
    return _shape(rows, 3)


@aggregate("kurtosis")
def _kurtosis(rows: Rows, _type: pa.DataType) -> float | None:
    return _shape(rows, 4)


def _pairs(rows: Rows) -> list[tuple[Any, Any]]:
    return [(row[1], row[2]) for row in rows if row[1] is not None and row[2] is not None]


def _sums_of_pairs(
    rows: Rows, least: int, *, by_x: bool = False
) -> tuple[int, Fraction, Fraction, Fraction, Fraction, Fraction] | float | None:
    """The count, the means of y and x, and n times the covariance and the variances of x and y.

    NaN for special values; NULL where x, which has a single one, decides ``by_x``.
    """
    pairs = _pairs(rows)
    n = len(pairs)
    if n < least:
        return None
    if not all(math.isfinite(value) for pair in pairs for value in pair):
        constant = len({x for _, x in pairs}) == 1 and math.isfinite(pairs[0][1])
        return None if by_x and constant else math.nan
    exact = [(Fraction(y), Fraction(x)) for y, x in pairs]
    mean_y, mean_x = (Fraction(sum(each)) / n for each in zip(*exact, strict=True))
    together = Fraction(sum((y - mean_y) * (x - mean_x) for y, x in exact))
    spread_x = Fraction(sum((x - mean_x) ** 2 for _, x in exact))
    spread_y = Fraction(sum((y - mean_y) ** 2 for y, _ in exact))
    return n, mean_y, mean_x, together, spread_x, spread_y


@aggregate("covar_pop")
def _covar_pop(rows: Rows, _type: pa.DataType) -> float | None:
    sums = _sums_of_pairs(rows, 1)
    return to_float(sums[3] / sums[0]) if isinstance(sums, tuple) else sums


@aggregate("covar_samp")
def _covar_samp(rows: Rows, _type: pa.DataType) -> float | None:
    sums = _sums_of_pairs(rows, 2)
    return to_float(sums[3] / (sums[0] - 1)) if isinstance(sums, tuple) else sums


@aggregate("corr")
def _corr(rows: Rows, _type: pa.DataType) -> float | None:
    sums = _sums_of_pairs(rows, 2)
    if not isinstance(sums, tuple):
        return sums
    together, spread = sums[3], sums[4] * sums[5]
    return _signed_root(together, together**2 / spread) if spread else None


@aggregate("regr_slope")
def _regr_slope(rows: Rows, _type: pa.DataType) -> float | None:
    sums = _sums_of_pairs(rows, 2, by_x=True)
    if not isinstance(sums, tuple):
        return sums
    return to_float(sums[3] / sums[4]) if sums[4] else None


@aggregate("regr_intercept")
def _regr_intercept(rows: Rows, _type: pa.DataType) -> float | None:
    sums = _sums_of_pairs(rows, 2, by_x=True)
    if not isinstance(sums, tuple):
        return sums
    return to_float(sums[1] - sums[3] / sums[4] * sums[2]) if sums[4] else None


@aggregate("regr_r2")
def _regr_r2(rows: Rows, _type: pa.DataType) -> float | None:
    sums = _sums_of_pairs(rows, 2, by_x=True)
    if not isinstance(sums, tuple):
        return sums
    _, _, _, together, spread_x, spread_y = sums
    if not spread_x:
        return None
    return to_float(together**2 / (spread_x * spread_y)) if spread_y else 1.0
