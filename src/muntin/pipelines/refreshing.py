"""Looks at the files of tables, and says which have changed."""

from __future__ import annotations

import glob
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from muntin.pipelines.model import TableSpec
from muntin.windows import duration

Signature = frozenset[tuple[str, int, int]]


class TableWatcher:
    """Which tables have changed since they were read.

    Tables of other file systems are not looked at: asking for them each second may cost money.

    Args:
        tables: The tables; those without ``refresh`` are left alone.
        clock: Seconds that only grow.
    """

    def __init__(
        self, tables: Iterable[TableSpec], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._watched = [
            _Watched(table.name, table.path, duration(table.refresh) / 1e6, clock())
            for table in tables
            if table.refresh is not None and "://" not in table.path
        ]

    def changed(self) -> Iterator[str]:
        """The tables to read again; one that is not `accept`-ed is named again when it is due."""
        for each in self._watched:
            if self._clock() < each.due:
                continue
            each.due = self._clock() + each.interval
            each.found = signature(each.path)
            if each.found != each.read:
                yield each.name

    def accept(self, name: str) -> None:
        """Take note that a table has been read as it was when it was named."""
        for each in self._watched:
            if each.name == name:
                each.read = each.found


class _Watched:
    def __init__(self, name: str, path: str, interval: float, moment: float) -> None:
        self.name, self.path, self.interval = name, path, interval
        self.due = moment + interval
        self.read = self.found = signature(path)


def signature(path: str) -> Signature:
    """What tells whether files have changed: their names, sizes and times."""
    found = [Path(each) for each in glob.glob(path)] or [Path(path)]
    files = [file for each in found for file in ([each] if each.is_file() else _files(each))]
    signs = set()
    for file in files:
        try:
            status = file.stat()
        except OSError:
            # It is gone already; what takes its place is seen with the next look.
            continue
        signs.add((str(file), status.st_mtime_ns, status.st_size))
    return frozenset(signs)


def _files(folder: Path) -> Iterator[Path]:
    for file in folder.rglob("*"):
        if file.is_file() and not file.name.startswith((".", "_")):
            yield file
