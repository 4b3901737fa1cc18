"""One way to compile a kernel: on first call, cached on disk, without fast math.

Only modules of kernels import this; importing it brings numba.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeVar, cast

import numba
from numba.core import caching, event

from muntin._cache import kernel_folder

_IndexDataCacheFile: Any = caching.IndexDataCacheFile
_Kernel = TypeVar("_Kernel", bound=Callable[..., object])
_HERE = Path(__file__).parent
_IMPORT = re.compile(rf"^ *from ({_HERE.name}[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)
_PREFIX = 16  # digits of a file's name that tell the sources
# A folder of kernels that came with the code, as to workers of a cluster: read, never written.
VARIABLE = "MUNTIN_KERNELS"
_GIVEN = Path(os.environ[VARIABLE]).absolute() if os.environ.get(VARIABLE) else None
# Compiling that takes longer than this is worth a word.
_PATIENCE = 2.0
_logger = logging.getLogger("muntin")


def compiled(function: _Kernel, **options: Any) -> _Kernel:
    """The function as a numba kernel. Fast math stays off: it would reorder what must be exact."""
    with _cache_folder():
        kernel = numba.njit(**{"cache": True, "nogil": True, **options})(function)
    _watch.kernels.add(id(kernel))
    return cast("_Kernel", _cached(kernel))


def compiled_short(function: _Kernel) -> _Kernel:
    """As `compiled`, for kernels that take microseconds: they keep the interpreter's lock.

    Who gives it up that briefly waits for those who take it meanwhile, and wakes them for nothing.
    """
    return compiled(function, nogil=False)


def _cached(kernel: Any) -> Any:
    """The kernel with cache files that any number of processes may write at once."""
    # numba has no other way to choose them; a version without this place keeps its own way.
    store: Any = getattr(kernel, "_cache", None)
    files = getattr(store, "_cache_file", None)
    if files is not None:
        source = Path(kernel.py_func.__code__.co_filename)
        store._cache_file = _Files(files, _digest(source))  # noqa: SLF001
    return kernel


def compilations() -> int:
    """How many kernels this process has compiled, instead of finding them on disk."""
    return _watch.count


@contextmanager
def _cache_folder() -> Iterator[None]:
    """Kernels defined meanwhile are kept where workers look for them, too.

    Where the package cannot be written, numba would choose a folder of its own, or refuse.
    """
    settings: Any = numba.config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = before or kernel_folder() or ""
    try:
        yield
    finally:
        settings.CACHE_DIR = before


class _Watch(event.Listener):
    """Counts the kernels that are compiled, and says so, once, when that takes long."""

    def __init__(self) -> None:
        self.kernels: set[int] = set()
        self.count = 0
        self._seconds, self._began, self._depth = 0.0, 0.0, 0
        self._is_told = False

    def on_start(self, event: Any) -> None:
        """Take note of a kernel; those that it calls are compiled meanwhile."""
        if not self._is_ours(event):
            return
        self.count += 1
        now = perf_counter()
        if not self._depth:
            self._began = now
        self._depth += 1
        if not self._is_told and self._seconds + now - self._began > _PATIENCE:
            self._is_told = True
            _logger.warning(
                "compiling kernels for their first use on this machine, which takes some seconds; "
                "`muntin doctor --warm` compiles all of them ahead"
            )

    def on_end(self, event: Any) -> None:
        """Add up the time that no other kernel's includes."""
        if self._is_ours(event):
            self._depth -= 1
            if not self._depth:
                self._seconds += perf_counter() - self._began

    def _is_ours(self, event: Any) -> bool:
        return id(event.data["dispatcher"]) in self.kernels


_watch = _Watch()
event.register("numba:compile", _watch)  # type: ignore[no-untyped-call]


class _Files(_IndexDataCacheFile):  # type: ignore[misc]
    """Cache files named by what they hold.

    numba numbers them, and an index says which signature has which number. Two processes that
    save at once may take the same number: then a signature finds the code of another one, which
    overwrites memory. The index knows the kernel's own file, but not those of kernels it calls.
    Named by signature and sources, a file holds the right code or is not there, whatever folder
    or machine it was brought to.
    """

    def __init__(self, files: Any, sources: str) -> None:
        self.__dict__.update(vars(files))
        self._sources = sources

    def save(self, key: Any, data: Any) -> None:
        """Write the code of a signature."""
        self._save_data(self._name_of(key), data)

    def load(self, key: Any) -> Any:
        """The code of a signature; None if it is not there."""
        name = self._name_of(key)
        for path in (name, *([str(_GIVEN / name)] if _GIVEN else [])):
            try:
                return self._load_data(path)
            except OSError:
                continue
        return None

    def _name_of(self, key: Any) -> str:
        digest = hashlib.sha256(repr((self._version, key)).encode()).hexdigest()[:24]
        kernel = str(self._index_name).removesuffix(".nbi")
        return f"{kernel}.{self._sources[:_PREFIX]}{digest}.nbc"


def kernel_files() -> Iterator[Path]:
    """The files of kernels that are compiled and fit the sources; their names are unique."""
    chosen = kernel_folder()
    for source in sorted(_HERE.rglob("*.py")):
        mark = _digest(source)[:_PREFIX]
        for place in (source.parent / "__pycache__", Path(chosen) if chosen else None, _GIVEN):
            if place is not None and place.is_dir():
                yield from place.rglob(f"*.{mark}*.nbc")


@cache
def _digest(source: Path) -> str:
    """A hash of the sources that a kernel of this one may be compiled from, and of its own place.

    What is compiled names its module: moved elsewhere, it is another kernel.
    """
    inside = source.is_relative_to(_HERE)
    place = source.relative_to(_HERE).as_posix() if inside else source.name
    digests = sorted(_source(path).digest for path in sources_of(source))
    return hashlib.sha256(b"".join((place.encode(), *digests))).hexdigest()


def sources_of(source: Path) -> set[Path]:
    """The module itself and the modules of kernels that it imports, directly or through others.

    numba knows only the kernel's own file.
    """
    found, waiting = {source}, [source]
    while waiting:
        new = {path for path in _source(waiting.pop()).imports if path not in found}
        new = {path for path in new if path.name == "__init__.py" or _source(path).has_kernels}
        found |= new
        waiting += new
    return found


class _Source(NamedTuple):
    """What the digest of a kernel takes from a module: its text, and what it imports."""

    digest: bytes
    has_kernels: bool
    imports: tuple[Path, ...]


@cache
def _source(path: Path) -> _Source:
    text = path.read_text(encoding="utf-8")
    digest = hashlib.sha256(text.encode()).digest()
    return _Source(digest, "compiled" in text or "jit" in text, tuple(_imported(text)))


def _imported(text: str) -> Iterator[Path]:
    """Modules of this package that a source imports; scanned, for parsing would take longer."""
    for match in _IMPORT.finditer(text):
        place = _HERE.parent.joinpath(*match[1].split("."))
        names = [part.split()[0] for part in match[2].strip("()").split(",") if part.strip()]
        for path in (place, *(place / name for name in names if name.islower())):
            files = (path.with_suffix(".py"), path / "__init__.py")
            yield from (each for each in files if _is_file(each))


_is_file = cache(Path.is_file)
