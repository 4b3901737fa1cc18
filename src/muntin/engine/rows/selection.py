"""Which rows a set of partials takes in, and the code by which it tells their predicates apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._typing import Bitmaps, Bools, Ints, Ranks
from muntin.engine.rows.dictionary import Groups, encode, group, pairs
from muntin.expressions import Bound, Evaluated
from muntin.plan.selection import Cells, Mask, Selection, Signatures
from muntin.predicates import Ranked, Shape

Ranking = Mapping[Ranked, Callable[[], Ranks]]


@dataclass(frozen=True)
class Selected:
    """The code of every row, -1 for a row that is left out; codes lie below `size`.

    Codes of signatures are places in `signatures`; those of cells are the cells' keys.
    """

    codes: Ints
    size: int
    signatures: Bitmaps | None = None


class Scope:
    """Values of one batch, and what is derived from them once for all partials.

    ``ranked`` gives the ranks by dimensions that are known without values.
    """

    def __init__(
        self,
        rows: int,
        values: dict[Bound, Evaluated],
        ranked: Ranking | None = None,
    ) -> None:
        self.rows = rows
        self.values = values
        self._ranked = ranked or {}
        self._masks: dict[Bound, Bools] = {}
        self._codes: dict[Bound, tuple[Ints, pa.Array]] = {}
        self._groups: dict[tuple[Bound, ...], Groups] = {}
        self._ranks: dict[Ranked, Ranks] = {}

    def mask(self, bound: Bound) -> Bools:
        """Where a predicate is true; NULL is not."""
        if bound not in self._masks:
            truth = self.values[bound].values.fill_null(False)
            self._masks[bound] = truth.to_numpy(zero_copy_only=False)
        return self._masks[bound]

    def groups(self, grouping: tuple[Bound, ...]) -> Groups:
        """The group of every row."""
        if grouping not in self._groups:
            columns = [self._encoded(bound) for bound in grouping]
            self._groups[grouping] = group(columns, self.rows)
        return self._groups[grouping]

    def _encoded(self, bound: Bound) -> tuple[Ints, pa.Array]:
        if bound not in self._codes:
            self._codes[bound] = encode(self.values[bound].values)
        return self._codes[bound]

    def ranks(self, shape: Shape) -> list[Ranks]:
        """The rank of every row by each dimension of a shape."""
        return [self._rank(dimension) for dimension in shape.dimensions]

    def _rank(self, dimension: Ranked) -> Ranks:
        if dimension not in self._ranks:
            known = self._ranked.get(dimension)
            found = dimension.of(self.values[dimension.bound]) if known is None else known()
            self._ranks[dimension] = found
        return self._ranks[dimension]


class Selector:
    """Selects rows for one set of partials, batch by batch."""

    def __init__(self, selection: Selection) -> None:
        self.selection = selection

    def codes(self, scope: Scope) -> Selected | None:
        """The codes of all rows; None where all selected rows are alike."""
        if isinstance(self.selection, Cells) and self.selection.coded:
            return self._cells(self.selection.shape, scope)
        if isinstance(self.selection, Signatures):
            return self._signatures(self.selection, scope)
        return None

    def where(self, scope: Scope) -> Bools | None:
        """The rows that a plain predicate selects, None for all."""
        if isinstance(self.selection, Mask) and self.selection.predicate is not None:
            return scope.mask(self.selection.predicate)
        if isinstance(self.selection, Cells) and not self.selection.shape.truth(()).any():
            return np.zeros(scope.rows, np.bool_)
        return None

    def _cells(self, shape: Shape, scope: Scope) -> Selected:
        return Selected(shape.wanted_keys(scope.ranks(shape)), shape.size)

    def _signatures(self, selection: Signatures, scope: Scope) -> Selected:
        """Bitmaps of all rows, numbered; the one without any predicate is left out."""
        numbers = np.zeros(scope.rows, np.int64)
        found = np.zeros((1, 0), np.uint64)
        for low in range(0, len(selection.predicates), 64):
            word = np.zeros(scope.rows, np.uint64)
            for bit, bound in enumerate(selection.predicates[low : low + 64]):
                flags = np.ones(scope.rows, np.bool_) if bound is None else scope.mask(bound)
                word |= flags.astype(np.uint64) << np.uint64(bit)
            words, distinct = _numbered(word)
            numbers, outer, inner = pairs(numbers, len(found), words, distinct.size)
            found = np.concatenate((found[outer], distinct[inner][:, None]), axis=1)
        nothing: Bools = np.all(found == 0, axis=1)
        numbers = np.where(nothing[numbers], -1, numbers) if found.size else numbers
        bitmaps = np.ascontiguousarray(found).view(np.uint8).reshape(len(found), 8 * found.shape[1])
        return Selected(numbers, max(len(found), 1), bitmaps)


def _numbered(words: npt.NDArray[np.uint64]) -> tuple[Ints, npt.NDArray[np.uint64]]:
    encoded = pa.array(words).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_numpy()
