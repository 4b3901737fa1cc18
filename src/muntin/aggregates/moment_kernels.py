"""The loop that reads variances off exact sums: integer arithmetic up to one rounding."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.aggregates.exact_kernels import LOW32, ORIGIN, Digits, Ints, multiply
from muntin.aggregates.rounding_kernels import round_digits, to_digits
from muntin.compiled import compiled

_ZERO = np.uint64(0)
_32U = np.uint64(32)
_LOW32U = np.uint64(LOW32)


@compiled
def variances(
    sums: Ints,
    sum_base: int,
    squares: Ints,
    square_base: int,
    counts: Ints,
    ddof: int,
    divisors: Digits,
) -> npt.NDArray[np.uint64]:
    """(n * squares - sums**2) / (n * (n - ddof) * divisors), rounded once, as bits.

    Cells with too few rows, or with 2**32 and more, are left zero. Each divisor is below 2**32.
    """
    out = np.zeros(counts.shape[0], np.uint64)
    a = np.zeros(sums.shape[1] + 2, np.uint64)
    b = np.zeros(squares.shape[1] + 2, np.uint64)
    product = np.zeros(2 * a.shape[0], np.uint64)
    # The square of a sum lies on the same grid, at twice its distance from 2**0.
    product_base = 2 * sum_base - ORIGIN // 32
    low = min(square_base, product_base)
    high = max(square_base + b.shape[0], product_base + product.shape[0]) + 2
    total = np.zeros(high - low, np.uint64)
    quotient = np.zeros(divisors.shape[0] + 6, np.uint64)
    for cell in range(counts.shape[0]):
        n = counts[cell]
        if n <= ddof or n > LOW32:
            continue
        a_size, _ = to_digits(sums[cell], a)
        b_size, _ = to_digits(squares[cell], b)
        multiply(a, a_size, a, a_size, product)
        total[:] = _ZERO
        _add_scaled(total, square_base - low, b, b_size, np.uint64(n))
        size = _subtract(total, product_base - low, product, 2 * a_size)
        exponent = 32 * low - ORIGIN
        out[cell] = _divide(
            total, size, exponent, quotient, np.uint64(n), np.uint64(n - ddof), divisors
        )
    return out


@compiled
def _add_scaled(total: Digits, at: int, digits: Digits, size: int, factor: np.uint64) -> None:
    """Put digits * factor into a total of zeros, its first digit at `at`."""
    carry = _ZERO
    for k in range(size):
        value = digits[k] * factor + carry
        total[at + k] = value & _LOW32U
        carry = value >> _32U
    total[at + size] = carry


@compiled
def _subtract(total: Digits, at: int, digits: Digits, size: int) -> int:
    """Subtract digits from a total that is no smaller; returns how many digits are left."""
    borrow = _ZERO
    for k in range(at, total.shape[0]):
        taken = borrow + (digits[k - at] if k - at < size else _ZERO)
        borrow = np.uint64(1) if total[k] < taken else _ZERO
        total[k] = (total[k] - taken) & _LOW32U
    left = len(total)
    while left > 0 and total[left - 1] == _ZERO:
        left -= 1
    return left


@compiled
def _divide(
    total: Digits,
    size: int,
    exponent: int,
    quotient: Digits,
    n: np.uint64,
    m: np.uint64,
    divisors: Digits,
) -> np.uint64:
    """Round total * 2**exponent / (n * m * divisors) once, as bits.

    Dividing by one factor after the other leaves the same whole quotient as dividing by their
    product; any remainder on the way only says that something was left below it.
    """
    # Each division takes at most one digit off the top, and rounding needs three.
    kept = quotient.shape[0]
    for k in range(kept):
        source = size - kept + k
        quotient[k] = total[source] if source >= 0 else _ZERO
    sticky = False
    for k in range(size - kept):
        sticky = sticky or total[k] != _ZERO
    sticky = _divide_by(quotient, n) or sticky
    sticky = _divide_by(quotient, m) or sticky
    for k in range(divisors.shape[0]):
        sticky = _divide_by(quotient, divisors[k]) or sticky
    left = kept
    while left > 0 and quotient[left - 1] == _ZERO:
        left -= 1
    return round_digits(quotient, left, exponent + 32 * (size - kept), sticky)


@compiled
def _divide_by(digits: Digits, divisor: np.uint64) -> bool:
    """Divide in place; true if something is left over."""
    rest = _ZERO
    for k in range(digits.shape[0] - 1, -1, -1):
        value = (rest << _32U) | digits[k]
        digits[k] = value // divisor
        rest = value % divisor
    return bool(rest != _ZERO)
