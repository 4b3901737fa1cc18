"""Brings Muntin's code and its compiled kernels to the workers of a cluster.

Spark unpacks archives into the working folder of every executor, also of those that start
later, and Python workers look there before they look at what is installed.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from muntin.spark.environment.settings import local_cores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Folders in an executor's working folder.
CODE, KERNELS = "muntin-code", "muntin-given-kernels"
_PACKAGE = Path(__file__).parents[2]


def ship(session: SparkSession, *, code: bool = True) -> None:
    """Let the workers of a session have this very Muntin, and what it has compiled.

    Frames and streams that are made afterwards run with it. On one machine there is nothing to
    do, and what has been shipped is not shipped again.

    Args:
        session: A session on a cluster.
        code: Whether the code goes too; without it only kernels do, and workers must have the
            same version of Muntin installed to use them.
    """
    context = session.sparkContext
    if local_cores(context.master) is not None:
        return
    from muntin._compiled import VARIABLE, kernel_files  # noqa: PLC0415  it brings numba

    environment = context.environment
    if VARIABLE not in environment:
        kernels = {path.name: path for path in kernel_files()}
        context.addArchive(f"{pack(kernels, KERNELS)}#{KERNELS}")
        environment[VARIABLE] = KERNELS
    paths = environment.get("PYTHONPATH", "").split(os.pathsep)
    if code and CODE not in paths:
        sources = {str(path.relative_to(_PACKAGE.parent)): path for path in _sources()}
        context.addArchive(f"{pack(sources, CODE)}#{CODE}")
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [CODE, *paths]))


def pack(files: dict[str, Path], name: str) -> Path:
    """An archive of files, which lasts as long as this process: late executors read it, too."""
    folder = tempfile.mkdtemp(prefix="muntin-ship-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder, f"{name}.zip")
    # Files of a wheel may claim to be older than a zip file can say.
    with zipfile.ZipFile(
        path, "w", zipfile.ZIP_DEFLATED, compresslevel=1, strict_timestamps=False
    ) as archive:
        archive.writestr(f"{name}.txt", "Shipped by Muntin.\n")
        for place, file in sorted(files.items()):
            archive.write(file, place)
    return path


def _sources() -> Iterator[Path]:
    for path in _PACKAGE.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path
