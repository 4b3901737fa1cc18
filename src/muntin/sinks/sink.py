"""What every sink is: a writer that goes to the tasks, and a commit on the driver."""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import pyarrow as pa

from muntin.errors import MuntinError

Entry = TypeVar("Entry")


class Writer(ABC, Generic[Entry]):
    """The half of a sink that runs in tasks: small, picklable, without state.

    Any number of attempts may write the results of one task. Each returns entries that say
    what it wrote, and only those of one attempt are committed; so an attempt must not change
    what another has written, and nothing it writes may be visible before the commit.
    """

    @abstractmethod
    def write(
        self, batch_id: int, attempt_id: int | str, results: Mapping[str, pa.Table]
    ) -> list[Entry]:
        """Write one task's results, durably, and say what was written.

        Args:
            batch_id: The batch, counted from 0.
            attempt_id: What tells this attempt from others of the same application.
            results: A table for each query; empty ones may be left out.
        """


class Sink(ABC, Generic[Entry]):
    """Where results go.

    The order of calls is: ``recover`` once, ``declare`` at the start and whenever the set of
    queries changes, and for every batch ``write`` in each task and then ``commit`` on the
    driver; at the end ``close``. After a crash the last batch is run again with the same
    results, so a commit must be safe to repeat. A batch without results may not be committed
    at all. All methods but the writer's run on the driver, one at a time.

    To add a sink, derive from this class in one file, and say in its docstring what a reader
    sees when a batch is repeated.
    """

    @abstractmethod
    def writer(self) -> Writer[Entry]:
        """The half that runs in tasks."""

    @abstractmethod
    def commit(self, batch_id: int, entries: Sequence[Entry]) -> None:
        """Make a batch's results visible, all at once, as often as the batch is repeated.

        Args:
            batch_id: The batch; never lower than one that was committed, repeats aside.
            entries: What the successful attempts of all its tasks returned, in any order.
        """

    def places(self, entries: Sequence[Entry]) -> set[str]:
        """The names of the places that keep these entries; none for a sink that keeps nothing.

        A sink with places is held to them: a run continues only if each has all results so far.
        """
        del entries
        return set()

    def positions(self, run: str) -> Mapping[str, int]:
        """The last batch of a run that is committed in each of the sink's places; -1 for none.

        It is asked before anything else, and changes nothing.
        """
        del run
        return {}

    def skip_to(self, batches: Mapping[str, int], run: str) -> None:
        """Take all batches up to these, by place, for committed: they are lost, and that is known.

        Args:
            batches: The batches, by the names of some of the sink's places.
            run: The name of the run.
        """

    def recover(self, last_batch: int, *, run: str = "") -> None:
        """Undo what was written and not committed; called before the first batch.

        Args:
            last_batch: The last batch that the run's checkpoint has finished; -1 for none.
            run: A name that stays with the checkpoint, so that no other run writes here.
        """

    def declare(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Take note of queries and the columns of their results, before any result."""

    def check_outputs(self, outputs: Mapping[str, str]) -> None:
        """Refuse queries that it cannot take, with what to write; before `declare`.

        Args:
            outputs: How each query shows its results: ``windows``, or for rows with lifetimes
                ``append``, ``final`` or ``changes``.
        """

    def reach(self, times: Mapping[str, pa.Scalar]) -> None:
        """Take note of how far results have come, before a batch is committed.

        Args:
            times: By query over rows with lifetimes, the least W of the streams it reads, as a
                time of its results: what ends by then has ended for good.
        """

    def close(self) -> None:
        """Finish what goes on in the background."""


@dataclass(frozen=True)
class RowsEntry:
    """The rows of one query from one task, as an Arrow IPC stream."""

    query: str
    rows: int
    blob: bytes

    @classmethod
    def of(cls, query: str, table: pa.Table) -> RowsEntry:
        """Pack a table."""
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, table.schema) as file:
            file.write_table(table)
        return cls(query, table.num_rows, stream.getvalue().to_pybytes())

    def table(self) -> pa.Table:
        """Unpack the table.

        >>> RowsEntry.of("q", pa.table({"a": [1, 2]})).table().num_rows
        2
        """
        return pa.ipc.open_stream(self.blob).read_all()


class RowsWriter(Writer[RowsEntry]):
    """Packs the rows and writes nothing: what is not committed is gone by itself."""

    def write(
        self, batch_id: int, attempt_id: int | str, results: Mapping[str, pa.Table]
    ) -> list[RowsEntry]:
        """Pack every table that has rows."""
        del batch_id, attempt_id
        return [RowsEntry.of(query, table) for query, table in results.items() if table.num_rows]


class DriverSink(Sink[RowsEntry]):
    """A sink that gets each query's rows of a batch as one table, on the driver."""

    def writer(self) -> RowsWriter:
        """The half that runs in tasks."""
        return RowsWriter()

    def commit(self, batch_id: int, entries: Sequence[RowsEntry]) -> None:
        """Hand over one table for each query, in the order of their names."""
        tables: dict[str, list[pa.Table]] = {}
        for entry in entries:
            tables.setdefault(entry.query, []).append(entry.table())
        self.deliver(batch_id, {name: pa.concat_tables(tables[name]) for name in sorted(tables)})

    @abstractmethod
    def deliver(self, batch_id: int, tables: Mapping[str, pa.Table]) -> None:
        """Take the results of a batch; the same batch may come again."""


_HINTS = {
    errno.ENOSPC: "free some space and start again: what was committed is safe",
    errno.EDQUOT: "raise the quota or free some space and start again: what was committed is safe",
    errno.EACCES: "give the user that runs Spark's workers the right to write there",
    errno.EPERM: "give the user that runs Spark's workers the right to write there",
    errno.EROFS: "choose a folder on a file system that can be written",
    errno.ENOTDIR: "choose a folder, not a file",
    errno.EEXIST: "choose a folder, not a file",
    errno.ENAMETOOLONG: "use a shorter name for the query or the folder",
}


class SinkError(MuntinError, RuntimeError):
    """Results cannot be written or read as asked; nothing is half committed."""

    @classmethod
    def of(cls, doing: str, path: str | Path, error: OSError) -> SinkError:
        """The error for something the file system refused.

        >>> print(SinkError.of("write", "out", OSError(errno.ENOSPC, "No space left on device")))
        cannot write out: No space left on device
        Hint: free some space and start again: what was committed is safe
        """
        # Arrow wraps the system's words in its own.
        reason = os.strerror(error.errno) if error.errno else str(error)
        return cls(f"cannot {doing} {path}: {reason}", hint=_HINTS.get(error.errno or 0))
