"""An environment for each peer: this one where it has the pinned version, or one made on demand.

Environments are made under ``~/.cache/muntin/peers`` (or the folder that ``MUNTIN_PEERS`` names)
and stay there. Nothing in them is a dependency of Muntin.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from muntin.errors import MuntinError, did_you_mean

FOLDER_VARIABLE = "MUNTIN_PEERS"
# What each peer is compared in, and what its adapter needs besides.
PINS: dict[str, tuple[str, ...]] = {
    "duckdb": ("duckdb==2.0.0", "pyarrow"),
    "polars": ("polars==2.1.0", "pyarrow"),
    "pandas": ("pandas==2.3.3", "pyarrow"),
    "spark": ("pyspark==4.3.0", "pyarrow", "pandas==2.3.3", "numpy"),
    "flink": ("apache-flink==2.3.0", "pyarrow"),
    "bytewax": ("bytewax==0.21.1", "pyarrow"),
    "pathway": ("pathway==0.33.0", "pyarrow"),
}
_READY = "ready"


class InstallError(MuntinError):
    """An environment that could not be made; the peer is left out, with this as the reason."""


def pinned(peer: str) -> tuple[str, str]:
    """The package of a peer and its version.

    >>> pinned("flink")
    ('apache-flink', '2.3.0')
    """
    if peer not in PINS:
        raise MuntinError(f"there is no peer {peer!r}", hint=did_you_mean(peer, PINS))
    package, _, wanted = PINS[peer][0].partition("==")
    return package, wanted


def folder_of(peer: str) -> Path:
    """Where the environment of a peer is, or would be."""
    base = os.environ.get(FOLDER_VARIABLE)
    root = Path(base) if base else Path.home() / ".cache" / "muntin" / "peers"
    return root / f"{peer}-{pinned(peer)[1]}"


def find(peer: str) -> Path | None:
    """The Python of a peer's environment, if there is one already."""
    package, wanted = pinned(peer)
    try:
        if version(package) == wanted:
            return Path(sys.executable)
    except PackageNotFoundError:
        pass
    folder = folder_of(peer)
    return _python(folder) if (folder / _READY).exists() else None


def provide(peer: str, say: Callable[[str], None]) -> Path:
    """The Python of a peer's environment, which is made if need be."""
    found = find(peer)
    if found is not None:
        return found
    folder = folder_of(peer)
    say(f"installing {PINS[peer][0]} into {folder}, once")
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _call([sys.executable, "-m", "venv", str(folder)], peer)
    pip = [str(_python(folder)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _call([*pip, *PINS[peer]], peer)
    (folder / _READY).touch()
    return _python(folder)


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _call(command: list[str], peer: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "ERROR" in line]
        reason = (lines or done.stderr.splitlines() or ["no reason given"])[-1]
        raise InstallError(
            f"{PINS[peer][0]} cannot be installed here: {reason.strip()}",
            hint="the comparison goes on without it",
        )
