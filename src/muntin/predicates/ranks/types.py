"""The ranker of each type."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from muntin._typing import Ranks
from muntin.expressions import types as t
from muntin.predicates.order import NAN, Code
from muntin.predicates.ranks.numbers import (
    Buckets,
    DoubleBuckets,
    FewDoubles,
    FewIntegers,
    LongDecimals,
    LookUp,
    ShortDecimals,
)
from muntin.predicates.ranks.ranker import Ranker
from muntin.predicates.ranks.strings import Strings

SHORT_DIGITS = 18  # decimals of so many digits fit 64 bits
MAX_LOOK_UP = 1 << 14
FEW_CUTS = 6  # so many are counted one by one faster than they are searched


def ranker(kind: pa.DataType, cuts: Sequence[Code]) -> Ranker:
    """What ranks values of a type.

    >>> ranker(pa.float64(), [5])(pa.array([-0.0, 1.5, float("nan")])).tolist()
    [0, 1, 1]
    """
    if not cuts:
        return Single()
    if kind == t.BOOLEAN:
        return Booleans()
    if kind in (t.STRING, t.BINARY):
        return Strings([cut for cut in cuts if isinstance(cut, bytes)])
    numbers = [cut for cut in cuts if isinstance(cut, int)]
    few = len(numbers) <= FEW_CUTS
    if t.is_float(kind):
        return FewDoubles(numbers) if few and numbers[-1] != NAN else DoubleBuckets(numbers)
    if not t.is_decimal(kind):
        small = numbers[-1] - numbers[0] < MAX_LOOK_UP
        return LookUp(numbers) if small else FewIntegers(numbers) if few else Buckets(numbers)
    return ShortDecimals(numbers) if kind.precision <= SHORT_DIGITS else LongDecimals(numbers)


class Booleans(Ranker):
    """FALSE before TRUE."""

    def _rank(self, values: pa.Array) -> Ranks:
        if len(values) == 0:
            return np.empty(0, np.int32)
        bits = np.frombuffer(values.buffers()[1], np.uint8)
        end = values.offset + len(values)
        flags = np.unpackbits(bits, count=end, bitorder="little")
        return flags[values.offset :].astype(np.int32)


class Single(Ranker):
    """No cuts: one rank for all values."""

    def _rank(self, values: pa.Array) -> Ranks:
        return np.zeros(len(values), np.int32)
