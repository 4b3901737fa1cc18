"""One way to compile a kernel: on first call, cached on disk, without fast math.

Only modules of kernels import this; importing it brings numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

_Kernel = TypeVar("_Kernel", bound=Callable[..., object])


def compiled(function: _Kernel) -> _Kernel:
    """The function as a numba kernel. Fast math stays off: it would reorder what must be exact."""
    return cast("_Kernel", numba.njit(cache=True, nogil=True)(function))
