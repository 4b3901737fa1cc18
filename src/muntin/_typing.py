"""Names of the array types that the whole package shares."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
# Bits of predicates, eight to a byte.
Bitmaps = npt.NDArray[np.uint8]
# Ranks of values among sorted constants.
Ranks = npt.NDArray[np.int32]
# Where the values of an Arrow array of strings or lists begin.
Offsets = npt.NDArray[np.int32] | npt.NDArray[np.int64]
