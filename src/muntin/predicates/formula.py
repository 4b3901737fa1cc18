"""Conditions as formulas over steps: each atom depends on where one expression's value lies."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from muntin.predicates.order import Code
from muntin.predicates.states import AND, FAILED, OR, States, chosen


@dataclass(frozen=True)
class Constant:
    """A condition that comes to the same for every row."""

    state: int


@dataclass(frozen=True)
class Atom:
    """A condition on one expression, named by its key.

    Its state is `states[i]` for values from `cuts[i - 1]` (inclusive) to `cuts[i]` (exclusive),
    `null` for NULL; where the expression fails, so does the atom.
    """

    dimension: str
    cuts: tuple[Code, ...]
    states: tuple[int, ...]
    null: int


@dataclass(frozen=True)
class Mapped:
    """A function of another condition's state: NOT, IS NULL, = TRUE and the like."""

    table: tuple[int, ...]
    operand: Formula


@dataclass(frozen=True)
class Connective:
    """AND or OR of operands, evaluated from the left."""

    conjunctive: bool
    operands: tuple[Formula, ...]


@dataclass(frozen=True)
class Case:
    """CASE WHEN condition THEN then ELSE otherwise END over conditions."""

    condition: Formula
    then: Formula
    otherwise: Formula


Formula = Constant | Atom | Mapped | Connective | Case


@dataclass(frozen=True)
class Axis:
    """The ranks of one expression that a formula tells apart.

    Rank i holds the values of `cuts[i - 1]` to below `cuts[i]`; NULL is the next rank, and the
    last is that of failed values where the expression can fail.
    """

    dimension: str
    cuts: tuple[Code, ...]
    can_fail: bool

    @property
    def size(self) -> int:
        """The number of ranks."""
        return axis_size(len(self.cuts), can_fail=self.can_fail)


def axis_size(cuts: int, *, can_fail: bool) -> int:
    """The ranks that so many cuts make, with those of NULL and of failed values."""
    return cuts + 2 + can_fail


def atoms(formula: Formula) -> Iterator[Atom]:
    """The atoms of a formula."""
    pending = [formula]
    while pending:
        current = pending.pop()
        if isinstance(current, Atom):
            yield current
        elif isinstance(current, Mapped):
            pending.append(current.operand)
        elif isinstance(current, Connective):
            pending.extend(current.operands)
        elif isinstance(current, Case):
            pending += [current.condition, current.then, current.otherwise]


def axes_of(formulas: Sequence[Formula], failing: Mapping[str, bool]) -> tuple[Axis, ...]:
    """The axes that formulas need together, by the dimensions' keys; `failing` says which fail."""
    cuts: dict[str, set[Code]] = {}
    for formula in formulas:
        for atom in atoms(formula):
            cuts.setdefault(atom.dimension, set()).update(atom.cuts)
    return tuple(Axis(key, tuple(sorted(cuts[key])), failing[key]) for key in sorted(cuts))


def renumbered(formula: Formula, cuts: Mapping[str, tuple[Code, ...]]) -> Formula:
    """The formula with each cut as its place among all cuts of its dimension.

    >>> renumbered(Atom("x", (6,), (0, 1), 2), {"x": (5, 6)})
    Atom(dimension='x', cuts=(1,), states=(0, 1), null=2)
    """
    if isinstance(formula, Atom):
        known = cuts[formula.dimension]
        places: tuple[Code, ...] = tuple(range(len(known)))
        if formula.cuts != known:
            places = tuple(bisect_left(known, cut) for cut in formula.cuts)
        return Atom(formula.dimension, places, formula.states, formula.null)
    if isinstance(formula, Constant):
        return formula
    if isinstance(formula, Mapped):
        return Mapped(formula.table, renumbered(formula.operand, cuts))
    if isinstance(formula, Case):
        parts = (formula.condition, formula.then, formula.otherwise)
        return Case(*(renumbered(part, cuts) for part in parts))
    operands = tuple(renumbered(operand, cuts) for operand in formula.operands)
    return Connective(formula.conjunctive, operands)


def evaluate(formula: Formula, axes: Sequence[Axis]) -> States:
    """The formula's state for all combinations of ranks: one array axis per axis, or of length 1.

    >>> over_5 = Atom("x", (6,), (0, 1), 2)
    >>> evaluate(Mapped((1, 0, 2, 3), over_5), [Axis("x", (6,), True)]).tolist()
    [1, 0, 2, 3]
    """
    if isinstance(formula, Atom):
        place = next(i for i, axis in enumerate(axes) if axis.dimension == formula.dimension)
        shape = [1] * len(axes)
        shape[place] = -1
        return _along(formula, axes[place]).reshape(shape)
    if isinstance(formula, Constant):
        return np.full([1] * len(axes), formula.state, np.uint8)
    if isinstance(formula, Mapped):
        return np.array(formula.table, np.uint8)[evaluate(formula.operand, axes)]
    if isinstance(formula, Case):
        parts = (formula.condition, formula.then, formula.otherwise)
        return chosen(*(evaluate(part, axes) for part in parts))
    table = AND if formula.conjunctive else OR
    first, *others = formula.operands
    state = evaluate(first, axes)
    for operand in others:
        state = table[state, evaluate(operand, axes)]
    return state


def _along(atom: Atom, axis: Axis) -> States:
    """The atom's state in each rank of its axis, whose cuts include the atom's."""
    if axis.cuts == atom.cuts:
        values = list(atom.states)
    else:
        found = [atom.states[bisect_right(atom.cuts, cut)] for cut in axis.cuts]
        values = [atom.states[0], *found]
    return np.array([*values, atom.null, *([FAILED] * axis.can_fail)], np.uint8)
