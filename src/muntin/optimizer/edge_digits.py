"""Edge classes as conjunctions of independent digits.

Split all slides into a base of numbers that share no divisor with one another. Written in base
b, the residue of a time modulo a power of b is a row of digits, and over one composite slide all
digits, of all bases, are independent and uniform. So an edge class fixes some digits and leaves
the others free, and the share of times that lie in a union of classes is the probability of a
disjunction. The base comes from greatest common divisors alone: nothing is factorised into
primes, so slides may be as large as they like.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd, prod
from typing import TypeAlias

from muntin.windows.edges import EdgeClass

# Among many numbers nearly all small primes end up in the base; taking them out first saves most
# of the rounds in which one number splits another. Few numbers keep the coarser base.
MANY = 300
SMALL_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)

# The digits of a set, all bits of these digits, and those of the set.
Parts: TypeAlias = tuple[tuple[int, ...], int, tuple[int, ...]]


def coprime_base(numbers: Iterable[int]) -> list[int]:
    """Numbers above 1, pairwise without common divisor, whose powers make all given numbers.

    >>> coprime_base([12, 18, 35]), coprime_base([30, 900, 7])
    ([2, 3, 35], [7, 30])
    """
    waiting = sorted(set(numbers), reverse=True)
    base: list[int] = []
    if len(waiting) > MANY:
        base, waiting = _without_small_primes(waiting)
    product = prod(base)
    while waiting:
        number = waiting.pop()
        if gcd(number, product % number) == 1:
            if number > 1:
                base.append(number)
                product *= number
            continue
        for place, other in enumerate(base):
            common = gcd(number, other)
            if common > 1:
                # Smaller numbers take their place; each round divides something, so it ends.
                del base[place]
                product //= other
                waiting += {common, number // common, other // common} - {1}
                break
    return sorted(base)


def _without_small_primes(numbers: Iterable[int]) -> tuple[list[int], list[int]]:
    """The small primes that divide some number, and what is left of the numbers without them."""
    found, left = set(), set()
    for number in numbers:
        rest = number
        for prime in SMALL_PRIMES:
            while rest % prime == 0:
                rest //= prime
                found.add(prime)
        left.add(rest)
    return sorted(found), sorted(left, reverse=True)


class DigitForm:
    """Classes as sets of fixed digits, each set an integer with one bit for each fixed digit.

    Attributes:
        sizes: How many values each digit may take.
        bits: For each digit, the bits that stand for its values; values no class asks for have
            none.
        sets: One integer for each class.

    >>> form = DigitForm([(4, 3), (6, 0)])
    >>> form.sizes, [bin(fixed) for fixed in form.sets]
    ([2, 2, 3], ['0b11', '0b1100'])
    """

    def __init__(self, classes: Sequence[EdgeClass]) -> None:
        self.sizes: list[int] = []
        self.bits: list[int] = []
        self._digit_of_bit: list[int] = []
        self._digit_at: dict[tuple[int, int], int] = {}
        self._bit_of: dict[tuple[int, int], int] = {}
        self._read: dict[int, Parts] = {}
        base = coprime_base(slide for slide, _ in classes)
        self.sets = [self._fixed(edge_class, base) for edge_class in classes]

    def parts(self, fixed: int) -> Parts:
        """The digits that a set fixes, all bits of those digits, and the set's own, rising."""
        found = self._read.get(fixed)
        if found is None:
            digits, bits, reach, rest = [], [], 0, fixed
            while rest:
                lowest = rest & -rest
                digits.append(self._digit_of_bit[lowest.bit_length() - 1])
                bits.append(lowest)
                reach |= self.bits[digits[-1]]
                rest ^= lowest
            found = self._read[fixed] = tuple(digits), reach, tuple(bits)
        return found

    def total(self, fixed: int) -> int:
        """How many combinations the digits of a set have."""
        return prod(self.sizes[digit] for digit in self.parts(fixed)[0])

    def _fixed(self, edge_class: EdgeClass, base: Sequence[int]) -> int:
        fixed = 0
        slide, shift = edge_class
        for number in base:
            position, rest = 0, shift
            while slide % number == 0:
                slide //= number
                fixed |= self._bit(number, position, rest % number)
                position, rest = position + 1, rest // number
        return fixed

    def _bit(self, number: int, position: int, value: int) -> int:
        digit = self._digit_at.setdefault((number, position), len(self.sizes))
        if digit == len(self.sizes):
            self.sizes.append(number)
            self.bits.append(0)
        bit = self._bit_of.get((digit, value))
        if bit is None:
            bit = self._bit_of[digit, value] = 1 << len(self._digit_of_bit)
            self._digit_of_bit.append(digit)
            self.bits[digit] |= bit
        return bit
