"""One expression that predicates ask about, cut into ranks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._typing import Ranks
from muntin.expressions import Bound, Evaluated
from muntin.predicates.formula import axis_size
from muntin.predicates.order import Code

if TYPE_CHECKING:
    from muntin.predicates.ranks import Ranker


@dataclass(frozen=True)
class Ranked:
    """All places where some predicate's answer can change as one expression's value grows.

    `cuts` ascend, in the codes of `muntin.predicates.order`. A value's rank is the number of cuts
    at it or below: `values` ranks in all. Then come the rank of NULL and, where the expression
    can fail, that of values that failed. A condition that is evaluated row by row is the rank of
    a BOOLEAN: 0 FALSE, 1 TRUE.

    >>> from muntin.expressions import bind_text
    >>> vol = bind_text("vol", pa.schema([("vol", pa.int64())]))
    >>> dimension = Ranked(vol, (10, 20), can_fail=False)
    >>> dimension.ranks(pa.array([9, 10, 19, 20, None])).tolist()
    [0, 1, 1, 2, 3]
    >>> dimension.values, dimension.null, dimension.failed, dimension.size
    (3, 3, None, 4)
    """

    bound: Bound
    cuts: tuple[Code, ...]
    can_fail: bool

    @property
    def values(self) -> int:
        """The number of ranks of values that are not NULL: ranks 0 to `values - 1`."""
        return len(self.cuts) + 1

    @property
    def null(self) -> int:
        """The rank of NULL."""
        return self.values

    @property
    def failed(self) -> int | None:
        """The rank of values that failed, None where none can."""
        return self.values + 1 if self.can_fail else None

    @property
    def size(self) -> int:
        """The number of ranks."""
        return axis_size(len(self.cuts), can_fail=self.can_fail)

    def ranks(self, values: pa.Array, errors: pa.Array | None = None) -> Ranks:
        """The rank of every value of the expression; `errors` marks those that failed."""
        ranks = self._ranker(values)
        if values.null_count:
            np.putmask(ranks, values.is_null().to_numpy(zero_copy_only=False), self.null)
        if errors is not None:
            assert self.failed is not None
            np.putmask(ranks, errors.to_numpy(zero_copy_only=False), self.failed)
        return ranks

    def of(self, evaluated: Evaluated) -> Ranks:
        """The ranks of what an `Evaluator` gave for `bound`."""
        return self.ranks(evaluated.values, evaluated.errors)

    def coarser(self, cuts: tuple[Code, ...]) -> npt.NDArray[np.intp]:
        """For each rank, the one it falls into where only some of the cuts are made.

        >>> dimension = Ranked(None, (10, 20, 30), can_fail=True)
        >>> dimension.coarser((20,)).tolist()
        [0, 0, 1, 1, 2, 3]
        """
        places = [self._places[cut] for cut in cuts]
        mapped = np.searchsorted(places, np.arange(self.values), "left")
        extra = np.arange(self.size - self.values) + len(cuts) + 1
        return np.concatenate([mapped, extra])

    @cached_property
    def _places(self) -> dict[Code, int]:
        return {cut: place for place, cut in enumerate(self.cuts)}

    @cached_property
    def _ranker(self) -> Ranker:
        from muntin.predicates.ranks import ranker  # noqa: PLC0415  (loads numba)

        return ranker(self.bound.type, self.cuts)

    def __getstate__(self) -> dict[str, object]:
        return {item.name: getattr(self, item.name) for item in fields(self)}
