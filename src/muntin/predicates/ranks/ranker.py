"""The contract of rankers, and what the tables of all of them have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._typing import Ranks

BUCKETS_PER_CUT = 16
MIN_BITS, MAX_BITS = 12, 16


class Ranker(ABC):
    """Finds how many of its cuts lie at a value or below."""

    def __call__(self, values: pa.Array) -> Ranks:
        """The rank of every value; NULL slots get any."""
        return self._rank(values)

    @abstractmethod
    def _rank(self, values: pa.Array) -> Ranks: ...


def bucket_bits(cuts: int) -> int:
    """The number of bits that number a table's buckets: more for more cuts."""
    return min(max(MIN_BITS, (BUCKETS_PER_CUT * cuts).bit_length()), MAX_BITS)


def bucket_starts(buckets: npt.NDArray[np.intp]) -> npt.NDArray[np.int32]:
    """How many cuts lie below each bucket, given the bucket of every cut."""
    return np.searchsorted(buckets, np.arange(buckets[-1] + 1), "left").astype(np.int32)
