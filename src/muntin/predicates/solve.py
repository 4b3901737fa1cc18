"""From formulas to the regions where they are true, and where they fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from muntin.expressions import Bound
from muntin.predicates.formula import (
    Axis,
    Connective,
    Formula,
    Mapped,
    atoms,
    axes_of,
    evaluate,
    renumbered,
)
from muntin.predicates.normalize import Normalizer
from muntin.predicates.region import NOWHERE, Bools, Region, bit_region, region_of, table_size
from muntin.predicates.states import FAILED, IS_TRUE, NOT, TRUE

# A table with more entries is given up: the condition is then evaluated row by row.
MAX_ENTRIES = 1 << 16
MAX_PATTERNS = 1 << 10


@dataclass(frozen=True)
class Solved:
    """Where a condition is true, and where evaluating it fails."""

    accepts: Region
    fails: Region


def solve(bound: Bound, normalizer: Normalizer) -> Solved:
    """The regions of a condition.

    Conditions that differ only in their constants, in the same order, have regions that differ
    only in their cuts: such a pattern is solved once.

    >>> import pyarrow as pa
    >>> from muntin.expressions import bind_text
    >>> schema = pa.schema([("vol", pa.int64())])
    >>> texts = "vol > 10 AND vol <= 20", "vol BETWEEN 11 AND 20", "NOT (20 < vol OR vol < 11)"
    >>> len({solve(bind_text(text, schema), Normalizer()) for text in texts})
    1
    """
    formula = normalizer.formula(bound.root)
    cuts = {axis.dimension: axis.cuts for axis in axes_of([formula], normalizer.failing)}
    pattern = renumbered(formula, cuts)
    if pattern not in normalizer.patterns:
        if len(normalizer.patterns) >= MAX_PATTERNS:
            normalizer.patterns.clear()
        found = _accepts(pattern, normalizer.failing), _fails(pattern, normalizer.failing)
        normalizer.patterns[pattern] = found
    accepts, fails = normalizer.patterns[pattern]
    if accepts is not None and fails is not None:
        return Solved(accepts.moved(cuts), fails.moved(cuts))
    key = normalizer.dimension(bound.root)
    can_fail = normalizer.failing[key]
    failed = bit_region(key, FAILED, can_fail=True) if can_fail else NOWHERE
    return Solved(bit_region(key, TRUE, can_fail=can_fail), failed)


def _accepts(formula: Formula, failing: Mapping[str, bool]) -> Region | None:
    """Where a formula is true; None where that takes too large a table.

    Terms of a conjunction that share no expression are tabulated apart.
    """
    tables: list[tuple[tuple[Axis, ...], Bools]] = []
    for group in _connected(_terms(formula)):
        axes = axes_of(group, failing)
        if table_size(axes) > MAX_ENTRIES:
            return None
        states = evaluate(Connective(True, tuple(group)), axes)
        tables.append((axes, _full(states == TRUE, axes)))
    return region_of(tables)


def _fails(formula: Formula, failing: Mapping[str, bool]) -> Region | None:
    """Where a formula fails; what fails depends on the order of terms, so none is set apart."""
    if not any(failing[atom.dimension] for atom in atoms(formula)):
        return NOWHERE
    axes = axes_of([formula], failing)
    if table_size(axes) > MAX_ENTRIES:
        return None
    return region_of([(axes, _full(evaluate(formula, axes) == FAILED, axes))])


def _full(table: Bools, axes: tuple[Axis, ...]) -> Bools:
    return np.broadcast_to(table, tuple(axis.size for axis in axes))


def _terms(formula: Formula) -> list[Formula]:
    """Formulas that are all true exactly where this one is."""
    terms: list[Formula] = []
    pending = [formula]
    while pending:
        current = pending.pop()
        if isinstance(current, Connective) and current.conjunctive:
            pending.extend(current.operands)
        elif isinstance(current, Mapped) and current.table == IS_TRUE:
            pending.append(current.operand)
        elif _is_negated_or(current):
            pending.extend(Mapped(NOT, term) for term in current.operand.operands)  # type: ignore[union-attr]
        else:
            terms.append(current)
    return terms


def _is_negated_or(formula: Formula) -> bool:
    if not isinstance(formula, Mapped) or formula.table != NOT:
        return False
    return isinstance(formula.operand, Connective) and not formula.operand.conjunctive


def _connected(terms: list[Formula]) -> list[list[Formula]]:
    """Terms grouped so that no two groups mention one expression."""
    groups: list[tuple[set[str], list[Formula]]] = []
    for term in terms:
        keys = {atom.dimension for atom in atoms(term)}
        apart = []
        members = [term]
        for group in groups:
            if group[0] & keys:
                keys |= group[0]
                members += group[1]
            else:
                apart.append(group)
        groups = [*apart, (keys, members)]
    return [members for _, members in groups]
