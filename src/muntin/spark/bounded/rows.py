"""Row queries over bounded Spark DataFrames, in one job without state.

Map tasks send each row that is needed to its bucket, once for each key that queries spread its
stream by. A task for each bucket runs the operators over all its rows, and its results stay with
the executors. Of aggregates over rows of a join whose groups span buckets, the driver merges what
each bucket has.
"""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from muntin.engine.joined import JoinShare, Times, merged
from muntin.engine.rows.batches import gathered
from muntin.engine.tables.relations import Joiner
from muntin.operators import RowEngine
from muntin.operators.feeds import FeedSplitter, gathered_feeds
from muntin.operators.hot_keys import KeyCounts, KeySample
from muntin.operators.splits import Reached, SplitKey, decided, heats_of, lanes_of
from muntin.plan.joined import by_owner
from muntin.plan.routes import Feed, RoutedPlan
from muntin.spark.bounded.job import cores_of
from muntin.spark.bounded.results import KeptResults, release_forgotten
from muntin.spark.frames import quoted, spark_schema
from muntin.spark.problems import SparkError, worker_trouble
from muntin.spark.streaming.tasks.rows import sort_out

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A parcel has packets by feed, or notes of what a task has seen.
_PARCELS = "bucket int, packets binary, note string"
_RESULTS = "query string, rows bigint, data binary, note string"
_NOTHING: dict[str, Any] = {"rows": 0, "bad_rows": 0, "errors": {}}
_CHUNK = 1 << 18
Batches = Iterator[pa.RecordBatch]


@dataclass
class RowsFound:
    """Results by query, and what was counted: rows and bad rows by stream, failures by query.

    What the driver has merged is a table.
    """

    answers: dict[str, KeptRows | pa.Table]
    rows: Counter[str] = field(default_factory=Counter)
    bad_rows: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class KeptRows:
    """The result of a row query that the executors hold."""

    kept: KeptResults
    query: str
    schema: pa.Schema
    num_rows: int

    def table(self) -> pa.Table:
        """All rows, collected."""
        return self.frame().toArrow().cast(self.schema)

    def head(self, rows: int) -> pa.Table:
        """A few rows."""
        return self.frame().limit(rows).toArrow().cast(self.schema)

    def frame(self) -> DataFrame:
        """All rows as a Spark DataFrame."""
        from pyspark.sql.functions import col, lit  # noqa: PLC0415  imported when it is used

        own = self.kept.frame.where(col("query") == lit(self.query)).select("data")
        frame = own.mapInArrow(_opened, spark_schema(self.schema))
        # Whoever holds the frame holds what it is read from.
        frame.__dict__["_muntin_kept"] = self.kept
        return frame


def run_row_job(
    plan: RoutedPlan, frames: Mapping[str, DataFrame], tables: Mapping[str, pa.Table]
) -> RowsFound:
    """Answer row queries over whole streams by name, some joined with tables."""
    release_forgotten()
    session = next(iter(frames.values())).sparkSession
    buckets = cores_of(session)
    splits = _hot_keys(plan, frames, tables, buckets) if plan.groups else ()
    shipped = session.sparkContext.broadcast(pickle.dumps((plan, dict(tables), splits), protocol=5))
    sent = [
        _read(plan, frame, stream).mapInArrow(partial(_send, shipped, stream, buckets), _PARCELS)
        for stream, frame in frames.items()
        if plan.of_stream(stream)
    ]
    parcels = reduce(lambda one, other: one.union(other), sent)
    # By its place, not by hash: every bucket has a task of its own, and AQE merges none.
    spread = parcels.repartitionById(buckets, "bucket")
    frame = spread.mapInArrow(partial(_answer, shipped), _RESULTS).persist()
    kept = KeptResults(frame, shipped)
    try:
        notes = frame.select("query", "rows", "note").toArrow().to_pylist()
    except BaseException as error:
        kept.release()
        if trouble := worker_trouble(str(error)):
            raise SparkError(trouble[0], hint=trouble[1]) from error
        raise
    return _found(plan, kept, notes)


def _read(plan: RoutedPlan, frame: DataFrame, stream: str) -> DataFrame:
    return frame.select([quoted(name) for name in _columns(plan, stream)])


def _hot_keys(
    plan: RoutedPlan,
    frames: Mapping[str, DataFrame],
    tables: Mapping[str, pa.Table],
    buckets: int,
) -> tuple[SplitKey, ...]:
    """The keys to split over all buckets, by one more look at the streams."""
    session = next(iter(frames.values())).sparkSession
    shipped = session.sparkContext.broadcast(pickle.dumps((plan, dict(tables), ()), protocol=5))
    seen = [
        _read(plan, frames[stream], stream).mapInArrow(
            partial(_look, shipped, stream), "note binary"
        )
        for stream in dict.fromkeys(each for group in plan.groups for each in group.streams)
    ]
    rows: Counter[str] = Counter()
    counts: dict[str, KeyCounts] = {}
    try:
        noted = reduce(lambda one, other: one.union(other), seen).toArrow().to_pylist()
    finally:
        shipped.destroy()
    for stream, count, found in (pickle.loads(each["note"]) for each in noted):
        rows[stream] += count
        for name, (looked_at, keys) in found.items():
            counts.setdefault(name, KeyCounts()).add(keys, looked_at)
    times = dict.fromkeys(plan.asked.streams, Reached(None, None))
    return decided(plan.groups, (), times, heats_of(plan, counts, rows), buckets)


def _look(shipped: Any, stream: str, batches: Batches) -> Batches:
    """How many rows of a stream one task has, and the keys of a sample of them."""
    plan, tables, _ = _unpacked(shipped)
    feeds = [feed for feed in plan.of_stream(stream) if feed.clock in plan.labels]
    samples = {feed.name: KeySample(feed.key) for feed in feeds}
    joiners = _joiners(feeds, tables)
    rows = 0
    for given in gathered((pa.Table.from_batches([batch]) for batch in batches), _CHUNK):
        rows += given.num_rows
        typed = _typed(given, plan.asked.streams[stream].schema)
        for feed in feeds:
            joined = joiners[feed.name](typed).batch if feed.name in joiners else typed
            samples[feed.name].see(joined)
    found = {name: (each.rows, each.counts) for name, each in samples.items()}
    note = pickle.dumps((stream, rows, found), protocol=5)
    yield pa.RecordBatch.from_pydict({"note": pa.array([note], pa.binary())})


def _joiners(feeds: Sequence[Feed], tables: Mapping[str, pa.Table]) -> dict[str, Joiner]:
    """What joins rows with tables, by the feed that they are for."""
    return {
        feed.name: Joiner(feed.relation, tables, feed.columns) for feed in feeds if feed.relation
    }


def _typed(given: pa.Table, schema: pa.Schema) -> pa.Table:
    wanted = pa.schema([schema.field(name) for name in given.column_names])
    return given if given.schema.types == wanted.types else given.cast(wanted)


def _merged(plan: RoutedPlan, kept: KeptResults, found: RowsFound) -> None:
    """Show the groups that several buckets have rows of."""
    from pyspark.sql.functions import col  # noqa: PLC0415  imported when it is used

    rows = kept.frame.where(col("query").isNull() & col("data").isNotNull())
    shares: dict[str, list[pa.Table]] = {}
    collected = rows.select("note", "data").toArrow().to_pylist()
    for note, data in sorted((each["note"], each["data"]) for each in collected):
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            shares.setdefault(json.loads(note)["share"], []).append(reader.read_all())
    for final in plan.asked.joined:
        if final.name in plan.spanning:
            table = final.schema.empty_table()
            if final.name in shares:
                answered = merged(final, shares[final.name])
                table = answered.table
                found.errors[final.name] += answered.errors
            found.answers[final.name] = table


def _found(plan: RoutedPlan, kept: KeptResults, notes: list[dict[str, Any]]) -> RowsFound:
    counts: Counter[str] = Counter()
    found = RowsFound({})
    for each in notes:
        if each["query"] is not None:
            counts[each["query"]] += each["rows"]
            continue
        note = json.loads(each["note"])
        if "share" in note:
            continue
        found.rows.update(note["rows"])
        found.bad_rows.update(note["bad_rows"])
        found.errors.update(note["errors"])
    schemas = {each.name: each.schema for each in plan.finals}
    schemas |= {each.name: each.schema for each in plan.asked.joined}
    for name, schema in schemas.items():
        if name not in plan.spanning:
            found.answers[name] = KeptRows(kept, name, schema, counts[name])
    if plan.spanning:
        _merged(plan, kept, found)
    return found


def _columns(plan: RoutedPlan, stream: str) -> list[str]:
    schema = plan.asked.streams[stream].schema
    needed = plan.columns(stream)
    return [name for name in schema.names if name in needed]


def _send(shipped: Any, stream: str, buckets: int, batches: Batches) -> Batches:
    """One task's rows of a stream, in parcels; at last a note for every bucket."""
    plan, tables, splits = _unpacked(shipped)
    source, feeds = plan.asked.streams[stream], plan.of_stream(stream)
    splitters = {
        feed.name: FeedSplitter(feed, buckets, lanes_of(splits, plan.groups, feed.clock, buckets))
        for feed in feeds
    }
    joiners = _joiners(feeds, tables)
    rows = bad_rows = 0
    errors: Counter[str] = Counter()
    latest: int | None = None
    for given in gathered((pa.Table.from_batches([batch]) for batch in batches), _CHUNK):
        found = sort_out(_typed(given, source.schema), source.timeline, None, None)
        rows, bad_rows = rows + given.num_rows, bad_rows + found.bad.num_rows
        if found.latest is not None:
            latest = found.latest if latest is None else max(latest, found.latest)
        packets: dict[int, dict[str, bytes]] = {}
        for feed in feeds:
            splitter, sent = splitters[feed.name], found.rows
            if feed.name in joiners:
                joined = joiners[feed.name](sent)
                sent = joined.batch
                errors.update(dict.fromkeys(feed.queries, joined.errors))
            splitter.take(sent)
            for bucket, data in splitter.packets().items():
                packets.setdefault(bucket, {})[feed.name] = data
        for bucket, each in packets.items():
            yield _parcel([bucket], [pickle.dumps(each, protocol=5)], [None])
    counts: dict[str, Any] = {"stream": stream, "latest": latest}
    counts |= {"rows": rows, "bad_rows": bad_rows, "errors": errors}
    told = [json.dumps(counts if not bucket else counts | _NOTHING)
            for bucket in range(buckets)]  # fmt: skip
    yield _parcel(list(range(buckets)), [None] * buckets, told)


def _unpacked(shipped: Any) -> tuple[RoutedPlan, dict[str, pa.Table], tuple[SplitKey, ...]]:
    found: tuple[RoutedPlan, dict[str, pa.Table], tuple[SplitKey, ...]]
    found = pickle.loads(shipped.value)
    return found


def _parcel(
    buckets: Sequence[int], packets: Sequence[bytes | None], notes: Sequence[str | None]
) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "bucket": pa.array(buckets, pa.int32()),
            "packets": pa.array(packets, pa.binary()),
            "note": pa.array(notes, pa.string()),
        }
    )


def _answer(shipped: Any, batches: Batches) -> Batches:
    """The results of one bucket, and a note of what was counted."""
    plan, *_ = _unpacked(shipped)
    packets: list[dict[str, bytes]] = []
    rows: Counter[str] = Counter()
    bad_rows: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    seen: dict[str, int] = {}
    for batch in batches:
        for each in batch.to_pylist():
            if each["packets"] is not None:
                packets.append(pickle.loads(each["packets"]))
                continue
            note = json.loads(each["note"])
            rows[note["stream"]] += note["rows"]
            bad_rows[note["stream"]] += note["bad_rows"]
            errors.update(note["errors"])
            if note["latest"] is not None:
                for feed in plan.of_stream(note["stream"]):
                    seen[feed.clock] = max(seen.get(feed.clock, note["latest"]), note["latest"])
    engine = RowEngine(plan.plan)
    engine.see(seen)
    given = gathered_feeds(packets)
    plain = {name: table for name, table in given.items() if name in plan.plan.streams}
    joined = {name: table for name, table in given.items() if name not in plain}
    share = JoinShare()
    share.adopt(plan.sides, plan.asked.joined, plan.spanning, Times())
    shared = share.close(engine.close(plain, joined))
    for name, each in shared.shares.items():
        yield _result(None, 0, _packed(each), json.dumps({"share": name}))
    for name, table in shared.tables.items():
        for begin in range(0, table.num_rows, _CHUNK):
            part = table.slice(begin, _CHUNK)
            yield _result(name, part.num_rows, _packed(part), None)
    failed = errors + by_owner(engine.errors) + share.errors
    counted = {"rows": rows, "bad_rows": bad_rows, "errors": failed}
    yield _result(None, 0, None, json.dumps(counted))


def _result(query: str | None, rows: int, data: bytes | None, note: str | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "query": pa.array([query], pa.string()),
            "rows": pa.array([rows], pa.int64()),
            "data": pa.array([data], pa.binary()),
            "note": pa.array([note], pa.string()),
        }
    )


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _opened(batches: Batches) -> Batches:
    """The rows in some results."""
    for batch in batches:
        for data in batch.column(0).to_pylist():
            with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
                yield from reader
