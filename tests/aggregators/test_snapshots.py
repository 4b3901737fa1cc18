"""Snapshots through Arrow: Python partials, kernels' integers, and positions."""

import numpy as np
import pyarrow as pa
import pytest

from muntin.aggregates import resolve
from muntin.aggregators import create, info, names
from muntin.errors import DataError

TAKEN = {"selective": "max", "distinct": "sum_distinct"}
VALUES = np.random.default_rng(6).normal(size=60)


def stored(aggregator):
    """A snapshot that went through a file."""
    batch = aggregator.snapshot()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return pa.ipc.open_stream(sink.getvalue()).read_next_batch()


@pytest.mark.parametrize("name", names())
def test_a_run_goes_on_from_any_snapshot(name):
    aggregate = resolve(TAKEN.get(info(name).needs, "sum"), [pa.float64()])
    ranges = [9, 4] if info(name).several_ranges else [9]
    aggregator = create(name, aggregate, ranges)
    for start in range(0, 50, 7):
        other = create(name, aggregate, ranges)
        other.run(VALUES[:3] * 1e-200)
        other.restore(stored(aggregator))
        batch = VALUES[start : start + 7]
        answers = aggregator.run(batch)
        assert other.run(batch).tolist() == answers.tolist()
        assert (other.operations, other.steps) == (aggregator.operations, aggregator.steps)


@pytest.mark.parametrize("name", names())
def test_positions_are_part_of_a_snapshot(name):
    aggregate = resolve(TAKEN.get(info(name).needs, "sum"), [pa.int64()])
    aggregator, other = create(name, aggregate), create(name, aggregate)
    for i in range(60):
        aggregator.insert_partial(aggregate.algebra.lift(i % 7), 3 * i)
        aggregator.evict(before=3 * i - 30)
        other.restore(stored(aggregator))
        assert other.query(since=3 * i - 30) == aggregator.query(since=3 * i - 30)
        assert other.evict(before=3 * i - 20) == min(i, 10) - min(i, 6)


def test_a_snapshot_fits_only_what_was_built_alike():
    total = resolve("sum", [pa.int64()])
    snapshot = create("panes", total, [3]).snapshot()
    for other in (
        create("flatfat", total, [3]),
        create("panes", total, [4]),
        create("panes", resolve("avg", [pa.int64()]), [3]),
        create("panes", resolve("sum", [pa.float64()]), [3]),
    ):
        with pytest.raises(DataError, match="created with the same arguments"):
            other.restore(snapshot)


def test_a_snapshot_is_restored_whole_or_not_at_all():
    total = resolve("sum", [pa.float64()])
    made = create("slickdeque_inv", total, [3])
    snapshot = made.snapshot()
    cut = snapshot.select(snapshot.schema.names[1:])
    broken = {
        "not whole": (snapshot.slice(0, 0), cut, pa.concat_batches([snapshot, snapshot])),
        "one record batch": (None, pa.Table.from_batches([snapshot])),
        "snapshot": (snapshot.replace_schema_metadata(None),),
    }
    for message, batches in broken.items():
        for batch in batches:
            with pytest.raises(DataError, match=message):
                made.restore(batch)


def test_user_partials_are_pickled_and_numbers_are_not():
    total = create("panes", resolve("sum", [pa.int64()]), [3])
    total.insert(total.aggregate.lift(1))
    assert total.snapshot().schema.field("partials").type == pa.list_(pa.binary())
    total = create("panes", resolve("sum", [pa.int64()]), [3])
    total.run(np.arange(5))
    assert total.snapshot().schema.field("partials").type == pa.list_(pa.int64())
