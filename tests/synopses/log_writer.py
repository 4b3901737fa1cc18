"""A run's keeps without Spark: batches are kept in a log as map tasks and the driver keep them.

As a program, it keeps batches until it is killed: ``python log_writer.py CHECKPOINT BATCHES``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

import muntin
from muntin.engine.rows.stage_a import StageA
from muntin.expressions.zones import UTC
from muntin.plan.timeline import Timeline
from muntin.queries import keeps
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.checkpoint.asks import KeepRecord, KeptFile, write_kept
from muntin.spark.streaming.checkpoint.checkpoint import Checkpoint
from muntin.spark.streaming.checkpoint.records import (
    BatchOutcome,
    BatchRecord,
    StreamOutcome,
    StreamRecord,
)
from muntin.spark.streaming.driver.keeps import RunKeeps
from muntin.streams import Stream

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()})
KEEP = (
    "CREATE KEEP recent AS SELECT k, max(v), sum(v), min(v), count(*)"
    " FROM t [RANGE 60 SLIDE 2] GROUP BY k CUT (v > 50)"
)
LATENESS = 4


def batch_of(number: int) -> pa.Table:
    """The rows of a batch, the same whenever they are asked for."""
    ticks = [number * 3 + place % 5 for place in range(12)]
    return pa.table(
        {
            "ts": ticks,
            "k": ["abcd"[(place * 7 + number) % 4] for place in range(12)],
            "v": [(place * 37 + number * 11) % 100 for place in range(12)],
        },
        schema=SCHEMA,
    )


class LogWriter:
    """Keeps batches one after the other; where it stands is what its folder says."""

    def __init__(self, folder: Path, keep: str = KEEP, streams: Sequence[str] = ()) -> None:
        self.committed = folder.parent / f"{folder.name}.committed"
        self.checkpoint = Checkpoint(folder, Buckets(1, 1), streams=streams)
        self.checkpoint.last_committed = self.last  # type: ignore[method-assign]
        source = SimpleNamespace(schema=SCHEMA)
        given: Any = SimpleNamespace(name=None, source=source, timeline=Timeline.of(SCHEMA, "ts"))
        tables: Any = SimpleNamespace(schemas={})
        try:
            self.keeps = RunKeeps([given], self.checkpoint, tables, UTC)
        except BaseException:
            self.checkpoint.release()
            raise
        self.keeps.start(keeps(keep))
        self.outcome = BatchOutcome(streams=(self._stream(self.last()),))

    def last(self) -> int:
        """The last batch that is committed, as Spark's log would have it."""
        return int(self.committed.read_text()) if self.committed.exists() else -1

    def _stream(self, last: int) -> StreamOutcome:
        if last < 0:
            return StreamOutcome()
        seen = last * 3 + 4
        return StreamOutcome(12 * (last + 1), state="p", seen=seen, watermark=seen - LATENESS)

    def run(
        self, number: int, attempt: str, *, commits: bool = True, recorded: bool = False
    ) -> None:
        """One batch: two tasks write, the manifest names their files, the batch is committed."""
        before = self.outcome.streams[0]
        stream = StreamRecord("p", "p", before.seen, before.watermark, LATENESS)
        kept = self.keeps.decide(self.outcome)
        record = BatchRecord(number, (stream,), 0, {}, keeps=kept, declared=self.keeps.version)
        if recorded:
            self.checkpoint.records.write_record(record)
        rows = batch_of(number)
        entries: list[tuple[str, KeptFile]] = []
        for task, part in enumerate((rows.slice(0, 5), rows.slice(5))):
            for each in map(lambda one: KeepRecord(**one), kept):  # noqa: C417
                stage = StageA(self.checkpoint.plan(each.plan))
                made = stage(part, 0, before.watermark).partials[0]
                folder = self.keeps.log.folder / "data" / each.name
                entries.append((each.name, write_kept(folder, f"b{number}-{attempt}{task}", made)))
        after = BatchOutcome(number, (self._stream(number),))
        self.keeps.commit(record, self.outcome, after, entries)
        if commits:
            self.outcome = after
            self.committed.with_suffix(".new").write_text(str(number))
            self.committed.with_suffix(".new").replace(self.committed)

    def wait(self) -> None:
        """Wait until all batches can be asked about."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            found = self.keeps._replicas.versions().by_name
            if all(each.moment.batch == self.last() + 1 for each in found.values()):
                return
            time.sleep(0.005)
        raise AssertionError("the replicas did not come up")

    def close(self) -> None:
        self.keeps.close()
        self.checkpoint.release()


def local(batches: int, keep: str = KEEP) -> Stream:
    """A stream in this process with the same batches."""
    stream = muntin.stream(
        "SELECT count(*) AS n FROM t [RANGE 9 SLIDE 9]", SCHEMA, lateness=LATENESS, keeps=keep
    )
    for number in range(batches):
        stream.feed(batch_of(number))
    return stream


if __name__ == "__main__":
    writer = LogWriter(Path(sys.argv[1]))
    for number in range(writer.last() + 1, int(sys.argv[2])):
        writer.run(number, f"{time.monotonic_ns()}-")
        print(number, flush=True)
    writer.wait()
    writer.close()
