"""Spark's streaming query: how it is put together, started, and stopped between two batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from threading import Condition
from typing import TYPE_CHECKING, Any

from muntin.sinks import Writer
from muntin.spark.environment.settings import IN_MEMORY, PROVIDER, TO_WORKERS
from muntin.spark.streaming.checkpoint.checkpoint import Checkpoint
from muntin.spark.streaming.checkpoint.records import KEPT
from muntin.spark.streaming.driver.heartbeat import Heartbeat
from muntin.spark.streaming.driver.inputs import StreamInput
from muntin.spark.streaming.reports import REPORT_SCHEMA
from muntin.spark.streaming.tasks import bucket, stage_a
from muntin.spark.streaming.tasks.stage_a import MapStage
from muntin.spark.streaming.tasks.stage_b import StateStage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# The checkpoint lies on a local file system, where a plain rename is atomic and Hadoop keeps
# checksums: Spark's ways for others start a process for most files they make.
LOCAL_FILES = {
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming."
    "checkpointing.FileSystemBasedCheckpointFileManager",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # As many as there are records of: files that older states name are removed.
    "spark.sql.streaming.minBatchesToRetain": str(KEPT),
}
# Spark keeps a row of a few kilobytes for each bucket. In its memory, with a file for what a batch
# has changed, these are at hand; RocksDB takes longer to open and to commit than all else a task
# does in the JVM. A checkpoint that was begun with RocksDB stays with it, as Spark notes there.
SMALL_STATE = {
    PROVIDER: IN_MEMORY,
    # Small batches then write what changed, not a copy of the whole store.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
# Where workers read files, the JVM has a row for each file and for each bucket: generating code for
# every batch and task, and compiling it, takes longer than these rows do.
FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # It tells whether a task that is run again sends other rows, and reads all that is sent for it.
    # Whoever reads a file again sends the same; a frame may not.
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
}
OnBatch = Callable[["DataFrame", int], None]
_PATIENCE = 60.0  # seconds that Spark may take to commit a batch that has come to its end
_NAP = 0.01


class StreamDriver:
    """One streaming query of Spark's, which may be started again with more columns.

    Args:
        inputs: The streams.
        checkpoint: Where Spark keeps offsets and state.
        writer: The half of the sink that runs in tasks.
        aside: That of the side output, if there is one.
        trigger: When batches begin, as Spark's writer is told.
        on_batch: What the driver does with a batch.
        heartbeat: What starts batches while the stream is silent, if anything does.
    """

    def __init__(
        self,
        inputs: Sequence[StreamInput],
        checkpoint: Checkpoint,
        writer: Writer[Any],
        aside: Writer[Any] | None,
        trigger: Mapping[str, Any],
        on_batch: OnBatch,
        heartbeat: Heartbeat | None = None,
    ) -> None:
        self._inputs, self._checkpoint = inputs, checkpoint
        self._writer, self._aside = writer, aside
        self._trigger, self._on_batch = dict(trigger), on_batch
        self._heartbeat = heartbeat
        self._moment = Condition()
        self._is_busy = self._is_halting = False
        self._last = checkpoint.last_committed()
        self.columns: list[frozenset[str]] = []
        self.query: StreamingQuery | None = None
        self.failure: BaseException | None = None
        self.is_restarting = False

    def start(self, columns: Sequence[Sequence[str]]) -> None:
        """Start the query with the columns that are read of each stream."""
        self.columns = [frozenset(each) for each in columns]
        self._is_halting = False
        session = self._inputs[0].source.session
        settings = {
            "spark.sql.shuffle.partitions": str(self._checkpoint.buckets.partitions),
            **SMALL_STATE,
            **LOCAL_FILES,
            **{name: _chosen(session, name, value) for name, value in self._preferred().items()},
        }
        if self._heartbeat is not None:
            self._heartbeat.prepare()
        with _settings(session, settings):
            writer = self._stages(columns).writeStream.foreachBatch(self._run)
            writer = writer.outputMode("append").queryName(f"muntin-{self._checkpoint.run[:8]}")
            writer = writer.option("checkpointLocation", str(self._checkpoint.spark_folder))
            if self._trigger:
                writer = writer.trigger(**self._trigger)
            self.query = writer.start()
            _await_sources(self.query)
        if self._heartbeat is not None:
            self._heartbeat.start()

    def _preferred(self) -> dict[str, str]:
        """Settings that the session may have otherwise."""
        are_files = all(given.source.reader is not None for given in self._inputs)
        return TO_WORKERS | (FEW_ROWS if are_files else {})

    def _stages(self, columns: Sequence[Sequence[str]]) -> DataFrame:
        """All streams, each through its own stage A, and one stage B behind them."""
        buckets = self._checkpoint.buckets
        mapped = [
            self._mapped(number, given, each)
            for number, (given, each) in enumerate(zip(self._inputs, columns, strict=True))
        ]
        state_stage = StateStage(buckets, self._writer)
        return (
            reduce(lambda one, other: one.union(other), mapped)
            .groupBy("bucket")
            .applyInPandasWithState(
                state_stage,
                REPORT_SCHEMA,
                bucket.SCHEMA,
                "append",
                "NoTimeout",
            )
        )

    def _mapped(self, number: int, given: StreamInput, columns: Sequence[str]) -> DataFrame:
        reader, frame = given.source.read(columns), given.source.select(columns)
        if number == 0 and self._heartbeat is not None:
            # The task of a beat calls the buckets of all streams.
            frame = self._heartbeat.beside(frame)
        stage = MapStage(self._checkpoint.buckets, reader, self._aside, given.aside, number)
        return frame.mapInArrow(stage, stage_a.SCHEMA)

    def _run(self, frame: DataFrame, batch: int) -> None:
        with self._moment:
            is_halting = self._is_halting
            self._is_busy = not is_halting
        if is_halting:
            _wait_for_interrupt(frame.sparkSession)
        try:
            self._on_batch(frame, batch)
            self._last = batch
        except BaseException as error:
            self.failure = error
            raise
        finally:
            with self._moment:
                self._is_busy = False
                self._moment.notify_all()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Stop between two batches, for a block that starts the query again."""
        self.is_restarting = True
        try:
            self.halt()
            yield
        finally:
            self.is_restarting = False

    def halt(self) -> None:
        """Stop the query between two batches: the one that runs comes to its end."""
        query = self.query
        if query is None:
            return
        with self._moment:
            self._is_halting = True
            self._moment.wait_for(lambda: not self._is_busy)
        deadline = time.monotonic() + _PATIENCE
        while self._checkpoint.last_committed() < self._last and query.isActive:
            if time.monotonic() > deadline:
                break
            time.sleep(_NAP)
        query.stop()


def _wait_for_interrupt(session: SparkSession) -> None:
    """Wait where Spark can interrupt: returning would commit a batch that has not run."""
    jvm = session.sparkContext._jvm  # noqa: SLF001  PySpark has no public name for it
    assert jvm is not None
    while True:
        jvm.java.lang.Thread.sleep(1000)


def _await_sources(query: StreamingQuery) -> None:
    """Wait until a query has made its sources, which read settings of the session itself.

    It makes them in a thread of its own once it has started: what notes the files that were read
    would start processes for it, if the settings were gone by then.
    """
    running = query._jsq.streamingQuery()  # noqa: SLF001  PySpark has no public name for it
    running.awaitInitialization(int(1000 * _PATIENCE))


def _chosen(session: SparkSession, name: str, value: str) -> str:
    """A setting as the session has it, or a value where nobody has set it."""
    return str(session.conf.get(name, value))


@contextmanager
def _settings(session: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """Settings for a query that starts, which takes a copy; the session is left as it was."""
    before: dict[str, str | None] = {name: session.conf.get(name, None) for name in wanted}
    try:
        for name, value in wanted.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, given in before.items():
            if given is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, given)
