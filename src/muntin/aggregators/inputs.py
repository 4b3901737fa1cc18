"""What callers hand in, checked: values of an argument's type, and whole numbers."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.errors import DataError

_LARGEST = 1 << 62


def sized(values: Any) -> Any:
    """Values that can be counted and gone over again: an iterator becomes a list.

    >>> sized(iter([1, 2]))
    [1, 2]
    """
    one_by_one = isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping)
    if not one_by_one or getattr(values, "ndim", 1) != 1:
        raise DataError(
            f"{type(values).__name__} {str(values)[:40]!r} where values go",
            hint="give a list, a one-dimensional numpy array, or an Arrow array",
        )
    return values if hasattr(values, "__len__") else list(values)


def arrow_values(values: Any, kind: pa.DataType) -> pa.Array:
    """Values as an Arrow array of a type. None is NULL, NaN is a value; nothing is cut off.

    >>> arrow_values([1, None], pa.float64()).to_pylist()
    [1.0, None]
    >>> arrow_values([1.5], pa.int64())
    Traceback (most recent call last):
    muntin.errors.DataError: values that are not int64: Float value 1.500000 was truncated ...
    Hint: give values of that type, or cast them first
    """
    try:
        array = _read(sized(values), kind)
        return array if array.type == kind else _cast(array, kind)
    except (pa.ArrowException, OverflowError, TypeError) as error:
        raise DataError(
            f"values that are not {kind}: {error}",
            hint="give values of that type, or cast them first",
        ) from error


def _read(values: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        return values
    if isinstance(values, np.ma.MaskedArray):
        return pa.array(values.data, mask=np.ma.getmaskarray(values), from_pandas=False)
    if isinstance(values, np.ndarray) and not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    # Told the type, Arrow would cut fractions off; it finds the type itself first.
    return pa.array(values, None if _is_number(kind) else kind, from_pandas=False)


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if _is_number(kind) and not (_is_number(array.type) or pa.types.is_null(array.type)):
        raise TypeError(f"they are {array.type}")
    rounds = pa.types.is_integer(array.type) and pa.types.is_floating(kind)
    return array.cast(kind, safe=not rounds)


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def whole_number(value: Any, what: str) -> int:
    """An integer of 63 bits at most.

    >>> whole_number(np.int64(7), "position")
    7
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = _LARGEST + 1
    if isinstance(value, bool) or abs(number) > _LARGEST:
        raise DataError(
            f"{value!r} is not a {what}", hint=f"a {what} is a whole number of at most 2**62"
        )
    return number
