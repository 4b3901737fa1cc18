"""Merges small files of results, while others read and the stream goes on.

The order makes every step safe to be the last one: merged files are written and synced, then a
checkpoint that names them gets its name, and only what the generation before needs no longer is
removed. A reader sees the old files or the merged ones, never both.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Lock, Thread

import pyarrow as pa

from muntin.display import count
from muntin.sinks.durable import remove, sync_all
from muntin.sinks.files import layout
from muntin.sinks.files.layout import data_path, read_data, write_data
from muntin.sinks.files.log import CommitLog
from muntin.sinks.files.manifest import FileEntry, Snapshot
from muntin.sinks.sink import SinkError

_logger = logging.getLogger("muntin.sinks")

FAN_IN = 8
LARGE = 64 << 20  # bytes; a file of this size is left alone
_SMALLEST = 16 << 10


def choose(files: Iterable[FileEntry], *, fan_in: int = FAN_IN) -> list[list[FileEntry]]:
    """Which files to merge into one: those of a query and version that are about equally large.

    A file is merged only with others of its tier, at least ``fan_in`` at a time, and a tier is
    ``fan_in`` times as large as the one below; so a row is rewritten a few times at most,
    however long the stream runs.
    """
    tiers: dict[tuple[str, str, int], list[FileEntry]] = {}
    for entry in files:
        if entry.bytes < LARGE:
            tier = int(math.log(max(entry.bytes / _SMALLEST, 1), fan_in))
            tiers.setdefault((entry.query.lower(), entry.schema, tier), []).append(entry)
    groups = []
    for members in tiers.values():
        groups += [group for group in _split(members) if len(group) >= fan_in]
    return groups


def _split(members: Sequence[FileEntry]) -> list[list[FileEntry]]:
    """Consecutive runs, none much larger than a large file: they are merged in memory."""
    groups: list[list[FileEntry]] = [[]]
    size = 0
    for entry in members:
        if size + entry.bytes > LARGE and groups[-1]:
            groups.append([])
            size = 0
        groups[-1].append(entry)
        size += entry.bytes
    return groups


class Compactor:
    """Compacts one folder of results, one compaction at a time, in a thread of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._log = CommitLog(root)
        self._lock = Lock()
        self._thread: Thread | None = None

    def start(self) -> None:
        """Compact in the background, unless that is under way."""
        if self._thread is not None and self._thread.is_alive():
            return
        # A daemon: it may end at any moment, so a program need not wait for it.
        self._thread = Thread(target=self._run_quietly, name="muntin-compaction", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until nothing is under way."""
        if self._thread is not None:
            self._thread.join()

    def run(self) -> None:
        """Compact at once."""
        with self._lock:
            snapshot = self._log.snapshot()
            if not snapshot.batches:
                return
            merged: list[FileEntry] = []
            try:
                files = self._merge_all(snapshot, merged)
                self._log.checkpoint(snapshot.last, snapshot.base, files)
            except BaseException:
                # A checkpoint that cannot be confirmed may yet be on the disk.
                if not self._is_committed(merged):
                    remove(self.root / entry.path for entry in merged)
                raise
            self._log.prune(snapshot.base)
            self.remove_uncommitted(snapshot.last)

    def remove_uncommitted(self, through: int | None) -> None:
        """Remove files that no manifest names, of batches up to one, or of all."""
        kept = self._log.referenced()
        remove(
            path
            for path, batch in layout.data_files(self.root)
            if (through is None or batch <= through)
            and path.relative_to(self.root).as_posix() not in kept
        )

    def _run_quietly(self) -> None:
        try:
            self.run()
        except (OSError, SinkError, pa.ArrowException) as error:
            # Results are safe without it, and the next one tries again.
            _logger.warning("small files in %s are not merged: %s", self.root, error)

    def _is_committed(self, merged: Sequence[FileEntry]) -> bool:
        return bool(merged) and merged[0].path in self._log.referenced()

    def _merge_all(self, snapshot: Snapshot, merged: list[FileEntry]) -> list[FileEntry]:
        # A merged file takes the place of its first part, so that versions keep their order.
        places: dict[str, FileEntry | None] = {}
        # Files that somebody has deleted stay named: readers must not take them for never there.
        present = [entry for entry in snapshot.files if (self.root / entry.path).exists()]
        for group in choose(present):
            self._merge(snapshot.last, group, merged)
            places |= {entry.path: None for entry in group}
            places[group[0].path] = merged[-1]
        paths = [self.root / entry.path for entry in merged]
        sync_all([*paths, *{path.parent for path in paths}])
        files = (places.get(entry.path, entry) for entry in snapshot.files)
        return [entry for entry in files if entry is not None]

    def _merge(self, batch: int, group: Sequence[FileEntry], merged: list[FileEntry]) -> None:
        table = pa.concat_tables(read_data(self.root, entry) for entry in group)
        rows = sum(entry.rows for entry in group)
        if table.num_rows != rows:
            raise SinkError(
                f"files of query {group[0].query} hold {count(table.num_rows, 'row')}, their "
                f"manifests say {rows:,}",
                hint="files there must not be changed by hand: restore them from a copy",
            )
        last = group[-1]
        path = data_path(self.root, last.query, layout.file_name("c", batch, "m"))
        try:
            merged.append(write_data(self.root, path, last.query, table, lasts=True))
        except BaseException:
            remove([path])
            raise
