"""Rows of a stream on their way to buckets: those that somebody needs, in packets of Arrow."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin._typing import Bools, Ints
from muntin.expressions import Evaluator
from muntin.operators.rows import take
from muntin.operators.select import truths
from muntin.operators.splits import Lanes
from muntin.operators.state.keys import hash_columns, is_comparable
from muntin.plan.routes import Feed

_WHOLE = Lanes()
# What a packet says of narrow columns: the schema of its rows, and the least value of each.
_SCHEMA, _LEAST = b"muntin.schema", b"muntin.least"


class FeedSplitter:
    """Splits the rows of one feed by bucket.

    Equal keys go to one bucket: NULLs are equal here, as are NaNs and both zeros.

    Args:
        feed: The feed.
        buckets: How many buckets there are.
        lanes: The keys that are split over several buckets.
    """

    def __init__(self, feed: Feed, buckets: int, lanes: Lanes = _WHOLE) -> None:
        self._feed, self._buckets, self._lanes = feed, buckets, lanes
        self._width = min(lanes.count, buckets)
        self._key = Evaluator(feed.key)
        self._where = Evaluator(feed.where)
        self._tables: list[pa.Table] = []
        self._numbers: list[Ints] = []
        self._copied: list[Bools] = []

    def take(self, rows: pa.Table) -> None:
        """Take in some rows of the stream."""
        wanted = self._wanted(rows)
        sent = rows.select(list(self._feed.columns))
        if not wanted.all():
            sent, rows = sent.filter(pa.array(wanted)), rows.filter(pa.array(wanted))
        keys = tuple(each.values for each in self._key(rows)) if self._feed.key else ()
        hashes, _ = hash_columns(keys, sent.num_rows)
        numbers = _modulo(hashes, self._buckets)
        if self._lanes.spread:
            spread = np.isin(hashes, np.array(self._lanes.spread))
            numbers[spread] += self._lane(sent.filter(pa.array(spread)))
            numbers %= self._buckets
        if self._lanes.copied:
            self._copied.append(np.isin(hashes, np.array(self._lanes.copied)))
        self._tables.append(sent)
        self._numbers.append(numbers)

    def _lane(self, rows: pa.Table) -> Ints:
        """The lane of each row of a split key: by all its values, so that attempts agree."""
        columns = [_single(each) for each in rows.columns if is_comparable(each.type)]
        hashes, _ = hash_columns(tuple(columns), rows.num_rows)
        return _modulo(hashes, self._width)

    def _wanted(self, rows: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """The rows that some leaf takes, or fails to judge: whoever takes them counts failures."""
        if not self._feed.where:
            return np.ones(rows.num_rows, np.bool_)
        wanted = np.zeros(rows.num_rows, np.bool_)
        for found in self._where(rows):
            wanted |= truths(found.values)
            if found.errors is not None:
                wanted |= truths(found.errors)
        return wanted

    def packets(self) -> dict[int, bytes]:
        """All rows taken in, by bucket, and none after that."""
        if not self._tables:
            return {}
        table = pa.concat_tables(self._tables).combine_chunks()
        numbers, places = self._placed()
        self._tables, self._numbers, self._copied = [], [], []
        if not numbers.size:
            return {}
        # Few distinct numbers: of 16 bits, they are sorted by counting.
        small = numbers.astype(np.uint16) if self._buckets <= 1 << 16 else numbers
        order = np.argsort(small, kind="stable")
        arrays = tuple(_single(column) for column in table.columns)
        chosen = order if places is None else places[order]
        batch = pa.RecordBatch.from_arrays(list(take(arrays, chosen)), schema=table.schema)
        held, firsts = np.unique(numbers[order], return_index=True)
        ends = [*firsts.tolist()[1:], order.size]
        return {
            bucket: packed(batch.slice(begin, end - begin))
            for bucket, begin, end in zip(held.tolist(), firsts.tolist(), ends, strict=True)
        }

    def _placed(self) -> tuple[Ints, Ints | None]:
        """The bucket of each row that is sent, and its place; None where each is sent once."""
        numbers = np.concatenate(self._numbers)
        if not self._copied or self._width < 2:
            return numbers, None
        copied = np.flatnonzero(np.concatenate(self._copied))
        others = [(numbers[copied] + lane) % self._buckets for lane in range(1, self._width)]
        places = np.concatenate((np.arange(numbers.size), np.tile(copied, self._width - 1)))
        return np.concatenate((numbers, *others)), places


def _modulo(hashes: Ints, count: int) -> Ints:
    return (hashes.view(np.uint64) % np.uint64(count)).astype(np.int64)


def unpacked(packets: Sequence[bytes]) -> pa.Table:
    """The rows of some packets of one feed, one after the other."""
    tables = []
    for data in packets:
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            tables.append(_widened(reader.read_all()))
    return pa.concat_tables(tables)


def gathered_feeds(parcels: Sequence[Mapping[str, bytes]]) -> dict[str, pa.Table]:
    """The rows of each feed in some parcels, which hold packets by the name of the feed."""
    packets: dict[str, list[bytes]] = {}
    for parcel in parcels:
        for name, data in parcel.items():
            packets.setdefault(name, []).append(data)
    return {name: unpacked(held) for name, held in packets.items()}


def packed(batch: pa.RecordBatch) -> bytes:
    """The rows as bytes; whole numbers and times near each other take no more than they need."""
    narrow = [_narrowed(column) for column in batch.columns]
    least = [each for _, each in narrow]
    if any(each is not None for each in least):
        told = {_SCHEMA: batch.schema.serialize().to_pybytes(), _LEAST: json.dumps(least).encode()}
        columns = [column for column, _ in narrow]
        batch = pa.RecordBatch.from_arrays(columns, batch.schema.names, metadata=told)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _narrowed(column: pa.Array) -> tuple[pa.Array, int | None]:
    """A column as distances from its least value, with that; or as it is, where they are far."""
    if not (pa.types.is_int64(column.type) or pa.types.is_timestamp(column.type)):
        return column, None
    numbers = column.view(pa.int64())
    bounds = pc.min_max(numbers)
    least, most = bounds["min"].as_py(), bounds["max"].as_py()
    if least is None or most - least >= 1 << 32:
        return column, None
    width = pa.uint16() if most - least < 1 << 16 else pa.uint32()
    return pc.subtract(numbers, least).cast(width, safe=False), least


def _widened(packet: pa.Table) -> pa.Table:
    """The rows of a packet as they were."""
    told = packet.schema.metadata or {}
    if _LEAST not in told:
        return packet
    schema = pa.ipc.read_schema(pa.py_buffer(told[_SCHEMA]))
    columns = [
        column if least is None else pc.add(column.cast(pa.int64()), least).cast(field.type)
        for field, column, least in zip(
            schema, packet.columns, json.loads(told[_LEAST]), strict=True
        )
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _single(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
