"""Group keys as small integers, and cells as pairs of slice and group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.engine.encoding import compact
from muntin.engine.kernels import number_pairs, pair_keys

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# A look-up table beats a hash table while it stays in the cache or near the number of rows.
_DENSE = 1 << 16
_EVERY_ROW = np.empty(0, np.bool_)


@dataclass(frozen=True)
class Groups:
    """The group of every row: ``codes[i]`` is the row of ``keys`` that holds its key."""

    codes: Ints
    keys: tuple[pa.Array, ...]
    count: int


def group(columns: Sequence[tuple[Ints, pa.Array]], rows: int) -> Groups:
    """Number the distinct keys over some encoded columns.

    >>> from muntin.engine.encoding import encode
    >>> groups = group([encode(pa.array(["a", "b", "a"])), encode(pa.array([1, 1, 2]))], 3)
    >>> groups.codes.tolist(), [key.to_pylist() for key in groups.keys]
    ([0, 1, 2], [['a', 'b', 'a'], [1, 1, 2]])
    """
    if not columns:
        return Groups(np.zeros(rows, np.int64), (), 1)
    codes, values = columns[0]
    keys = [values]
    for inner_codes, inner_values in columns[1:]:
        codes, outer, inner = pairs(codes, len(keys[0]), inner_codes, len(inner_values))
        keys = [*(key.take(pa.array(outer)) for key in keys), inner_values.take(pa.array(inner))]
    return Groups(codes, tuple(keys), len(keys[0]))


def pairs(
    left: Ints, left_count: int, right: Ints, right_count: int, where: Bools | None = None
) -> tuple[Ints, Ints, Ints]:
    """Number the distinct pairs of two numberings, on the rows of a mask.

    Returns the number of every row (-1 where the mask or the left number leaves it out), and
    for each number its left and its right one.
    """
    wanted = _EVERY_ROW if where is None else where
    if left_count * right_count <= max(_DENSE, 4 * left.size):
        ids, used = number_pairs(left, right, left_count, right_count, wanted)
    else:
        ids, used = compact(pair_keys(left, right, right_count, wanted))
    outer, inner = np.divmod(used, max(right_count, 1))
    return ids, outer, inner
