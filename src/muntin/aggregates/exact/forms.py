"""Answers that are quotients of polynomials in exact sums: correlation, regression, skewness.

Every polynomial is evaluated without rounding, so nothing cancels. What is left, a quotient with
perhaps a square root, is computed in pairs of doubles and rounded once: within 2 ulp, and the
same bits for the same sums.

Pairs of doubles after Dekker, "A floating-point technique for extending the available precision",
1971.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Bools, Floats, Ints
from muntin.aggregates.exact.limbs import LOW32, ONE_LIMB, Digits, multiply
from muntin.aggregates.exact.rounding import to_digits

_ZERO, _ONE, _11U, _32U, _53U, _64U = (np.uint64(k) for k in (0, 1, 11, 32, 53, 64))
_LOW32U = np.uint64(LOW32)
_SPLIT = 134217729.0  # 2**27 + 1

# A coefficient, and the power of each variable.
Polynomial = tuple[tuple[int, ...], ...]
_UNUSED: Polynomial = ((1,),)


class Form(NamedTuple):
    """`top**power / (first**(halves[0] / 2) * second**(halves[1] / 2))`, in some variables.

    There is no answer where `first` is zero. Where only `second` is, the answer is `flat`, and
    none if that is NaN.
    """

    top: Polynomial
    first: Polynomial
    second: Polynomial = _UNUSED
    power: int = 1
    halves: tuple[int, int] = (2, 0)
    flat: float = math.nan


# Of the count, and the sums of x, of its squares, cubes and fourth powers.
SPREAD: Polynomial = ((1, 1, 0, 1), (-1, 0, 2, 0))
SKEWNESS = Form(((1, 2, 0, 0, 1), (-3, 1, 1, 1, 0), (2, 0, 3, 0, 0)), SPREAD, halves=(3, 0))
KURTOSIS = Form(
    (
        (1, 3, 0, 0, 0, 1),
        (-4, 2, 1, 0, 1, 0),
        (-3, 2, 0, 2, 0, 0),
        (12, 1, 2, 1, 0, 0),
        (-6, 0, 4, 0, 0, 0),
    ),
    SPREAD,
    halves=(4, 0),
)
# Of the count, the powers of ten that y's and x's units are of 1, the sums of y, x and x * y, and
# of the squares of x and y.
_TOGETHER: Polynomial = ((1, 1, 0, 0, 0, 0, 1), (-1, 0, 0, 0, 1, 1, 0))
_SPREAD_X: Polynomial = ((1, 1, 0, 0, 0, 0, 0, 1), (-1, 0, 0, 0, 0, 2, 0, 0))
_SPREAD_Y: Polynomial = ((1, 1, 0, 0, 0, 0, 0, 0, 1), (-1, 0, 0, 0, 2, 0, 0, 0, 0))
COVAR_POP = Form(_TOGETHER, ((1, 2, 1, 1),))
COVAR_SAMP = Form(_TOGETHER, ((1, 2, 1, 1), (-1, 1, 1, 1)))
CORR = Form(_TOGETHER, _SPREAD_X, _SPREAD_Y, halves=(1, 1))
REGR_R2 = Form(_TOGETHER, _SPREAD_X, _SPREAD_Y, power=2, halves=(2, 2), flat=1.0)
REGR_SLOPE = Form(
    ((1, 1, 0, 1, 0, 0, 1), (-1, 0, 0, 1, 1, 1, 0)),
    ((1, 1, 1, 0, 0, 0, 0, 1), (-1, 0, 1, 0, 0, 2, 0, 0)),
)
REGR_INTERCEPT = Form(
    ((1, 0, 0, 0, 1, 0, 0, 1), (-1, 0, 0, 0, 0, 1, 1, 0)),
    ((1, 1, 1, 0, 0, 0, 0, 1), (-1, 0, 1, 0, 0, 2, 0, 0)),
)


class Sums(NamedTuple):
    """An exact sum a row: limbs, the first of which weighs `2**(32 * base)` of the grid."""

    limbs: Ints
    base: int


def whole(numbers: Ints) -> Sums:
    """Integers that are not negative, as sums."""
    return Sums(np.column_stack([numbers & LOW32, numbers >> 32]), ONE_LIMB)


def constant(number: int, rows: int) -> Sums:
    """One positive integer for every row."""
    size = max(-(-number.bit_length() // 32), 1)
    digits = [(number >> (32 * k)) & LOW32 for k in range(size)]
    return Sums(np.broadcast_to(np.array(digits, np.int64), (rows, size)), ONE_LIMB)


def on_grid(units: int, grid: int) -> Sums:
    """The number `units * 2**-grid`, as a single sum.

    >>> on_grid(-3, 1).limbs[0, -1] < 0
    np.True_
    """
    position = 32 * ONE_LIMB - grid
    size, sign = abs(units) << (position & 31), -1 if units < 0 else 1
    count = max(-(-size.bit_length() // 32), 1)
    limbs = [sign * ((size >> (32 * k)) & LOW32) for k in range(count)]
    return Sums(np.array([limbs], np.int64), position >> 5)


def answers(form: Form, variables: list[Sums]) -> tuple[Floats, Bools]:
    """The answers, and where there is none, from one sum a row for each variable."""
    rows = len(variables[0].limbs)
    bases = np.array([each.base - ONE_LIMB for each in variables])
    offsets = np.cumsum([0, *(each.limbs.shape[1] for each in variables)])
    limbs = np.concatenate([each.limbs for each in variables], axis=1)
    top = _read(form.top, limbs, offsets, bases)
    first = _read(form.first, limbs, offsets, bases)
    second = _read(form.second, limbs, offsets, bases) if form.halves[1] else first
    out = np.empty(rows)
    quotients(top, first, second, form.power, form.halves[0], form.halves[1], form.flat, out)
    return out, np.isnan(out)


Pairs = tuple[Floats, Floats, Ints]


def _read(polynomial: Polynomial, limbs: Ints, offsets: Ints, bases: Ints) -> Pairs:
    """A polynomial of every row, as pairs of doubles and their exponents."""
    terms = np.zeros((len(polynomial), 1 + len(bases)), np.int64)
    for place, term in enumerate(polynomial):
        terms[place, : len(term)] = term
    widths = np.diff(offsets) + 2
    lows = terms[:, 1:] @ bases
    highs = lows + terms[:, 1:] @ widths + 1
    room = int((highs - lows).max())
    low = int(lows.min())
    width = int(highs.max()) - low + 1
    count = len(limbs)
    pairs = np.empty(count), np.empty(count), np.empty(count, np.int64)
    polynomials(limbs, offsets, terms, lows, low, width, room, *pairs)
    return pairs


@compiled
def polynomials(
    limbs: Ints,
    offsets: Ints,
    terms: Ints,
    lows: Ints,
    low: int,
    width: int,
    room: int,
    highs: Floats,
    rests: Floats,
    exponents: Ints,
) -> None:
    """Evaluate one polynomial of every row exactly, and read its leading 106 bits.

    The variables of a row lie side by side, from `offsets` on. Term t begins at digit `lows[t]`,
    the sum of all at `low`; it has `width` digits, and a product `room`.
    """
    variables = offsets.shape[0] - 1
    most = 0
    for v in range(variables):
        most = max(most, offsets[v + 1] - offsets[v])
    digits = np.zeros((variables, most + 2), np.uint64)
    sizes = np.zeros(variables, np.int64)
    negative = np.zeros(variables, np.bool_)
    a, b = np.zeros(room + 2, np.uint64), np.zeros(room + 2, np.uint64)
    total = np.zeros(width, np.int64)
    found = np.zeros(width + 2, np.uint64)
    for row in range(limbs.shape[0]):
        for v in range(variables):
            sizes[v], negative[v] = to_digits(limbs[row, offsets[v] : offsets[v + 1]], digits[v])
        total[:] = 0
        for t in range(terms.shape[0]):
            minus = terms[t, 0] < 0
            a[0] = np.uint64(abs(terms[t, 0]))
            size = 1
            for v in range(variables):
                for _ in range(terms[t, 1 + v]):
                    multiply(a, size, digits[v], sizes[v], b)
                    size += sizes[v]
                    a[:size] = b[:size]
                    minus = minus != negative[v]
                    # A factor of zero has no digits; nothing that follows matters.
                    size = size if sizes[v] else 0
            for k in range(size):
                part = np.int64(a[k])
                total[lows[t] - low + k] += -part if minus else part
        size, minus = to_digits(total, found)
        highs[row], rests[row], exponents[row] = _leading(found, size, 32 * low)
        if minus:
            highs[row], rests[row] = -highs[row], -rests[row]


@compiled
def _leading(digits: Digits, size: int, exponent: int) -> tuple[Any, Any, Any]:
    """The leading bits as a pair of doubles in [1, 2), and its exponent; zeros for zero."""
    if size == 0:
        return 0.0, 0.0, 0
    top = digits[size - 1]
    bits = (np.float64(top).view(np.int64) >> 52) - 1022
    shift = np.uint64(32 - bits)
    first, second = top << _32U, _ZERO
    if size > 1:
        first |= digits[size - 2]
    if size > 2:
        second = digits[size - 3] << _32U
    if size > 3:
        second |= digits[size - 4]
    third = digits[size - 5] if size > 4 else _ZERO
    if shift != _ZERO:
        first = (first << shift) | (second >> (_64U - shift))
        second = (second << shift) | (third >> (_32U - shift))
    # 53 bits, then as many of the 64 that follow as a double takes.
    head = (first >> _11U) << _11U
    tail = ((first - head) << _53U) | (second >> _11U)
    high = np.float64(head) * 2.0**-63
    low = np.float64(tail) * 2.0**-116
    return high, low, exponent + 32 * (size - 1) + bits - 1


@compiled
def _two_sum(a: float, b: float) -> tuple[float, float]:
    """A sum with its rest, of numbers of which the first is the larger."""
    total = a + b
    return total, b - (total - a)


@compiled
def _two_product(a: float, b: float) -> tuple[float, float]:
    """A product with its rest."""
    product = a * b
    c = _SPLIT * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = _SPLIT * b
    b_high = c - (c - b)
    b_low = b - b_high
    rest = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, rest


@compiled
def _times(a: float, b: float, c: float, d: float) -> tuple[float, float]:
    """The product of the pairs (a, b) and (c, d)."""
    product, rest = _two_product(a, c)
    return _two_sum(product, rest + (a * d + b * c))


@compiled
def _over(a: float, b: float, c: float, d: float) -> tuple[float, float]:
    """The quotient of the pairs (a, b) and (c, d)."""
    first = a / c
    p, q = _times(first, 0.0, c, d)
    left = (a - p) + (b - q)
    return _two_sum(first, left / c)


@compiled
def _root(a: float, b: float) -> tuple[float, float]:
    """The square root of a positive pair."""
    root = math.sqrt(a)
    p, q = _two_product(root, root)
    return _two_sum(root, ((a - p) - q + b) / (2.0 * root))


@compiled
def quotients(
    top: Pairs,
    first: Pairs,
    second: Pairs,
    power: int,
    halves: int,
    others: int,
    flat: float,
    out: Floats,
) -> None:
    """Round `top**power / (first**(halves / 2) * second**(others / 2))`; NaN for first = 0."""
    for i in range(out.shape[0]):
        if first[0][i] == 0.0:
            out[i] = np.nan
            continue
        if others and second[0][i] == 0.0:
            out[i] = flat
            continue
        a, b, exponent = top[0][i], top[1][i], top[2][i]
        if power == 2:
            a, b = _times(a, b, a, b)
            exponent *= 2
        c, d, below = 1.0, 0.0, 0
        for _ in range(halves // 2):
            c, d = _times(c, d, first[0][i], first[1][i])
            below += first[2][i]
        for _ in range(others // 2):
            c, d = _times(c, d, second[0][i], second[1][i])
            below += second[2][i]
        if halves % 2 or others % 2:
            e, f, half = 1.0, 0.0, 0
            if halves % 2:
                e, f, half = first[0][i], first[1][i], first[2][i]
            if others % 2:
                e, f = _times(e, f, second[0][i], second[1][i])
                half += second[2][i]
            if half % 2:
                e, f, half = 2.0 * e, 2.0 * f, half - 1
            e, f = _root(e, f)
            c, d = _times(c, d, e, f)
            below += half // 2
        a, b = _over(a, b, c, d)
        out[i] = math.ldexp(a + b, exponent - below)
