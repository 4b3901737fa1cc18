"""One way to compile a kernel: on first call, cached on disk, without fast math.

Only modules of kernels import this; importing it brings numba.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import caching

_IndexDataCacheFile: Any = caching.IndexDataCacheFile
_Kernel = TypeVar("_Kernel", bound=Callable[..., object])
_HERE = Path(__file__).parent


def compiled(function: _Kernel) -> _Kernel:
    """The function as a numba kernel. Fast math stays off: it would reorder what must be exact."""
    return cast("_Kernel", cached(numba.njit(cache=True, nogil=True)(function)))


def cached(kernel: Any) -> Any:
    """The kernel with cache files that any number of processes may write at once."""
    # numba has no other way to choose them; a version without this place keeps its own way.
    store: Any = getattr(kernel, "_cache", None)
    files = getattr(store, "_cache_file", None)
    if files is not None:
        folder = Path(kernel.py_func.__code__.co_filename).parent
        store._cache_file = _Files(files, _digest(folder))  # noqa: SLF001
    return kernel


class _Files(_IndexDataCacheFile):  # type: ignore[misc]
    """Cache files named by what they hold.

    numba numbers them, and an index says which signature has which number. Two processes that
    save at once may take the same number: then a signature finds the code of another one, which
    overwrites memory. The index knows the kernel's own file, but not those of kernels it calls.
    Named by signature and sources, a file holds the right code or is not there.
    """

    def __init__(self, files: Any, sources: str) -> None:
        self.__dict__.update(vars(files))
        self._sources = sources

    def save(self, key: Any, data: Any) -> None:
        """Write the code of a signature."""
        self._save_data(self._name_of(key), data)

    def load(self, key: Any) -> Any:
        """The code of a signature; None if it is not there."""
        try:
            return self._load_data(self._name_of(key))
        except OSError:
            return None

    def _name_of(self, key: Any) -> str:
        held = repr((self._version, self._source_stamp, self._sources, key))
        digest = hashlib.sha256(held.encode()).hexdigest()[:24]
        return str(self._index_name).removesuffix(".nbi") + f".{digest}.nbc"


@cache
def _digest(folder: Path) -> str:
    """A hash of the sources that a kernel of the folder may be compiled from."""
    files = sorted({*folder.glob("*.py"), *(_HERE / "aggregates").glob("*.py")})
    sources = [path.read_bytes() for path in files]
    kernels = [each for each in sources if b"compiled" in each or b"jit" in each]
    return hashlib.sha256(b"".join(kernels)).hexdigest()
