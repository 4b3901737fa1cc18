"""A stream of files that a test puts into a folder, one batch each, and what it must give."""

from __future__ import annotations

import json
import os
import pickle
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from muntin.planner import build_plan
from muntin.queries import Query, queries
from muntin.streams import LiveEngine

SCHEMA = "ts timestamp, symbol string, price double, vol bigint, exchange string"
PATIENCE = 120
# The local engine wants a query to go on with.
NOTHING = "CREATE QUERY nothing AS SELECT count(*) AS n FROM s [RANGE '999 days' SLIDE '999 days']"


class FolderStream:
    """Every file that is put into the folder becomes one batch, in order."""

    def __init__(self, folder: Path, schema: str = SCHEMA) -> None:
        self.folder, self.schema, self.count = folder, schema, 0
        folder.mkdir(parents=True, exist_ok=True)

    def put(self, table: pa.Table) -> None:
        hidden = self._hidden("parquet")
        pq.write_table(table, hidden)
        self._show(hidden)

    def put_text(self, text: str, suffix: str) -> None:
        hidden = self._hidden(suffix)
        hidden.write_text(text)
        self._show(hidden)

    def _hidden(self, suffix: str) -> Path:
        return self.folder / f".{self.count:05d}.{suffix}"

    def _show(self, hidden: Path) -> None:
        # Spark takes files in the order of their times.
        os.utime(hidden, (1e9 + self.count, 1e9 + self.count))
        hidden.rename(self.folder / hidden.name[1:])
        self.count += 1

    def frame(self, spark: Any, kind: str = "parquet") -> Any:
        reader = spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1)
        return reader.format(kind).load(str(self.folder))


def wait_for_batches(run: Any, count: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while run.progress().batches < count:
        assert time.monotonic() < deadline, run.progress()
        if run.await_termination(0.02) and run.progress().batches < count:
            raise AssertionError(f"the run ended: {run.progress()}")


def parts(table: pa.Table, count: int) -> list[pa.Table]:
    size = -(-table.num_rows // count)
    return [table.slice(start, size) for start in range(0, table.num_rows, size)]


def expected(
    batches: Sequence[pa.Table],
    sets: Sequence[Iterable[Query] | str],
    *,
    lateness: int = 0,
    tables: Sequence[Mapping[str, pa.Table]] | None = None,
    close: bool = False,
) -> dict[str, pa.Table]:
    """What the local engine answers, with the queries (and tables) that each batch has.

    With ``close``, the windows that are open at the end are answered too.
    """
    engine: LiveEngine | None = None
    found: dict[str, list[pa.Table]] = {}
    for number, (batch, spec) in enumerate(zip(batches, sets, strict=True)):
        held = tables[number] if tables else {}
        wanted = list(queries(spec) if isinstance(spec, str) else spec) or list(queries(NOTHING))
        if engine is None:
            schemas = {name: table.schema for name, table in held.items()}
            plan = build_plan(wanted, batch.schema, "ts", tables=schemas)
            engine = LiveEngine(plan, lateness, tables=held)
        else:
            for name, table in held.items():
                engine.update_table(name, table)
            engine.replace(wanted)
        for name, table in engine.feed(batch).items():
            found.setdefault(name, []).append(table)
    if close and engine is not None:
        for name, table in engine.close().items():
            found.setdefault(name, []).append(table)
    return {name: pa.concat_tables(tables) for name, tables in found.items()}


def batches_read(checkpoint: Path) -> list[pa.Table]:
    """The rows of each batch, as Spark's own logs say.

    Mostly one file each: but a driver that dies after Spark has noted a file, and before it has
    noted the batch, leaves that file to the next batch, which has two then.
    """
    notes: dict[str, int] = {}
    for path in (checkpoint / "spark" / "sources" / "0").glob("[0-9]*"):
        for line in path.read_text().splitlines()[1:]:
            note = json.loads(line)
            notes[note["path"].removeprefix("file://")] = note["batchId"]
    offsets = sorted((checkpoint / "spark" / "offsets").glob("[0-9]*"), key=lambda x: int(x.name))
    batches, before = [], -1
    for path in offsets:
        last = json.loads(path.read_text().splitlines()[-1])["logOffset"]
        files = sorted(name for name, note in notes.items() if before < note <= last)
        batches.append(pa.concat_tables(map(pq.read_table, files)))
        before = last
    return batches


def query_sets(checkpoint: Path, count: int) -> list[list[Query]]:
    """The queries of each batch, as the checkpoint's records say; it keeps the last few."""
    sets = []
    for batch in range(count):
        record = json.loads((checkpoint / "batches" / f"{batch:020d}.record.json").read_bytes())
        (path,) = (checkpoint / "plans").glob(f"*-{record['plan']}.plan")
        plan = pickle.loads(path.read_bytes())[1]
        sets.append([final.query for final in plan.finals])
    return sets
