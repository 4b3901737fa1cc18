"""A folder of the user's own, for what is worth keeping from one session to the next."""

from __future__ import annotations

import os
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

VARIABLE = "MUNTIN_CACHE_DIR"


def cache_folder() -> Path | None:
    """The folder, made if need be; None where no folder can be written.

    It is what ``MUNTIN_CACHE_DIR`` says, else the platform's cache folder, else a private
    folder under the temporary one. Only its owner may write there: what is kept is run later.
    """
    return _first_usable(tuple(_candidates()))


def kernel_folder() -> str | None:
    """Where compiled kernels are kept; None for the place beside their source.

    Processes on one machine share them. It is what ``NUMBA_CACHE_DIR`` says, and a folder of the
    user's where the package itself cannot be written.
    """
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return str(Path(chosen).absolute())
    if _is_package_writable():
        return None
    folder = cache_folder()
    return str(folder / "kernels") if folder is not None else None


@lru_cache(maxsize=1)
def _is_package_writable() -> bool:
    return is_writable(Path(__file__).parent / "__pycache__")


def is_writable(folder: Path) -> bool:
    """Whether a file can really be made in the folder, which is made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@lru_cache(maxsize=8)
def _first_usable(candidates: tuple[Path, ...]) -> Path | None:
    return next((path for path in candidates if is_writable(path) and _is_private(path)), None)


def _candidates() -> list[Path]:
    if chosen := os.environ.get(VARIABLE):
        return [Path(chosen).expanduser().absolute()]
    found = []
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        found.append(Path(xdg))
    elif sys.platform == "darwin":
        found.append(Path("~/Library/Caches").expanduser())
    elif local := os.environ.get("LOCALAPPDATA"):
        found.append(Path(local))
    else:
        found.append(Path("~/.cache").expanduser())
    owner = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    temporary = Path(tempfile.gettempdir()) / f"muntin-{owner}"
    return [*(folder.absolute() / "muntin" for folder in found), temporary]


def _is_private(folder: Path) -> bool:
    """Whether nobody else may write there: a shared temporary folder can be prepared by others."""
    if not hasattr(os, "getuid"):
        return True
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o022
