"""Partials on their way: as bytes, and split by the buckets that groups belong to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Bytes, Ints, Offsets, Words
from muntin.aggregates.columns.by_part import empty, from_arrow
from muntin.aggregates.columns.holistic.shares import spread_values
from muntin.engine.rows.dictionary import canonical
from muntin.engine.slices.partials import PartialBatch, nothing, signature_bytes
from muntin.errors import DataError
from muntin.plan.nodes import Partials, SharedPlan
from muntin.plan.selection import Signatures

Codec = Literal["lz4", "zstd"]
_SCHEMA = pa.schema({"name": pa.string(), "data": pa.large_binary()})


def split(
    plan: SharedPlan, partials: Sequence[PartialBatch], buckets: int
) -> dict[int, list[PartialBatch]]:
    """Partials by bucket, only those buckets that have some.

    Entries of a group go where the hash of its keys says. Partials without groups have no keys
    to spread by: all of one set go to one bucket, but for values that are spread by themselves.
    """
    found: dict[int, list[PartialBatch]] = {}
    for place, (node, batch) in enumerate(zip(plan.partials, partials, strict=True)):
        for bucket, some in _by_bucket(node, batch, buckets):
            if bucket not in found:
                found[bucket] = [nothing(each) for each in plan.partials]
            found[bucket][place] = some
    return found


def _by_bucket(
    node: Partials, batch: PartialBatch, buckets: int
) -> Iterator[tuple[int, PartialBatch]]:
    if not batch.starts.size:
        return
    if not node.grouping:
        yield from _spread(node, batch, buckets)
        return
    owners = buckets_of(batch.keys, batch.starts.size, buckets)
    order = np.argsort(owners, kind="stable")
    bounds = np.searchsorted(owners[order], np.arange(buckets + 1))
    for bucket in range(buckets):
        rows = order[bounds[bucket] : bounds[bucket + 1]]
        if rows.size:
            yield bucket, batch.take(rows)


def _spread(
    node: Partials, batch: PartialBatch, buckets: int
) -> Iterator[tuple[int, PartialBatch]]:
    """Values that are spread by their hash, and at home the entries with all else they have.

    Elsewhere there are entries for the values that are there, and nothing else in them.
    """
    home, size = node.home_in(buckets), batch.starts.size
    shares = {
        place: spread_values(column, buckets)
        for place, column in enumerate(batch.columns)
        if node.accumulators[place].is_spread
    }
    for bucket in range(buckets) if shares else (home,):
        here = {place: columns[bucket] for place, columns in shares.items()}
        if bucket == home:
            columns = [here.get(place, column) for place, column in enumerate(batch.columns)]
            yield bucket, replace(batch, columns=tuple(columns))
            continue
        held = np.zeros(size, np.bool_)
        for column in here.values():
            held |= column.rows.sizes > 0
        rows = np.flatnonzero(held)
        if rows.size:
            columns = [
                here[place].take(rows) if place in here else empty(each.part, rows.size)
                for place, each in enumerate(node.accumulators)
            ]
            bare = replace(batch, columns=())
            yield bucket, replace(bare.take(rows), columns=tuple(columns))


def to_bytes(partials: Sequence[PartialBatch], codec: Codec | None = None) -> bytes:
    """Partials of all sets of a plan as bytes; sets without entries take no room.

    With ``codec`` they are compressed.
    """
    items = [
        (f"{place}{name}", blob)
        for place, batch in enumerate(partials)
        if batch.starts.size
        for name, blob in batch_items(batch, codec)
    ]
    names = pa.array([name for name, _ in items], pa.string())
    blobs = pa.array([blob for _, blob in items], pa.large_binary())
    return to_ipc(pa.RecordBatch.from_arrays([names, blobs], schema=_SCHEMA))


def from_bytes(plan: SharedPlan, data: bytes | memoryview) -> list[PartialBatch]:
    """The partials of a plan that `to_bytes` wrote."""
    try:
        items = from_ipc(data)
    except pa.ArrowInvalid as error:
        raise DataError("these bytes are not partials", hint="give what to_bytes made") from error
    blobs = dict(zip(items["name"].to_pylist(), items["data"].to_pylist(), strict=True))
    return [
        read_batch(node, blobs, str(place)) if str(place) in blobs else nothing(node)
        for place, node in enumerate(plan.partials)
    ]


def batch_items(batch: PartialBatch, codec: Codec | None = None) -> Iterator[tuple[str, bytes]]:
    """A batch as named bytes: its entries, its signatures, and each of its columns."""
    keys = [pa.array(batch.starts), *batch.keys]
    if batch.codes is not None:
        keys.append(pa.array(batch.codes))
    yield "", to_ipc(pa.RecordBatch.from_arrays(keys, [str(k) for k in range(len(keys))]), codec)
    if batch.signatures is not None:
        yield "/signatures", batch.signatures.tobytes()
    for number, column in enumerate(batch.columns):
        yield f"/{number}", to_ipc(column.to_arrow(), codec)


def read_batch(
    node: Partials, blobs: Mapping[str, bytes | memoryview], prefix: str
) -> PartialBatch:
    """The batch that `batch_items` wrote under a prefix."""
    slices = from_ipc(blobs[prefix])
    columns = tuple(
        from_arrow(accumulator.part, from_ipc(blobs[f"{prefix}/{number}"]))
        for number, accumulator in enumerate(node.accumulators)
    )
    count = len(node.grouping)
    starts = np.array(slices[0].to_numpy(), np.int64)
    codes = np.array(slices[count + 1].to_numpy()) if node.selection.coded else None
    signatures = None
    if isinstance(node.selection, Signatures):
        flat = np.frombuffer(blobs[f"{prefix}/signatures"], np.uint8)
        signatures = flat.reshape(-1, signature_bytes(node.selection))
    return PartialBatch(starts, tuple(slices.columns[1 : count + 1]), codes, columns, signatures)


def to_ipc(batch: pa.RecordBatch, codec: Codec | None = None) -> bytes:
    """A record batch as bytes."""
    sink = pa.BufferOutputStream()
    # Threads are left to those who call: Spark's workers have a core each.
    options = pa.ipc.IpcWriteOptions(compression=codec, use_threads=False)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    result: bytes = sink.getvalue().to_pybytes()
    return result


def from_ipc(data: bytes | memoryview) -> pa.RecordBatch:
    """The record batch that `to_ipc` wrote."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()


_NULL = np.uint64(0x6D756E74696E)


def buckets_of(keys: Sequence[pa.Array], rows: int, buckets: int) -> Ints:
    """The bucket of every row's group, from 0 on; NULL, NaN and -0.0 group as in SQL.

    >>> buckets_of([pa.array(["a", "b", "a", None])], 4, 1000).tolist()
    [583, 980, 583, 461]
    """
    hashes = np.zeros(rows, np.uint64)
    for key in keys:
        # What is hashed are the few different values.
        encoded = canonical(key).dictionary_encode(null_encoding="encode")
        words = _words(encoded.dictionary)
        mix(hashes, words[encoded.indices.to_numpy()])
    return (hashes % np.uint64(buckets)).astype(np.int64)


def _words(values: pa.Array) -> Words:
    """A word for each value, whatever its type."""
    missing = values.is_null().to_numpy(zero_copy_only=False)
    kind = values.type
    if pa.types.is_null(kind):
        return np.full(len(values), _NULL)
    if pa.types.is_boolean(kind):
        words = values.fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint64)
    elif pa.types.is_floating(kind):
        doubles = values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        words = np.ascontiguousarray(doubles).view(np.uint64)
    elif pa.types.is_decimal(kind) or _is_text(kind):
        words = _hashed(values)
    else:
        words = _integers(values)
    return np.where(missing, _NULL, words)


def _is_text(kind: pa.DataType) -> bool:
    text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary)
    return any(check(kind) for check in (*text, pa.types.is_large_binary))


def _integers(values: pa.Array) -> Words:
    """Whole numbers, dates and times by the number that stands for them."""
    if not pa.types.is_integer(values.type):
        width = values.type.bit_width
        values = values.view(pa.int64() if width == 64 else pa.int32())
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    words: Words = numbers.astype(np.int64, copy=False).view(np.uint64)
    return words


def _hashed(values: pa.Array) -> Words:
    """Strings and bytes; decimals as they are written."""
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.string())
    large = values.cast(pa.large_binary()) if len(values) else pa.array([], pa.large_binary())
    _, offsets, data = large.buffers()
    ends = np.frombuffer(offsets, np.int64)[large.offset : large.offset + len(large) + 1]
    raw = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    hashed: Words = hash_bytes(ends, raw)
    return hashed


_OFFSET = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_27, _30, _31 = np.uint64(27), np.uint64(30), np.uint64(31)


@compiled
def mix(hashes: Words, words: Words) -> None:
    """Fold a word into every hash, in place, by the finaliser of SplitMix64."""
    for i in range(hashes.size):
        x = (hashes[i] ^ words[i]) + _STEP
        x = (x ^ (x >> _30)) * _FIRST
        x = (x ^ (x >> _27)) * _SECOND
        hashes[i] = x ^ (x >> _31)


@compiled
def hash_bytes(offsets: Offsets, data: Bytes) -> Words:
    """The 64-bit FNV-1a hash of every byte string."""
    hashes = np.empty(offsets.size - 1, np.uint64)
    for i in range(hashes.size):
        x = _OFFSET
        for at in range(offsets[i], offsets[i + 1]):
            x = (x ^ np.uint64(data[at])) * _PRIME
        hashes[i] = x
    return hashes
