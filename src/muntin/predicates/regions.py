"""The rows for which a condition is true, as a canonical product of small tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from muntin._typing import Bools
from muntin.predicates.formula import Axis, axis_size
from muntin.predicates.order import Code


@dataclass(frozen=True)
class Factor:
    """A condition on the ranks of a few dimensions together.

    `accepted` holds a byte for each combination of ranks, the last dimension's fastest. Ranks of
    a dimension are those between its `cuts`, then NULL, then failed if it can fail.
    """

    dimensions: tuple[str, ...]
    cuts: tuple[tuple[Code, ...], ...]
    shape: tuple[int, ...]
    accepted: bytes

    @property
    def table(self) -> Bools:
        """The accepted combinations, one array axis per dimension."""
        return np.frombuffer(self.accepted, np.bool_).reshape(self.shape)

    def moved(self, cuts: Mapping[str, tuple[Code, ...]]) -> Factor:
        """The factor with other cuts, given by the places that stand for them here."""
        moved = tuple(
            tuple(cuts[key][place] for place in places)  # type: ignore[index]
            for key, places in zip(self.dimensions, self.cuts, strict=True)
        )
        return Factor(self.dimensions, moved, self.shape, self.accepted)


@dataclass(frozen=True)
class Region:
    """The ranks that satisfy all factors, whose dimensions are all different.

    Tables tell no more ranks apart, and mention no more dimensions, than they must: conditions
    with one meaning have one region. (Only a table of four or more dimensions that is a product
    of tables with two or more each is left whole.) No factors: every row.
    """

    factors: tuple[Factor, ...] = ()
    empty: bool = False

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The keys of all dimensions, sorted."""
        return tuple(sorted(key for factor in self.factors for key in factor.dimensions))

    def moved(self, cuts: Mapping[str, tuple[Code, ...]]) -> Region:
        """The region whose cuts are those at the places that stand for them here."""
        if not self.factors:
            return self
        return Region(tuple(factor.moved(cuts) for factor in self.factors), self.empty)

    @property
    def constant(self) -> bool | None:
        """True for every row, False for none, else None."""
        return False if self.empty else None if self.factors else True


NOWHERE = Region(empty=True)
EVERYWHERE = Region()


def region_of(tables: Iterable[tuple[Sequence[Axis], Bools]]) -> Region:
    """The region that satisfies all tables; no two of them share a dimension.

    >>> axis = Axis("x", (3, 5), False)
    >>> region = region_of([([axis], np.array([0, 1, 1, 0], bool))])
    >>> region.factors[0].cuts, region.factors[0].table.tolist()
    (((3,),), [False, True, False])
    """
    factors: list[Factor] = []
    for axes, table in tables:
        if not table.any():
            return NOWHERE
        if not table.all():
            factors += _factors(*_shortened(axes, table))
    return Region(tuple(sorted(factors, key=lambda factor: factor.dimensions)))


def _shortened(axes: Sequence[Axis], table: Bools) -> tuple[list[Axis], Bools]:
    """Only the cuts and axes that make a difference."""
    kept: list[Axis] = []
    for place in reversed(range(len(axes))):
        axis = axes[place]
        lines = table.swapaxes(0, place).reshape(axis.size, -1)
        values = len(axis.cuts) + 1
        changes = (lines[1:values] != lines[: values - 1]).any(axis=1)
        if not changes.any() and (lines == lines[:1]).all():
            table = np.take(table, [0], axis=place).squeeze(place)
            continue
        picked = [0, *(np.flatnonzero(changes) + 1), *range(values, axis.size)]
        cuts = tuple(cut for cut, change in zip(axis.cuts, changes, strict=True) if change)
        table = table.take(picked, axis=place)
        kept.append(Axis(axis.dimension, cuts, axis.can_fail))
    return kept[::-1], table


def _factors(axes: list[Axis], table: Bools) -> list[Factor]:
    """The table as a product: every axis that is independent of the others on its own."""
    found: list[Factor] = []
    place = 0
    while len(axes) > 1 and place < len(axes):
        alone: Bools = np.asarray(table.any(axis=tuple(_others(place, len(axes)))))
        others: Bools = np.asarray(table.any(axis=place))
        line = alone.reshape([-1 if i == place else 1 for i in range(len(axes))])
        if np.array_equal(table, line & np.expand_dims(others, place)):
            found.append(_factor([axes[place]], alone))
            axes, table = axes[:place] + axes[place + 1 :], others
        else:
            place += 1
    return [*found, _factor(axes, table)]


def _others(place: int, count: int) -> list[int]:
    return [other for other in range(count) if other != place]


def _factor(axes: list[Axis], table: Bools) -> Factor:
    names = tuple(axis.dimension for axis in axes)
    cuts = tuple(axis.cuts for axis in axes)
    return Factor(names, cuts, tuple(axis.size for axis in axes), table.tobytes())


def table_size(axes: Iterable[Axis]) -> int:
    """The number of combinations of ranks."""
    return prod(axis.size for axis in axes)


def bit_region(key: str, rank: int, *, can_fail: bool) -> Region:
    """The rows whose condition, evaluated row by row, has one rank: 0 FALSE, 1 TRUE, 3 failed."""
    table = np.zeros(axis_size(1, can_fail=can_fail), np.bool_)
    table[rank] = True
    return Region((_factor([Axis(key, (1,), can_fail)], table),))
