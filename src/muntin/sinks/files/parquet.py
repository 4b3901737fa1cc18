"""Results in Parquet files, each row exactly once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from muntin.display import count
from muntin.sinks.durable import local_path, remove, sync_all
from muntin.sinks.files import layout
from muntin.sinks.files.compaction import Compactor
from muntin.sinks.files.layout import data_path, write_data
from muntin.sinks.files.log import CommitLog
from muntin.sinks.files.manifest import FileEntry
from muntin.sinks.sink import Sink, SinkError, Writer

COMPACT_EVERY = 64


@dataclass(frozen=True)
class ParquetWriter(Writer[FileEntry]):
    """Writes a task's results under names of its own; they count once the driver commits."""

    root: str

    def write(
        self, batch_id: int, attempt_id: int | str, results: Mapping[str, pa.Table]
    ) -> list[FileEntry]:
        """Write one file for each query that has rows; they are on the disk on return."""
        if not Path(self.root).is_dir():
            raise SinkError(
                f"{self.root} is not a folder on this worker",
                hint="on a cluster, results go to a folder that the driver and all workers share",
            )
        written: list[Path] = []
        try:
            entries = [
                self._write(batch_id, attempt_id, query, table, written)
                for query, table in results.items()
                if table.num_rows
            ]
            sync_all([*written, *{path.parent for path in written}])
        except BaseException as error:
            remove(written)
            if isinstance(error, OSError):
                raise SinkError.of("write results to", self.root, error) from error
            raise
        return entries

    def _write(
        self,
        batch_id: int,
        attempt_id: int | str,
        query: str,
        table: pa.Table,
        written: list[Path],
    ) -> FileEntry:
        root = Path(self.root)
        path = data_path(root, query, layout.file_name("b", batch_id, attempt_id))
        written.append(path)
        return write_data(root, path, query, table, lasts=False)


class ParquetSink(Sink[FileEntry]):
    """A folder with one folder of Parquet files for each query; every row is there once.

    Tasks write files; the driver commits a batch by giving a manifest its name, which happens
    at once or not at all. A batch that is repeated keeps the files it has committed. Files
    that no manifest names do not count: ``muntin.read`` does not see them, and a restart
    removes them. Small files are merged in the background.

    Args:
        folder: Where results go; on a cluster, a folder that the driver and workers share.
        compact_every: After how many batches with results to merge small files; None for never.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, compact_every: int | None = COMPACT_EVERY
    ) -> None:
        if compact_every is not None and compact_every < 1:
            raise SinkError(
                f"compact_every must be 1 or more, not {compact_every}", hint="None never compacts"
            )
        self.root = local_path(folder)
        self.compact_every = compact_every
        self._log = CommitLog(self.root)
        self._compactor = Compactor(self.root)
        self._is_claimed = False

    def writer(self) -> ParquetWriter:
        """The half that runs in tasks."""
        self._claim("")
        return ParquetWriter(str(self.root))

    def places(self, entries: Sequence[FileEntry]) -> set[str]:
        """The folder, if anything goes there."""
        return {str(self.root)} if entries else set()

    def positions(self, run: str) -> dict[str, int]:
        """The last batch of the folder's manifests."""
        try:
            layout.check_owner(self.root, run)
            return {str(self.root): self._log.reached()}
        except OSError as error:
            raise SinkError.of("use", self.root, error) from error

    def skip_to(self, batches: Mapping[str, int], run: str) -> None:
        """Take batches up to one for committed, with the files that manifests still name."""
        self._claim(run)
        try:
            self._log.skip_to(batches[str(self.root)])
        except OSError as error:
            raise SinkError.of("write to", self.root, error) from error

    def recover(self, last_batch: int, *, run: str = "") -> None:
        """Remove every file that is not committed.

        The batch after ``last_batch`` may be committed here already, when the run ended before
        its checkpoint knew; later ones belong to another run, which is refused.
        """
        self._claim(run)
        last = self._log.snapshot().last
        if last > last_batch + 1:
            raise SinkError(
                f"{self.root} holds results up to batch {last}, and the checkpoint has only "
                f"finished {f'batch {last_batch}' if last_batch >= 0 else 'none'}",
                hint="continue with the checkpoint that wrote there, or choose another folder",
            )
        self._compactor.wait()
        try:
            layout.remove_temporary(self.root)
            self._log.remove_temporary()
            self._compactor.remove_uncommitted(None)
        except OSError as error:
            raise SinkError.of("clean", self.root, error) from error

    def declare(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Know queries before they have results."""
        self._claim("")
        try:
            layout.declare(self.root, schemas)
        except OSError as error:
            raise SinkError.of("write to", self.root, error) from error

    def commit(self, batch_id: int, entries: Sequence[FileEntry]) -> None:
        """Write the batch's manifest, unless it is there: then keep it and drop these files."""
        if not entries:
            return
        self._claim("")
        try:
            self._commit(batch_id, entries)
        except OSError as error:
            raise SinkError.of(f"commit batch {batch_id} to", self.root, error) from error

    def _commit(self, batch_id: int, entries: Sequence[FileEntry]) -> None:
        snapshot = self._log.snapshot()
        if batch_id <= snapshot.last:
            if batch_id > snapshot.base and batch_id not in snapshot.batches:
                raise SinkError(
                    f"batch {batch_id} was never committed to {self.root}, but batch "
                    f"{snapshot.last} was",
                    hint="continue with the checkpoint that wrote there, or choose another folder",
                )
            kept = {entry.path for entry in snapshot.files}
            remove(self.root / entry.path for entry in entries if entry.path not in kept)
            return
        self._check_present(batch_id, entries)
        self._log.append(batch_id, snapshot.last, sorted(entries, key=lambda entry: entry.path))
        if self.compact_every is not None and len(snapshot.batches) + 1 >= self.compact_every:
            self._compactor.start()

    def compact(self) -> None:
        """Merge small files at once, and wait for it."""
        self._claim("")
        self._compactor.wait()
        try:
            self._compactor.run()
        except OSError as error:
            raise SinkError.of("compact", self.root, error) from error

    def close(self) -> None:
        """Wait for a compaction that is under way."""
        self._compactor.wait()

    def _claim(self, run: str) -> None:
        if self._is_claimed and not run:
            return
        try:
            layout.claim(self.root, run)
        except OSError as error:
            raise SinkError.of("use", self.root, error) from error
        self._is_claimed = True

    def _check_present(self, batch_id: int, entries: Sequence[FileEntry]) -> None:
        missing = [entry.path for entry in entries if not (self.root / entry.path).exists()]
        if missing:
            raise SinkError(
                f"batch {batch_id} names {count(len(missing), 'file')} not in {self.root}, such as "
                f"{missing[0]}",
                hint="the driver and all workers must share the folder",
            )


def parquet(
    folder: str | os.PathLike[str], *, compact_every: int | None = COMPACT_EVERY
) -> ParquetSink:
    """Write results to Parquet files, one folder for each query, each row exactly once."""
    return ParquetSink(folder, compact_every=compact_every)
