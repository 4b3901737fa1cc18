"""What a set of predicates asks about, and in which shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from muntin._typing import Bools
from muntin.expressions import Bound, subexpression
from muntin.expressions.tree import Call
from muntin.expressions.types import BOOLEAN
from muntin.predicates.dimension import Ranked
from muntin.predicates.formula import (
    FAILED,
    IS_TRUE,
    NOT,
    TRUE,
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
from muntin.predicates.order import Code
from muntin.predicates.regions import EVERYWHERE, NOWHERE, Region, bit_region, region_of, table_size
from muntin.predicates.shape import Shape

# Conditions whose regions are remembered from one set to the next.
_MOST_KNOWN = 1 << 14
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


ALWAYS = Solved(EVERYWHERE, NOWHERE)
NO_CONDITION = "TRUE"


@dataclass(frozen=True)
class Predicate:
    """A condition in normal form: where it is true, and where evaluating it fails.

    `text` is the first spelling seen. `constant` is True or False for a condition that is always
    or never true (and never fails), else None.
    """

    text: str
    accepts: Region
    fails: Region

    @property
    def constant(self) -> bool | None:
        """Always true, never true, or None."""
        return self.accepts.constant if self.fails.empty else None

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The keys of the expressions it depends on, sorted."""
        return tuple(sorted({*self.accepts.dimensions, *self.fails.dimensions}))


@dataclass(frozen=True)
class Analysis:
    """Predicates in normal form, the expressions they ask about, and their shapes.

    Attributes:
        index: For each condition given, its place in `predicates`.
        predicates: The different predicates, in order of appearance.
        dimensions: The expressions, by their keys, with all cuts that some predicate makes.
        shapes: Predicates grouped by the dimensions they mention, fewest dimensions first. Those
            that are always true have the shape without dimensions, with one cell; those that are
            never true have none.
        shape_of: For each predicate the place of its shape in `shapes`, None for never true.
    """

    index: tuple[int, ...]
    predicates: tuple[Predicate, ...]
    dimensions: tuple[Ranked, ...]
    shapes: tuple[Shape, ...]
    shape_of: tuple[int | None, ...]

    def joined(self, shapes: Iterable[int]) -> Shape:
        """One shape over all dimensions of several, with all their predicates."""
        return self.shape(sorted(m for shape in shapes for m in self.shapes[shape].members))

    def shape(self, members: Sequence[int]) -> Shape:
        """Some predicates over the dimensions they mention, cut where one of them cuts.

        The dimension with most ranks comes last: along it a cell's key grows by one, so that
        the cells of a range of ranks are neighbours.
        """
        cuts = _cuts(self.predicates[member] for member in members)
        places = self._places
        ordered = sorted(cuts, key=lambda key: (len(cuts[key]), places[key]))
        dimensions = [
            replace(self.dimensions[places[key]], cuts=tuple(sorted(cuts[key]))) for key in ordered
        ]
        return _shape(dimensions, self.predicates, [places[key] for key in ordered], members)

    def places(self, member: int) -> frozenset[int]:
        """The dimensions that a predicate depends on, by their places."""
        return frozenset(self._places[key] for key in self.predicates[member].dimensions)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {each.bound.key: place for place, each in enumerate(self.dimensions)}


def analyze(conditions: Sequence[Bound | None]) -> Analysis:
    """Normalise conditions, and group them by shape; None is no condition at all.

    >>> import pyarrow as pa
    >>> from muntin.expressions import bind_text
    >>> schema = pa.schema([("vol", pa.int64()), ("price", pa.float64())])
    >>> texts = ["vol > 10", "NOT 10 >= VOL", "vol > 20", "price < 5 AND vol > 20", "vol > vol + 1"]
    >>> found = analyze([bind_text(text, schema) for text in texts])
    >>> found.index
    (0, 0, 1, 2, 3)
    >>> [(dimension.bound.key, dimension.size) for dimension in found.dimensions]
    [('price', 3), ('vol', 4), ('vol > vol + 1', 4)]
    >>> [(shape.places, shape.members) for shape in found.shapes]
    [((1,), (0, 1)), ((2,), (3,)), ((0, 1), (2,))]
    """
    return Analyzer()(conditions)


@dataclass(frozen=True)
class _Known:
    """A condition that was solved, and the dimensions of its regions: can they fail?"""

    bound: Bound
    solved: Solved
    dimensions: tuple[tuple[str, Bound, bool], ...]


# By the identity of the condition, which is kept with it: one text may mean several things, each
# over a schema of its own. Sets of different schemas and threads share it.
_known: dict[int, _Known] = {}


def _recall(bound: Bound, normalizer: Normalizer) -> Solved:
    """The regions of a condition, solved once as long as it lasts."""
    known = _known.get(id(bound))
    if known is None or known.bound is not bound:
        solved = solve(bound, normalizer)
        keys = {*solved.accepts.dimensions, *solved.fails.dimensions}
        dimensions = ((key, normalizer.dimensions[key], normalizer.failing[key]) for key in keys)
        known = _Known(bound, solved, tuple(dimensions))
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[id(bound)] = known
    for key, dimension, can_fail in known.dimensions:
        normalizer.dimensions.setdefault(key, dimension)
        normalizer.failing.setdefault(key, can_fail)
    return known.solved


class Analyzer:
    """Analyses sets of conditions over one schema that change little from one to the next.

    Conditions of the set before are not normalised again.
    """

    def __init__(self) -> None:
        self._normalizer = Normalizer()
        self._solved: dict[str, Solved] = {}

    def __call__(self, conditions: Sequence[Bound | None]) -> Analysis:
        """As `analyze`."""
        texts = [NO_CONDITION if bound is None else bound.key for bound in conditions]
        given = dict(zip(texts, conditions, strict=True))
        self._solved = {text: self._solve(text, bound) for text, bound in given.items()}
        known: dict[Solved, int] = {}
        numbers: dict[str, int] = {}
        predicates: list[Predicate] = []
        for text, solved in self._solved.items():
            numbers[text] = known.setdefault(solved, len(predicates))
            if numbers[text] == len(predicates):
                predicates.append(Predicate(text, solved.accepts, solved.fails))
        index = tuple(numbers[text] for text in texts)
        dimensions = _dimensions(predicates, self._normalizer)
        shapes, shape_of = _shapes(predicates, dimensions)
        return Analysis(index, tuple(predicates), dimensions, shapes, shape_of)

    def _solve(self, text: str, bound: Bound | None) -> Solved:
        if bound is None:
            return ALWAYS
        return self._solved.get(text) or _recall(bound, self._normalizer)


def conjunction(*conditions: Bound | None) -> Bound | None:
    """The condition that all of them are true, each tested where those before it are.

    That is how WHERE and FILTER meet: a FILTER is evaluated, and can fail, only for rows that
    WHERE lets through. None is no condition.

    >>> import pyarrow as pa
    >>> from muntin.expressions import bind_text
    >>> schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    >>> conjunction(bind_text("a > 1", schema), None, bind_text("b < 2", schema)).key
    '(a > 1) IS TRUE AND b < 2'
    """
    given = [condition for condition in conditions if condition is not None]
    if len(given) < 2:
        return given[0] if given else None
    tested = [Call("is true", (condition.root,), BOOLEAN) for condition in given[:-1]]
    return subexpression(Call("and", (*tested, given[-1].root), BOOLEAN))


def _dimensions(predicates: list[Predicate], normalizer: Normalizer) -> tuple[Ranked, ...]:
    cuts = _cuts(predicates)
    return tuple(
        Ranked(
            normalizer.dimensions[key],
            tuple(sorted(cuts[key])),
            normalizer.failing[key],
        )
        for key in sorted(cuts)
    )


def _cuts(predicates: Iterable[Predicate]) -> dict[str, set[Code]]:
    """The places where some predicate's answer changes, by the keys of dimensions."""
    cuts: dict[str, set[Code]] = {}
    for predicate in predicates:
        for factor in (*predicate.accepts.factors, *predicate.fails.factors):
            for key, places in zip(factor.dimensions, factor.cuts, strict=True):
                cuts.setdefault(key, set()).update(places)
    return cuts


def _shapes(
    predicates: list[Predicate], dimensions: tuple[Ranked, ...]
) -> tuple[tuple[Shape, ...], tuple[int | None, ...]]:
    numbers = {dimension.bound.key: place for place, dimension in enumerate(dimensions)}
    grouped: dict[tuple[int, ...], list[int]] = {}
    for member, predicate in enumerate(predicates):
        if predicate.constant is not False:
            places = tuple(numbers[key] for key in predicate.dimensions)
            grouped.setdefault(places, []).append(member)
    ordered = sorted(grouped.items(), key=lambda item: (len(item[0]), item[0]))
    shape_of: list[int | None] = [None] * len(predicates)
    for number, (_, members) in enumerate(ordered):
        for member in members:
            shape_of[member] = number
    shapes = tuple(
        _shape([dimensions[place] for place in places], predicates, places, members)
        for places, members in ordered
    )
    return shapes, tuple(shape_of)


def _shape(
    dimensions: Sequence[Ranked],
    predicates: Sequence[Predicate],
    places: Sequence[int],
    members: Sequence[int],
) -> Shape:
    return Shape(
        tuple(places),
        tuple(dimensions),
        tuple(members),
        tuple(predicates[member].accepts for member in members),
        tuple(predicates[member].fails for member in members),
    )
