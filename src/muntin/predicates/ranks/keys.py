"""The key of every row's cell: its ranks as the digits of a mixed-radix number."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin._compiled import compiled

Int64s = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@compiled
def append_digit(keys: Int64s, size: int, ranks: npt.NDArray[np.integer]) -> None:
    """Appends a digit to mixed-radix keys, in place."""
    for i in range(keys.shape[0]):
        keys[i] = keys[i] * size + ranks[i]


@compiled
def append_last(keys: Int64s, size: int, ranks: npt.NDArray[np.integer], wanted: Flags) -> None:
    """Appends the last digit in place; the key of a cell that is not `wanted` becomes -1."""
    for i in range(keys.shape[0]):
        key = keys[i] * size + ranks[i]
        keys[i] = key if wanted[key] else -1
