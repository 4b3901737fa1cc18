"""Bitmaps of the predicates that hold in each cell, computed for all predicates at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from muntin.predicates.dimension import Ranked
from muntin.predicates.region import Factor, Region

Bools = npt.NDArray[np.bool_]
Bitmaps = npt.NDArray[np.uint8]
Columns = Sequence[npt.NDArray[np.integer]]


class Signer:
    """Computes signatures of cells.

    For each dimension, a row of bits per rank says which predicates allow it there; a cell's
    signature is the intersection of its ranks' rows. Predicates in which dimensions depend on
    each other then have their own tables looked up.
    """

    def __init__(self, dimensions: Sequence[Ranked], regions: Sequence[Region]) -> None:
        self._places = {d.bound.key: place for place, d in enumerate(dimensions)}
        self._dimensions = dimensions
        self._possible = _packed(np.array([[not region.empty for region in regions]], np.bool_))
        allowed: dict[int, Bools] = {}
        self._joint: list[tuple[int, Factor]] = []
        for member, region in enumerate(regions):
            for factor in region.factors:
                if len(factor.dimensions) > 1:
                    self._joint.append((member, factor))
                    continue
                place = self._places[factor.dimensions[0]]
                if place not in allowed:
                    allowed[place] = np.ones((len(regions), dimensions[place].size), np.bool_)
                ranks = dimensions[place].coarser(factor.cuts[0])
                allowed[place][member] = factor.table[ranks]
        self._allowed = {place: _packed(flags.T) for place, flags in allowed.items()}

    def __call__(self, columns: Columns, cells: int) -> Bitmaps:
        """The signature of every cell; `cells` says how many there are without columns."""
        cells = columns[0].size if columns else cells
        bitmaps = np.repeat(self._possible, cells, axis=0)
        for place, rows in self._allowed.items():
            bitmaps &= rows[columns[place]]
        for member, factor in self._joint:
            places = [self._places[key] for key in factor.dimensions]
            ranks = (
                self._dimensions[place].coarser(cuts)[columns[place]]
                for place, cuts in zip(places, factor.cuts, strict=True)
            )
            denied = ~factor.table[tuple(ranks)]
            bitmaps[denied, member >> 3] &= ~np.uint8(1 << (member & 7))
        return bitmaps


def _packed(flags: Bools) -> Bitmaps:
    return np.packbits(flags, axis=1, bitorder="little")


def intervals(accepted: Bools) -> tuple[tuple[int, int], ...]:
    """The runs of True, as [low, high).

    >>> intervals(np.array([True, False, True, True]))
    ((0, 1), (2, 4))
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], accepted, [False]]).astype(np.int8)))
    return tuple((int(low), int(high)) for low, high in edges.reshape(-1, 2))
