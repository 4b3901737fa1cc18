"""Blows that kill a process in the midst of a task: as it reads rows, or as it writes results."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from muntin.sinks import ParquetSink
from muntin.sinks.files.manifest import FileEntry
from muntin.sinks.files.parquet import ParquetWriter


@dataclass(frozen=True)
class Blow:
    """Kills a process with -9, once, in the first batch from ``batch`` on that gets there.

    The victim is a process's number, or one of the task's own processes.
    """

    batch: int
    marker: str
    victim: int | Literal["worker", "executor"] = "worker"

    def is_due(self, batch: int) -> bool:
        return batch >= self.batch and not Path(self.marker).exists()

    def strike(self) -> None:
        try:
            Path(self.marker).touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(self._number(), signal.SIGKILL)
        # The rest of the task must not happen before Spark has noticed.
        time.sleep(60)

    def _number(self) -> int:
        if self.victim == "worker":
            return os.getpid()
        if self.victim == "executor":
            # A worker is the child of a daemon, which is the child of the executor.
            status = Path(f"/proc/{os.getppid()}/stat").read_text()
            return int(status.rpartition(")")[2].split()[1])
        return self.victim


def while_reading(blow: Blow) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The rows as they are, with a blow after some of them: the middle of a map task."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        number = int(context.getLocalProperty("streaming.sql.batchId"))
        for batch in batches:
            yield batch
            if blow.is_due(number):
                blow.strike()

    return rows


@dataclass(frozen=True)
class StruckWriter(ParquetWriter):
    """Writes the results of one query, is struck, and would go on with the others."""

    blow: Blow

    def write(
        self, batch_id: int, attempt_id: int | str, results: Mapping[str, pa.Table]
    ) -> list[FileEntry]:
        filled = [name for name, table in results.items() if table.num_rows]
        if filled and self.blow.is_due(batch_id):
            super().write(batch_id, attempt_id, {filled[0]: results[filled[0]]})
            self.blow.strike()
        return super().write(batch_id, attempt_id, results)


class StruckSink(ParquetSink):
    """A sink whose tasks are struck while they write."""

    def __init__(self, folder: Path, blow: Blow, *, compact_every: int | None = None) -> None:
        super().__init__(folder, compact_every=compact_every)
        self._blow = blow

    def writer(self) -> StruckWriter:
        return StruckWriter(super().writer().root, self._blow)


@dataclass(frozen=True)
class LaggingWriter(StruckWriter):
    """Keeps the first attempt of each batch waiting, so that Spark starts a copy of its task.

    It waits before it writes, or after, and then goes on, though the copy may have won: the file
    of either attempt may be the last one, and Spark may have committed the state of the other.
    ``folder`` gets a file for every attempt.
    """

    folder: str
    seconds: float = 4.0

    def write(
        self, batch_id: int, attempt_id: int | str, results: Mapping[str, pa.Table]
    ) -> list[FileEntry]:
        Path(self.folder, f"attempt-{batch_id}-{attempt_id}").touch()
        try:
            Path(self.folder, f"lag-{batch_id}").touch(exist_ok=False)
        except FileExistsError:
            return super().write(batch_id, attempt_id, results)
        if batch_id % 2:
            time.sleep(self.seconds)
        found = super().write(batch_id, attempt_id, results)
        if not batch_id % 2:
            time.sleep(self.seconds)
        return found


class LaggingSink(StruckSink):
    """A sink whose tasks lag, and are struck while they write."""

    def __init__(self, folder: Path, lags: Path, blow: Blow, *, compact_every: int) -> None:
        super().__init__(folder, blow, compact_every=compact_every)
        self._lags = lags

    def writer(self) -> LaggingWriter:
        held = super().writer()
        return LaggingWriter(held.root, held.blow, str(self._lags))


@contextmanager
def carried_by_value() -> Iterator[None]:
    """Let tasks have this module, which workers cannot import."""
    from pyspark import cloudpickle

    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)
