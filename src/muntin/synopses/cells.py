"""The cells of a keep that a condition takes: those wholly inside, and those it touches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from muntin._typing import Bools
from muntin.expressions import Bound
from muntin.predicates import Ranked, Shape, analyze
from muntin.predicates.regions import NOWHERE

# Conditions whose cells are more than this are told apart by nothing.
_MOST = 1 << 20


@dataclass(frozen=True, eq=False)
class Wanted:
    """By the number of a cell: whether all rows of it satisfy a condition, and whether some may."""

    inner: Bools
    outer: Bools

    @cached_property
    def is_exact(self) -> bool:
        """Whether each cell is inside or outside."""
        return bool((self.inner == self.outer).all())

    @property
    def is_idle(self) -> bool:
        """Whether the condition touches every cell and takes none: bounds would say nothing."""
        return not self.inner.any() and bool(self.outer.all())


def wanted_cells(shape: Shape, condition: Bound | None) -> Wanted:
    """Which cells of a space satisfy a condition over any expressions.

    >>> import pyarrow as pa
    >>> from muntin.expressions import bind_text
    >>> schema = pa.schema({"vol": pa.int64()})
    >>> analysis = analyze([bind_text("vol > 10", schema), bind_text("vol > 20", schema)])
    >>> wanted = wanted_cells(analysis.shape([0, 1]), bind_text("vol > 15", schema))
    >>> wanted.inner.tolist(), wanted.outer.tolist()
    ([False, False, True, False], [False, True, True, False])
    """
    if condition is None:
        every = np.ones(shape.size, np.bool_)
        return Wanted(every, every)
    analysis = analyze([condition])
    asked = {each.bound.key: each for each in analysis.dimensions}
    joint = [_joined(each, asked.pop(each.bound.key, None)) for each in shape.dimensions]
    joint += asked.values()
    space = Shape(
        tuple(range(len(joint))),
        tuple(joint),
        (0,),
        (analysis.predicates[analysis.index[0]].accepts,),
        (NOWHERE,),
    )
    if space.size > _MOST:
        return Wanted(np.zeros(shape.size, np.bool_), np.ones(shape.size, np.bool_))
    ranks = space.ranks_of(np.arange(space.size))
    truth = space.truth(ranks, space.size)[:, 0]
    coarse = [
        fine.coarser(each.cuts)[rank]
        for each, fine, rank in zip(shape.dimensions, joint, ranks, strict=False)
    ]
    cells = shape.keys(coarse, space.size)
    inside = np.bincount(cells, truth, shape.size)
    return Wanted(inside == np.bincount(cells, minlength=shape.size), inside > 0)


def _joined(kept: Ranked, asked: Ranked | None) -> Ranked:
    """A dimension with the cuts of both."""
    if asked is None:
        return kept
    cuts = {*kept.cuts, *asked.cuts}
    return replace(kept, cuts=tuple(sorted(cuts)), can_fail=kept.can_fail or asked.can_fail)


def implies(condition: Bound | None, other: Bound | None) -> bool:
    """Whether a condition is true only where another is; False where that cannot be told."""
    if other is None:
        return True
    if condition is None:
        return False
    analysis = analyze([other, condition])
    places = list(dict.fromkeys(analysis.index))
    space = analysis.shape(places)
    if space.size > _MOST:
        return False
    truth = space.truth(space.ranks_of(np.arange(space.size)), space.size)
    outer, inner = (truth[:, places.index(place)] for place in analysis.index)
    return not bool((inner & ~outer).any())
