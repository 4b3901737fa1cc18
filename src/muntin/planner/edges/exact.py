"""The exact share of times without an edge, digit by digit.

Counts the complement: combinations of digits that lie in no class. Classes that share no digit
are independent, so the counts of such components multiply. Within a component, one digit is
eliminated: for each value that a class asks for, and once for all other values together, what
remains is a smaller problem of the same kind; those seen before are looked up. Formula F1 has up
to 2ⁿ terms; here, most classes die with the first few digits, and the rest falls apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from math import gcd, prod
from operator import and_
from typing import TypeAlias

from muntin.windows.edges import EdgeClass

# Digits eliminated one inside the other; two frames each, well below Python's own limit.
MAX_DEPTH = 200


class _WorkExceededError(Exception):
    """The work passed its limit."""


def uncovered(classes: Sequence[EdgeClass], limit: int) -> tuple[int, int] | None:
    """How many of how many combinations of digits lie in no class; None past the limit of work.

    The quotient is the exact share of times without an edge. Classes must be reduced, and none
    may have slide 1. Work is counted in classes looked at while digits are eliminated.

    >>> uncovered([(2, 0), (3, 0), (5, 0)], limit=100), uncovered([(4, 0), (6, 1)], limit=0)
    ((8, 30), None)
    """
    elimination = _Elimination(DigitForm(classes), limit)
    try:
        return elimination.free()
    except _WorkExceededError:
        return None


class _Elimination:
    """One count, with the components it has met."""

    def __init__(self, form: DigitForm, limit: int) -> None:
        self.form = form
        self._left = limit
        self._known: dict[frozenset[int], tuple[int, int]] = {}

    def free(self) -> tuple[int, int]:
        """Combinations that lie in no class, and all combinations of the classes' digits.

        Slides of whole seconds, counted in microseconds, fix a dozen digits to one value each.
        Such digits are eliminated at once, with the work of one after the other.
        """
        form, sets = self.form, self.form.sets
        common = reduce(and_, sets)
        digits, reach, _ = form.parts(common)
        # A digit that all classes fix, to different values, may have its turn among these.
        if len(sets) < 2 or reach != reduce(and_, (form.parts(fixed)[1] for fixed in sets)):
            return self.free_of(sets, 0)
        self._spend(len(digits) * len(sets), len(digits))
        count, total = self.free_of([fixed ^ common for fixed in sets], len(digits))
        size = form.total(common)
        return (size - 1) * total + count, size * total

    def free_of(self, sets: Sequence[int], depth: int) -> tuple[int, int]:
        """Combinations that lie in none of the sets, and all combinations of their digits."""
        count = total = 1
        for component in _components(self.form, sets):
            if len(component) == 1:
                size = self.form.total(component[0])
                found = (size - 1, size)
            else:
                key = frozenset(component)
                cached = self._known.get(key)
                found = self._known[key] = cached or self._eliminate(component, depth)
            count *= found[0]
            total *= found[1]
        return count, total

    def _eliminate(self, sets: list[int], depth: int) -> tuple[int, int]:
        self._spend(len(sets), depth + 1)
        form = self.form
        digit, total = _most_shared(form, sets)
        size = form.sizes[digit]
        without, by_value = _split(sets, form.bits[digit])
        count, part = self.free_of(without, depth + 1)
        result = (size - len(by_value)) * count * (total // (size * part))
        known = _Index(form, without)
        for rests in by_value.values():
            if 0 in rests:
                continue  # A class asks for nothing more: no time with this value is free.
            count, part = self.free_of(known.merged(without, rests), depth + 1)
            result += count * (total // (size * part))
        return result, total

    def _spend(self, work: int, depth: int) -> None:
        self._left -= work
        if self._left < 0 or depth > MAX_DEPTH:
            raise _WorkExceededError


def _components(form: DigitForm, sets: Iterable[int]) -> list[list[int]]:
    """Sets that share digits with one another, directly or through others; the last one first."""
    groups: list[tuple[int, list[int]]] = []
    known = form.known
    for fixed in sets:
        reach = (known.get(fixed) or form.parts(fixed))[1]
        met = [group for group in groups if group[0] & reach]
        if len(met) == 1 and met[0] is groups[-1]:
            # Most sets belong to the group of the set before.
            met[0][1].append(fixed)
            groups[-1] = (met[0][0] | reach, met[0][1])
            continue
        if met:
            groups = [group for group in groups if not group[0] & reach]
        members = met[-1][1] if met else []
        for group in reversed(met[:-1]):
            members += group[1]
        members.append(fixed)
        for group in met:
            reach |= group[0]
        groups.append((reach, members))
    return [members[::-1] for _, members in groups]


def _most_shared(form: DigitForm, sets: Sequence[int]) -> tuple[int, int]:
    """The digit that most sets fix, and the combinations of all their digits."""
    uses: dict[int, int] = {}
    known = form.known
    for fixed in sets:
        for digit in (known.get(fixed) or form.parts(fixed))[0]:
            uses[digit] = uses.get(digit, 0) + 1
    total = prod(form.sizes[digit] for digit in uses)
    # Of equally shared digits the one with fewest values: it makes the fewest branches.
    return min(uses, key=lambda digit: (-uses[digit], form.sizes[digit], digit)), total


def _split(sets: Sequence[int], bits: int) -> tuple[list[int], dict[int, set[int]]]:
    """Sets that leave a digit free, and by each of its values what else the others fix."""
    without: list[int] = []
    by_value: dict[int, set[int]] = {}
    for fixed in sets:
        value = fixed & bits
        if value:
            by_value.setdefault(value, set()).add(fixed ^ value)
        else:
            without.append(fixed)
    return without, by_value


class _Index:
    """Sets by their lowest bit: one that is contained in another has its lowest bit there."""

    def __init__(self, form: DigitForm, sets: Iterable[int]) -> None:
        self._form = form
        self._by_lowest: dict[int, list[int]] = {}
        for fixed in sets:
            self._by_lowest.setdefault(fixed & -fixed, []).append(fixed)

    def has_part_of(self, whole: int) -> bool:
        """Whether one of the sets is contained in another set."""
        by_lowest, form = self._by_lowest, self._form
        for lowest in (form.known.get(whole) or form.parts(whole))[2]:
            for fixed in by_lowest.get(lowest, ()):
                if fixed & whole == fixed:
                    return True
        return False

    def merged(self, without: Sequence[int], rests: Iterable[int]) -> list[int]:
        """Both together, where the index is of those without a digit, and the others had it.

        Less those that ask for all that one of the other side asks for, and more: within a side
        there are none, since there were none before one digit was taken from all of it.
        """
        if not without:
            return list(rests)
        kept = [rest for rest in rests if not self.has_part_of(rest)]
        index = _Index(self._form, kept)
        return [fixed for fixed in without if not index.has_part_of(fixed)] + kept


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
        known: The parts of sets as far as they were asked for; to look there saves a call.

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
        self.known: dict[int, Parts] = {}
        base = coprime_base(slide for slide, _ in classes)
        self.sets = [self._fixed(edge_class, base) for edge_class in classes]

    def parts(self, fixed: int) -> Parts:
        """The digits that a set fixes, all bits of those digits, and the set's own, rising."""
        found = self.known.get(fixed)
        if found is None:
            digits, bits, reach, rest = [], [], 0, fixed
            while rest:
                lowest = rest & -rest
                digits.append(self._digit_of_bit[lowest.bit_length() - 1])
                bits.append(lowest)
                reach |= self.bits[digits[-1]]
                rest ^= lowest
            found = self.known[fixed] = tuple(digits), reach, tuple(bits)
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
