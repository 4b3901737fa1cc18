"""Which aggregates the kernels take, and how values and partials get there.

Importing this brings numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from muntin.aggregates import Aggregate
from muntin.aggregates.columns.arrow_views import double_bits, integers, valid_mask
from muntin.aggregates.counts import Count, CountIf
from muntin.aggregates.extremes import AnyValue, BoolAnd, BoolOr, Max, Min
from muntin.aggregates.moments import StddevPop, StddevSamp, VarPop, VarSamp
from muntin.aggregates.sums import Avg, Sum
from muntin.aggregators.encodings.additive import Additive
from muntin.aggregators.encodings.encoding import Values
from muntin.aggregators.encodings.limbs import Limbs, limb_width
from muntin.aggregators.encodings.ordered import Ordered
from muntin.aggregators.inputs import arrow_values

# Exact types: a user's subclass may compute something else.
_COUNTS = (Count, CountIf)
_SUMS = (Sum, Avg)
_SPREADS = (VarPop, VarSamp, StddevPop, StddevSamp)
_EXTREMES = (Min, Max, AnyValue, BoolAnd, BoolOr)


def narrowest(aggregate: Aggregate, window: int) -> Additive | Ordered | None:
    """The encoding to start from; None if the aggregate runs on Python partials only."""
    kind: Any = type(aggregate)
    if kind in _COUNTS:
        return Additive(aggregate, False)
    if kind not in (*_SUMS, *_SPREADS, *_EXTREMES):
        return None
    argument = aggregate.types[0]  # type: ignore[attr-defined]
    double = pa.types.is_floating(argument)
    if kind in _EXTREMES:
        return Ordered(aggregate, double) if double or _is_short(argument) else None
    if not double and not _is_short(argument):
        return None
    empty = Limbs(limb_width(window), 0, 0)
    return Additive(aggregate, double, empty, empty if kind in _SPREADS else None)


def _is_short(kind: pa.DataType) -> bool:
    """Integers that fit 64 signed bits, and booleans."""
    integer = pa.types.is_integer(kind) and kind != pa.uint64()
    return bool(integer or pa.types.is_boolean(kind))


def values_of(aggregate: Any, items: Any) -> Values:
    """Values as 64-bit integers or as the bits of doubles.

    A plain numpy array has no NULL; an Arrow array or a list may.
    """
    if not aggregate.types:
        return Values(np.zeros(len(items), np.int64), False, None)
    (kind,) = aggregate.types
    double = pa.types.is_floating(kind)
    if type(items) is np.ndarray and items.dtype == np.dtype(kind.to_pandas_dtype()):
        if double:
            return Values(np.ascontiguousarray(items, np.float64).view(np.int64), True, None)
        return Values(np.ascontiguousarray(items, np.int64), False, None)
    array = arrow_values(items, kind)
    valid = valid_mask(array)
    if valid is not None:
        array = array.fill_null(False if pa.types.is_boolean(kind) else 0)
    if type(aggregate) is Count:
        return Values(np.zeros(len(array), np.int64), False, valid)
    return Values(double_bits(array) if double else integers(array), double, valid)
