"""Formulas over steps: many atoms about one expression, joined before they are tabulated."""

from functools import reduce
from itertools import product

import numpy as np
import pytest

from muntin.predicates.formula import (
    AND,
    FAILED,
    IS_NULL,
    IS_TRUE,
    NOT,
    OR,
    Atom,
    Axis,
    Connective,
    Mapped,
    evaluate,
)

TABLES = {True: AND, False: OR}


@pytest.mark.parametrize("conjunctive", [True, False])
def test_neighbours_may_be_joined_first(conjunctive):
    table = TABLES[conjunctive]
    for one, two, three in product(range(4), repeat=3):
        assert table[table[one, two], three] == table[one, table[two, three]]


def one_by_one(formula, axes):
    """What :func:`evaluate` gives, every operand tabulated over all axes."""
    if isinstance(formula, Connective):
        table = TABLES[formula.conjunctive]
        return reduce(
            lambda state, each: table[state, one_by_one(each, axes)],
            formula.operands[1:],
            one_by_one(formula.operands[0], axes),
        )
    if isinstance(formula, Mapped):
        return np.array(formula.table, np.uint8)[one_by_one(formula.operand, axes)]
    place = [axis.dimension for axis in axes].index(formula.dimension)
    axis = axes[place]
    ranks = [sum(at <= rank - 1 for at in map(axis.cuts.index, formula.cuts)) for rank in range(5)]
    values = [formula.states[rank] for rank in ranks]
    line = np.array([*values, formula.null, *([FAILED] * axis.can_fail)], np.uint8)
    return line.reshape([-1 if at == place else 1 for at in range(len(axes))])


def drawn(random, depth=0):
    kind = random.integers(5 if depth < 3 else 2)
    if kind < 2:
        cuts = sorted(random.choice(4, random.integers(0, 4), replace=False).tolist())
        states = random.integers(0, 3, len(cuts) + 1).tolist()
        return Atom("xy"[random.integers(2)], tuple(cuts), tuple(states), int(random.integers(3)))
    if kind == 2:
        return Mapped((NOT, IS_NULL, IS_TRUE)[random.integers(3)], drawn(random, depth + 1))
    operands = tuple(drawn(random, depth + 1) for _ in range(random.integers(1, 6)))
    return Connective(bool(random.integers(2)), operands)


@pytest.mark.parametrize("seed", range(200))
def test_joined_atoms_come_to_the_same_as_one_by_one(seed):
    random = np.random.default_rng(seed)
    axes = [Axis(name, (0, 1, 2, 3), bool(random.integers(2))) for name in "xy"]
    formula = Connective(bool(random.integers(2)), tuple(drawn(random) for _ in range(4)))
    assert np.array_equal(*np.broadcast_arrays(evaluate(formula, axes), one_by_one(formula, axes)))
