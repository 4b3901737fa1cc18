"""A technique that a user has registered, on Spark: it travels with the plans that use it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import muntin
from muntin import sinks
from muntin.aggregators import register, registry
from muntin.api import run
from muntin.errors import AggregateError
from muntin.spark.streaming.problems import RunError
from muntin.testing import assert_same_rows, trades
from spark.folder_stream import FolderStream, expected, parts

# Panes, from the newest partial to the oldest.
MODULE = """
from typing import Any, NamedTuple

from muntin.aggregators.card import Card
from muntin.aggregators.contract import OPERATIONS
from muntin.aggregators.operators import combine, load
from muntin.aggregators.rings import append, drop_oldest, end_of, new_head, wrapped


class Newest(NamedTuple):
    partials: Any
    head: Any

    @staticmethod
    def create(op, capacity, columns, full):
        return Newest(op.empty(capacity), new_head(capacity if full else 0))

    @staticmethod
    def insert(op, state, partial):
        append(op, state.partials, state.head, partial)

    @staticmethod
    def evict(op, state):
        drop_oldest(state.head, len(state.partials))

    @staticmethod
    def query(op, state, size):
        capacity = len(state.partials)
        at = end_of(state.head, capacity) - 1 + capacity
        answer = load(op, state.partials, wrapped(at, capacity))
        for before in range(1, size):
            answer = combine(op, load(op, state.partials, wrapped(at - before, capacity)), answer)
        state.head[OPERATIONS] += size - 1
        return answer


def counted(ranges):
    return float(sum(size - 1 for size in ranges))


CARD = Card(
    name="newest_first",
    needs="any",
    amortised="n - 1",
    worst="n - 1",
    multi="n (n - 1) / 2",
    space="n",
    several_ranges=True,
    counted=counted,
    paper="none",
)
"""
QUERIES = """
CREATE QUERY highs WITH (technique = 'newest_first') AS
  SELECT symbol, max(price) AS high, sum(vol) AS vol
  FROM trades [RANGE '10 minutes' SLIDE '2 minutes'] GROUP BY symbol;
CREATE QUERY n AS SELECT count(*) AS n FROM trades [RANGE '5 minutes' SLIDE '5 minutes'];
"""


@pytest.fixture
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, type[Any]]]:
    """The technique, known here, and the module that workers have to be given."""
    path = tmp_path / "newest_technique.py"
    path.write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("newest_technique")
    register(module.CARD, module.Newest)
    yield path, module.Newest
    del registry._BY_NAME["newest_first"]
    sys.modules.pop("newest_technique")


def test_workers_learn_it_with_the_plan(
    spark: Any, tmp_path: Path, registered: tuple[Path, type[Any]]
) -> None:
    spark.sparkContext.addPyFile(str(registered[0]))
    batches = parts(trades(2000, seed=8, seconds=3000), 3)
    stream = FolderStream(tmp_path / "in")
    for batch in batches:
        stream.put(batch)
    frame = spark.read.schema(stream.schema).parquet(str(stream.folder))
    found = muntin.aggregate(frame, QUERIES, time="ts")
    whole = expected(batches, [QUERIES] * 3, close=True)
    assert "newest_first over its own slices" in found.plan.explain()
    for name in whole:
        assert_same_rows(found.table(name), whole[name])
    options = {"checkpoint": tmp_path / "ck", "trigger": "available_now", "partitions": 1}
    options["sink"] = sinks.parquet(tmp_path / "out")
    with run(stream.frame(spark), QUERIES, buckets=2, **options) as started:
        assert started.await_termination(120)
        assert "newest_first over its own slices" in started.plan().explain()
    # A program that has not registered it finds it in the checkpoint.
    known = registry._BY_NAME.pop("newest_first")
    try:
        with run(stream.frame(spark), QUERIES, **options) as started:
            assert started.await_termination(120)
            started.stop(flush=True)
        assert registry.info("newest_first").counted([3, 4]) == 5
    finally:
        registry._BY_NAME["newest_first"] = known
    output = sinks.read(tmp_path / "out")
    for name, table in whole.items():
        assert_same_rows(output[name], table)


def test_a_stream_refuses_what_lives_in_the_program(
    spark: Any,
    tmp_path: Path,
    registered: tuple[Path, type[Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registered[1], "__module__", "__main__")
    frame = FolderStream(tmp_path / "in").frame(spark)
    with pytest.raises(
        RunError, match="the technique newest_first is defined in this very program"
    ):
        run(frame, QUERIES, sink=sinks.memory(), checkpoint=tmp_path / "ck")
    with pytest.raises(AggregateError, match="there is a technique newest_first already"):
        register(registry.info("newest_first"), registered[1])
