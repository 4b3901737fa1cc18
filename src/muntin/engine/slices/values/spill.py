"""Arrays that lie in files in place of memory: the system reads the pages that somebody looks at.

Files have no name, and go with the last array that lies in them, or with the process.
"""

from __future__ import annotations

import mmap
import tempfile
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

_Array = TypeVar("_Array", bound=npt.NDArray[Any])
# Smaller ones are not worth a file.
_LEAST = 1 << 12


def spilled(array: _Array) -> _Array:
    """The same numbers in a file.

    >>> spilled(np.arange(1000)).sum()
    np.int64(499500)
    """
    if array.nbytes < _LEAST:
        return array
    with tempfile.TemporaryFile(prefix="muntin-values-") as file:
        file.truncate(array.nbytes)
        memory = mmap.mmap(file.fileno(), array.nbytes)
    found: Any = np.frombuffer(memory, array.dtype).reshape(array.shape)
    found[...] = array
    return found  # type: ignore[no-any-return]
