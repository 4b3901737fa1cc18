"""Which questions can share a synopsis, and which can be computed together: SS1-SS4, CS1-CS8.

A question's predicate is a disjunction of atoms `column op constant` here, as in the thesis. The
engine's own cells go further: they answer any union of atoms, conjunctions included.

*Sliding Window Query Processing over Data Streams*, 8.3 and 8.4.3.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

from muntin.errors import DataError

Kind = Literal["running", "interval", "basic_interval"]
_SUBTRACTABLE = frozenset({"count", "sum", "avg", "var_pop", "stddev_pop"})
# A row that counts twice does not change these; registers of a sketch are maxima, too.
_INSENSITIVE = frozenset({"min", "max", "bool_and", "bool_or", "approx_count_distinct"})


class Atom(NamedTuple):
    """A comparison of a column with a constant."""

    column: str
    op: Literal["<", "<=", "=", ">=", ">"]
    constant: float

    @property
    def interval(self) -> tuple[float, bool, float, bool]:
        """Its values: the least, whether it belongs, the largest, whether it does."""
        if self.op == "=":
            return self.constant, True, self.constant, True
        if self.op.startswith("<"):
            return -math.inf, False, self.constant, self.op == "<="
        return self.constant, self.op == ">=", math.inf, False


def is_disjoint(atoms: Collection[Atom]) -> bool:
    """Whether no value satisfies two of the atoms; atoms over different columns may meet.

    >>> is_disjoint([Atom("v", "<", 1), Atom("v", ">=", 1)])
    True
    >>> is_disjoint([Atom("v", "<=", 1), Atom("v", ">=", 1)])
    False
    """
    return not any(_meet(a, b) for a, b in combinations(atoms, 2))


def _meet(a: Atom, b: Atom) -> bool:
    if a.column != b.column:
        return True
    (low, has_low, high, has_high), (low2, has_low2, high2, has_high2) = a.interval, b.interval
    start, holds_start = max((low, not has_low), (low2, not has_low2))
    end, loses_end = min((high, has_high), (high2, has_high2))
    return start < end or (start == end and not holds_start and loses_end)


@dataclass(frozen=True)
class Kept:
    """A synopsis that is there.

    Attributes:
        name: What it is called.
        aggregate: Of what it keeps partials.
        step: The length of a part.
        parts: How many parts it covers.
        atoms: The predicate of its rows; empty for all rows.
        kind: How it answers.
        offset: When its parts begin; parts of two synopses are aligned if both agree.
    """

    name: str
    aggregate: str
    step: int
    parts: int
    atoms: frozenset[Atom] = frozenset()
    kind: Kind = "running"
    offset: int = 0

    def covers(self, length: int) -> bool:
        """Whether it reaches back far enough, in whole parts."""
        return length % self.step == 0 and 0 < length <= self.step * self.parts


@dataclass(frozen=True)
class Question:
    """An aggregate over the last `length` units of time, for rows that satisfy one of the atoms."""

    aggregate: str
    length: int
    atoms: frozenset[Atom] = frozenset()


@dataclass(frozen=True)
class Sharing:
    """How a question is answered from synopses that are there.

    Attributes:
        rule: The rule that allows it.
        added: The synopses whose answers are combined.
        removed: Those whose answers are subtracted from that.
    """

    rule: Literal["SS1", "SS2", "SS4"]
    added: tuple[str, ...]
    removed: tuple[str, ...] = ()


def sharing(question: Question, kept: Sequence[Kept]) -> Sharing | None:
    """The first rule by which synopses that are there answer a question; None if there is none.

    >>> low, high = Atom("v", "<", 5), Atom("v", ">", 9)
    >>> kept = [Kept("a", "sum", 1, 60, frozenset({low}))]
    >>> kept.append(Kept("b", "sum", 1, 60, frozenset({high})))
    >>> sharing(Question("sum", 30, frozenset({low, high})), kept)
    Sharing(rule='SS4', added=('a', 'b'), removed=())
    """
    able = [each for each in kept if each.covers(question.length)]
    for each in able:
        if (each.aggregate, each.atoms) == (question.aggregate, question.atoms):
            return Sharing("SS1", (each.name,))
    if question.aggregate == "avg":
        return _average(question, able)
    same = [each for each in able if each.aggregate == question.aggregate]
    return next(_relevant(question, same), None)


def generalised_join(parts: int, general: int, left: int, right: int) -> bool:
    """SS3: whether a join synopsis of b parts, generalised by g, answers these windows.

    >>> generalised_join(8, 2, 6, 8), generalised_join(8, 2, 3, 3), generalised_join(8, 2, 5, 8)
    (True, True, False)
    """
    if left == right:
        return 1 <= left <= parts
    return all(parts - general <= window <= parts for window in (left, right))


def _average(question: Question, kept: Sequence[Kept]) -> Sharing | None:
    """SS2: a sum and a count whose parts close together."""
    same = [each for each in kept if each.atoms == question.atoms and each.kind == "running"]
    for total in same:
        for count in same:
            is_pair = (total.aggregate, count.aggregate) == ("sum", "count")
            if is_pair and _aligned(total, count):
                return Sharing("SS2", (total.name, count.name))
    return None


def _relevant(question: Question, kept: Sequence[Kept]) -> Iterator[Sharing]:
    """SS4: covers, disjoint where rows must not count twice, and differences of such."""
    if not question.atoms:
        return
    repeats = question.aggregate in _INSENSITIVE
    for cover in _covers(question.atoms, kept, repeats=repeats):
        yield Sharing("SS4", tuple(each.name for each in cover))
    if question.aggregate not in _SUBTRACTABLE:
        return
    for larger in kept:
        if larger.atoms > question.atoms and is_disjoint(larger.atoms):
            rest = [each for each in kept if each is not larger]
            for cover in _covers(larger.atoms - question.atoms, rest, repeats=False):
                if all(_aligned(each, larger) for each in cover):
                    names = tuple(each.name for each in cover)
                    yield Sharing("SS4", (larger.name,), names)


def _covers(
    atoms: frozenset[Atom], kept: Sequence[Kept], *, repeats: bool
) -> Iterator[tuple[Kept, ...]]:
    """Sets of synopses whose atoms together are these, fewest first."""
    within = [each for each in kept if each.atoms and each.atoms <= atoms]
    for count in range(1, len(within) + 1):
        for chosen in combinations(within, count):
            if frozenset().union(*(each.atoms for each in chosen)) != atoms:
                continue
            once = sum(len(each.atoms) for each in chosen) == len(atoms) and is_disjoint(atoms)
            if (repeats or once) and all(_aligned(each, chosen[0]) for each in chosen):
                yield chosen


def _aligned(a: Kept, b: Kept) -> bool:
    return (a.step, a.offset % a.step) == (b.step, b.offset % b.step)


@dataclass(frozen=True)
class Task:
    """A registered question with what it is answered from.

    Attributes:
        question: What is asked.
        synopses: The names of the synopses.
        kind: How they answer.
        period: How often it is asked.
        joins: Whether the synopses are of join results.
    """

    question: Question
    synopses: frozenset[str]
    kind: Kind
    period: int = 1
    joins: bool = False


def computed_together(first: Task, second: Task) -> str | None:
    """The rule by which two tasks are computed in one pass; None if there is none.

    >>> ask = Question("max", 10), Question("max", 20)
    >>> tasks = [Task(each, frozenset({"s"}), "basic_interval") for each in ask]
    >>> computed_together(*tasks)
    'CS2'
    """
    same_length = first.question.length == second.question.length
    if first.question == second.question and first.period != second.period:
        return "CS8"
    if first.joins != second.joins or first.kind != second.kind:
        return _average_rule(first, second)
    basic = first.kind == "basic_interval"
    if first.synopses == second.synopses:
        if first.joins:
            return "CS5" if basic else "CS4" if same_length else None
        return "CS2" if basic else "CS1" if same_length else None
    if rule := _average_rule(first, second):
        return rule
    if first.synopses < second.synopses or second.synopses < first.synopses:
        return "CS7" if basic else "CS6" if same_length else None
    return None


def _average_rule(first: Task, second: Task) -> str | None:
    """CS3: an average beside the sum or the count that it is read off."""
    names = {first.question.aggregate, second.question.aggregate}
    whole = first if first.question.aggregate == "avg" else second
    part = second if whole is first else first
    shares = part.synopses < whole.synopses and part.question.length == whole.question.length
    return "CS3" if names in ({"avg", "sum"}, {"avg", "count"}) and shares else None


def crossing(parts: int, *, by_means: bool = False) -> int:
    """From how many questions together on a basic interval synopsis takes fewer steps.

    The thesis divides by log b; by true means an interval synopsis takes fewer steps than that.

    >>> crossing(64), crossing(64, by_means=True)
    (11, 14)
    """
    if parts < 2:
        raise DataError(f"a synopsis to compare has 2 parts or more, not {parts}")
    steps = _mean_pieces(parts) if by_means else math.log2(parts)
    return math.ceil(parts / steps)


def _mean_pieces(parts: int) -> float:
    """The mean number of intervals of a window, over all lengths and alignments."""
    total = 0
    for phase in range(parts):
        for window in range(1, parts + 1):
            at, end = phase, phase + window
            while at < end:
                size = at & -at or 1 << (parts.bit_length() - 1)
                while at + size > end:
                    size //= 2
                at += size
                total += 1
    return total / parts**2
