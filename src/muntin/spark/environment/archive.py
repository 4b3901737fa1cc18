"""A class-data archive of Spark's classes, which makes a JVM start in about half the time.

The first session on a machine records the classes it loaded when its JVM ends; later ones map
that file. Each archive is named by everything it depends on, so another Java, another Spark or
another class path has its own. The JVM checks an archive again when it maps it, and goes on
without one that does not fit.
"""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from muntin._cache import cache_folder
from muntin.spark.environment.java import Java, quiet_home
from muntin.spark.environment.settings import conf_folder, spark_home

VARIABLE = "MUNTIN_CLASS_ARCHIVE"
# The JVM writes the header of an archive last, so a file that begins with this is whole.
_MAGIC = bytes.fromhex("a8ab0bf0")
_ATTEMPTS = 3
_PATIENCE = 120  # seconds that a JVM may take to write its archive after its driver has ended
_ABANDONED = 86_400  # seconds after which a file that was never finished is removed
_QUIET = "-Xlog:cds*=off"
RECORDING = "-XX:ArchiveClassesAtExit"


@dataclass(frozen=True)
class Archive:
    """One archive in a folder of the user's; ``key`` names what it depends on."""

    folder: Path
    key: str

    @property
    def path(self) -> Path:
        """Where the finished archive is."""
        return self.folder / f"{self.key}.jsa"

    def options(self) -> list[str]:
        """The JVM options that use the archive, or record it, or nothing."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._adopt()
            if self.path.exists():
                return [_QUIET, f"-XX:SharedArchiveFile={self.path}"]
            if self._claim():
                target = self.folder / f"{self.key}.{uuid4().hex}.partial"
                return [_QUIET, f"{RECORDING}={target}"]
        except OSError:
            # It only saves time: a folder that cannot be used is no reason to fail.
            pass
        return []

    def discard(self) -> None:
        """Forget the archive, as when a JVM did not start with it."""
        with suppress(OSError):
            self.path.unlink()

    def _adopt(self) -> None:
        """Put a finished recording in its place, and remove those that were cut short."""
        for partial in self.folder.glob("*.partial"):
            with suppress(OSError):
                if partial.name.startswith(f"{self.key}.") and _is_whole(partial):
                    _sync(partial)
                    # Atomic, and a JVM that has mapped the file under its old name keeps it.
                    partial.replace(self.path)
                elif _age(partial) > _ABANDONED:
                    partial.unlink()

    def _claim(self) -> bool:
        """Whether this process is the one to record.

        Each attempt leaves a file, made by exactly one process. Another is made only when the
        last one has come to nothing, and after a few the archive is taken to be impossible.
        """
        for number in range(_ATTEMPTS):
            attempt = self.folder / f"{self.key}.attempt-{number}"
            with suppress(FileExistsError):
                with attempt.open("x", encoding="utf-8") as file:
                    file.write(f"{socket.gethostname()} {os.getpid()}")
                return True
            if _age(attempt) < _PATIENCE or _is_running(attempt.read_text(encoding="utf-8")):
                return False
        return False


def archive_of_sessions(java: Java, class_path: str = "") -> Archive | None:
    """The archive of all sessions with this Java; None where none can be made.

    Args:
        java: The runtime.
        class_path: What a session adds to Spark's own.
    """
    folder = cache_folder()
    home = quiet_home(java, folder) or java.home
    more = [class_path, str(conf_folder()), str(home)]
    return archive_for(java, spark_home() / "jars", folder, more)


def archive_for(
    java: Java, jars: Path, folder: Path | None, more: Iterable[str] = ()
) -> Archive | None:
    """The archive for this Java and these jars; None where none can be made.

    Args:
        java: The runtime.
        jars: The folder of Spark's jars.
        folder: The user's cache folder.
        more: Whatever else changes the class path.
    """
    wanted = os.environ.get(VARIABLE, "1").lower() not in ("0", "false", "no", "off")
    # A recording stands on top of the runtime's own archive, which trimmed runtimes lack.
    base = java.runtime / "lib" / "server" / "classes.jsa"
    if not wanted or folder is None or not base.exists() or _needs_quotes(folder):
        return None
    parts = [str(java.runtime), java.version, _stamp(base), str(jars), _stamp(jars), *more]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    return Archive(folder / "classes", key)


def _stamp(path: Path) -> str:
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns}"


def _needs_quotes(folder: Path) -> bool:
    return any(character in str(folder) for character in " \t\"'\\")


def _is_whole(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _age(path: Path) -> float:
    return time.time() - path.stat().st_mtime


def _is_running(owner: str) -> bool:
    """Whether the process still runs, as far as this machine can tell."""
    host, _, number = owner.rpartition(" ")
    if host != socket.gethostname() or not number.isdigit():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
