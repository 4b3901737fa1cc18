"""Conditions as formulas over steps: each atom depends on where one expression's value lies."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import cast

import numpy as np
import numpy.typing as npt

from muntin.predicates.order import Code


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
        places: tuple[Code, ...] = tuple(bisect_left(known, cut) for cut in formula.cuts)
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
    first, *others = _joined_runs(formula)
    state = evaluate(first, axes)
    for operand in others:
        state = table[state, evaluate(operand, axes)]
    return state


def _along(atom: Atom, axis: Axis) -> States:
    """The atom's state in each rank of its axis, whose cuts include the atom's."""
    starts = [0, *(bisect_left(axis.cuts, cut) + 1 for cut in atom.cuts)]
    lengths = np.diff([*starts, len(axis.cuts) + 1])
    values = np.repeat(np.array(atom.states, np.uint8), lengths)
    return np.array([*values, atom.null, *([FAILED] * axis.can_fail)], np.uint8)


def _joined_runs(formula: Connective) -> list[Formula]:
    """The operands, neighbours that ask about one expression made one atom.

    Otherwise each of a thousand alternatives would be tabulated over the cuts of all.
    """
    operands: list[Formula] = [_steps(operand) or operand for operand in formula.operands]
    found: list[Formula] = []
    for dimension, run in groupby(
        operands, lambda each: each.dimension if isinstance(each, Atom) else None
    ):
        if dimension is None:
            found += run
        else:
            found.append(_joined(formula.conjunctive, cast("list[Atom]", list(run))))
    return found


def _steps(formula: Formula) -> Atom | None:
    """The formula as an atom, if all it asks about is one expression."""
    if isinstance(formula, Atom):
        return formula
    if isinstance(formula, Mapped):
        atom = _steps(formula.operand)
        # What fails stays failed under every table.
        if atom is None or formula.table[FAILED] != FAILED:
            return None
        states = tuple(formula.table[state] for state in atom.states)
        return Atom(atom.dimension, atom.cuts, states, formula.table[atom.null])
    if isinstance(formula, Connective):
        atoms = [_steps(operand) for operand in formula.operands]
        if None not in atoms and len({each.dimension for each in atoms if each}) == 1:
            return _joined(formula.conjunctive, cast("list[Atom]", atoms))
    return None


def _joined(conjunctive: bool, atoms: Sequence[Atom]) -> Atom:
    """AND or OR of atoms about one expression, in one sweep over their cuts.

    Values of the expression do not fail, so the order of operands does not matter: one that
    decides is enough, and one that is NULL outweighs those that say nothing.
    """
    if len(atoms) == 1:
        return atoms[0]
    decided, neutral = (FALSE, TRUE) if conjunctive else (TRUE, FALSE)
    # How many operands decide, and how many are NULL, changes at each cut.
    changes: dict[Code, list[int]] = {}
    deciding = sum(atom.states[0] == decided for atom in atoms)
    unknown = sum(atom.states[0] == NULL for atom in atoms)
    for atom in atoms:
        for cut, before, state in zip(atom.cuts, atom.states, atom.states[1:], strict=False):
            change = changes.setdefault(cut, [0, 0])
            change[0] += (state == decided) - (before == decided)
            change[1] += (state == NULL) - (before == NULL)
    cuts = tuple(sorted(changes))
    states = []
    for more_deciding, more_unknown in ((0, 0), *(changes[cut] for cut in cuts)):
        deciding, unknown = deciding + more_deciding, unknown + more_unknown
        states.append(decided if deciding else NULL if unknown else neutral)
    nulls = {atom.null for atom in atoms}
    null = decided if decided in nulls else NULL if NULL in nulls else neutral
    return Atom(atoms[0].dimension, cuts, tuple(states), null)


States = npt.NDArray[np.uint8]

FALSE, TRUE, NULL, FAILED = range(4)

NOT = (TRUE, FALSE, NULL, FAILED)
IS_NULL = (FALSE, FALSE, TRUE, FAILED)
IS_TRUE = (FALSE, TRUE, FALSE, FAILED)
IS_FALSE = (TRUE, FALSE, FALSE, FAILED)

# What is known so far, down; the next operand, across.
AND = np.array(
    [
        [FALSE, FALSE, FALSE, FALSE],
        [FALSE, TRUE, NULL, FAILED],
        [FALSE, NULL, NULL, FAILED],
        [FAILED, FAILED, FAILED, FAILED],
    ],
    np.uint8,
)
OR = np.array(
    [
        [FALSE, TRUE, NULL, FAILED],
        [TRUE, TRUE, TRUE, TRUE],
        [NULL, TRUE, NULL, FAILED],
        [FAILED, FAILED, FAILED, FAILED],
    ],
    np.uint8,
)


def chosen(condition: States, then: States, otherwise: States) -> States:
    """CASE WHEN condition THEN then ELSE otherwise END.

    >>> states = np.array([FALSE, TRUE, NULL, FAILED], np.uint8)
    >>> chosen(states, np.uint8(TRUE), np.uint8(FALSE)).tolist()
    [0, 1, 0, 3]
    """
    result: States = np.where(condition == TRUE, then, otherwise)
    return np.where(condition == FAILED, np.uint8(FAILED), result)
