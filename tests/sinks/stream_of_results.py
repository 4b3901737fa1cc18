"""A made-up run: results that depend on the batch alone, written by two tasks and committed."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa

from muntin.sinks import FileEntry, ParquetSink, read

QUERIES = ("spikes", "Volume", "rare")
CHANGE = 3  # the batch from which Volume has another column


def results(batch: int, task: int) -> dict[str, pa.Table]:
    """What a task of a batch gives; the same whenever it is asked."""
    rng = random.Random(1000 * batch + task)
    found = {}
    for query in QUERIES:
        rows = rng.randrange(4) if query != "rare" or batch % 5 == 0 else 0
        # Every batch has a row, so that the last row tells the last batch.
        rows += query == "spikes"
        ids = [(batch * 2 + task) * 10 + i for i in range(rows)]
        columns = {"batch": pa.array([batch] * rows, pa.int64()), "id": pa.array(ids, pa.int64())}
        if query == "Volume" and batch >= CHANGE:
            columns["more"] = pa.array([f"m{i}" for i in ids], pa.string())
        found[query] = pa.table(columns)
    return found


def expected(query: str, last: int) -> list[tuple[int, int]]:
    """All rows of a query up to a batch."""
    rows: list[tuple[int, int]] = []
    for batch in range(last + 1):
        for task in range(2):
            rows += rows_of(results(batch, task)[query])
    return sorted(rows)


def rows_of(table: pa.Table) -> list[tuple[int, int]]:
    return sorted(zip(table["batch"].to_pylist(), table["id"].to_pylist(), strict=True))


def run_batch(sink: ParquetSink, batch: int) -> None:
    """Write and commit a batch; one task has an attempt that fails after it has written."""
    writer = sink.writer()
    entries: list[FileEntry] = []
    for task in range(2):
        if (batch + task) % 3 == 0:
            writer.write(batch, f"{task}.0", results(batch, task))
        entries += writer.write(batch, f"{task}.1", results(batch, task))
    sink.commit(batch, entries)


def last_committed(folder: Path) -> int:
    return read(folder)._log.snapshot().last


def assert_whole(folder: Path, *, at_least: int = -1) -> int:
    """Check that the folder holds the rows of all batches up to one, each once; that batch."""
    output = read(folder)
    tables = {name.lower(): rows_of(output[name]) for name in output}
    last = max([row[0] for rows in tables.values() for row in rows], default=-1)
    assert last >= at_least
    for query in QUERIES:
        assert tables.get(query.lower(), []) == expected(query, last), query
    return last
