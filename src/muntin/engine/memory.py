"""Memory that stays with the process between one block of rows and the next."""

from __future__ import annotations

import ctypes
import os
from functools import cache

# glibc's names for what is set, and how much: 64 MB at most stay unused.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT = 64 << 20
_FROM_HEAP = 32 << 20
VARIABLE = "MUNTIN_KEEP_PAGES"


@cache
def keep_pages() -> bool:
    """Have the allocator keep freed memory for the next block; False where that is not to be had.

    Otherwise glibc hands the arrays of every block back to the system, and each page of the next
    block's arrays is cleared and mapped anew: a third of the time of a short query. Set
    ``MUNTIN_KEEP_PAGES=0`` to leave the allocator alone.
    """
    if os.environ.get(VARIABLE, "1") == "0":
        return False
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    done = set_option(_MMAP_THRESHOLD, _FROM_HEAP) and set_option(_TRIM_THRESHOLD, _KEPT)
    return bool(done)
