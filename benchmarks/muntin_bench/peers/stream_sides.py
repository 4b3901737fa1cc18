"""A folder that files arrive in, and two ways to answer queries over it: Muntin's and Spark's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import muntin
from muntin_bench.peers.data import START
from muntin_bench.peers.questions import SECOND, Spec

SCHEMA = "ts timestamp, amount double"


class Feed:
    """Puts files of rows into a folder; event times go on from file to file."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.rows = folder, 0
        self._files = self._time = 0
        folder.mkdir()

    def put(self, rows: int, seconds: int) -> None:
        """Add a file with the rows of the next so many seconds."""
        random = np.random.default_rng(self._files)
        first = START + self._time * SECOND
        ticks = np.sort(random.integers(0, seconds * 1000, rows)) * 1000 + first
        table = pa.table(
            {
                "ts": pa.array(ticks, pa.timestamp("us", "UTC")),
                "amount": np.round(random.uniform(0, 1000, rows), 2),
            }
        )
        hidden = self.folder / f".{self._files:06d}.parquet"
        pq.write_table(table, hidden, row_group_size=max(rows // 4, 1))
        # Spark takes files in the order of their times.
        os.utime(hidden, (1e9 + self._files, 1e9 + self._files))
        hidden.rename(self.folder / hidden.name[1:])
        self._files += 1
        self._time += seconds
        self.rows += rows


class Stream(Protocol):
    """Queries that run over a feed."""

    feed: Feed

    def done(self) -> int:
        """How many rows have been through all queries, answers written."""
        ...

    def answers(self) -> dict[str, pa.Table]:
        """The answers so far, by query."""
        ...

    def stop(self) -> None:
        """End all queries."""
        ...


class OurStream:
    """All queries in one run of Muntin's."""

    def __init__(self, folder: Path, queries: tuple[Spec, ...]) -> None:
        self.feed, self._out, self._queries = Feed(folder / "in"), folder / "out", queries
        self.feed.put(1, 1)
        self._run = muntin.run(
            muntin.files(self.feed.folder, schema=SCHEMA),
            ";\n".join(query.sql for query in queries),
            time="ts",
            sink=muntin.sinks.parquet(self._out),
            checkpoint=folder / "checkpoint",
        )

    def done(self) -> int:
        """Rows of batches that have ended."""
        return self._run.progress().rows

    def answers(self) -> dict[str, pa.Table]:
        """What the sink holds."""
        found = muntin.read(self._out)
        return {query.name: _plain(found[query.name]) for query in self._queries}

    def stop(self) -> None:
        """End the run."""
        self._run.stop()


class SparkStream:
    """A streaming query of Spark's for each query, all in one session."""

    def __init__(self, session: Any, folder: Path, queries: tuple[Spec, ...]) -> None:
        self.feed, self._folder, self._session = Feed(folder / "in"), folder, session
        self.feed.put(1, 1)
        session.conf.set("spark.sql.streaming.numRecentProgressUpdates", "100000")
        self._queries = {query.name: self._start(query) for query in queries}

    def _start(self, query: Spec) -> Any:
        rows = self._session.readStream.schema(SCHEMA).parquet(str(self.feed.folder))
        rows.withWatermark("ts", "0 seconds").createOrReplaceTempView("arriving")
        chosen = ", ".join(each.sql for each in query.aggregates)
        frame = self._session.sql(
            f"SELECT window.start AS window_start, {chosen} FROM arriving GROUP BY "
            f"window(ts, '{query.range} microseconds', '{query.slide} microseconds')"
        )
        writer = frame.writeStream.format("parquet").outputMode("append")
        place = str(self._folder / f"checkpoint-{query.name}")
        return writer.option("checkpointLocation", place).start(str(self._folder / query.name))

    def done(self) -> int:
        """Rows that the slowest query has been through."""
        return min(
            sum(int(each.numInputRows) for each in query.recentProgress)
            for query in self._queries.values()
        )

    def answers(self) -> dict[str, pa.Table]:
        """What the sinks hold."""
        return {
            name: _plain(self._session.read.parquet(str(self._folder / name)).toArrow())
            for name in self._queries
        }

    def stop(self) -> None:
        """End all queries."""
        for query in self._queries.values():
            # A batch that is interrupted fills the screen with its trace.
            query.processAllAvailable()
            query.stop()


def _plain(table: pa.Table) -> pa.Table:
    place = table.column_names.index("window_start")
    ticks = table.column("window_start").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    return table.set_column(place, "window_start", ticks)
