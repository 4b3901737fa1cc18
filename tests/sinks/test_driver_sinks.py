"""Sinks that live on the driver."""

from __future__ import annotations

import io
import pickle
import random

import pyarrow as pa
import pytest

from muntin import sinks
from muntin.errors import UnknownQueryError
from muntin.sinks import DriverSink, SinkError


def deliver(sink: DriverSink, batch: int, *tasks: dict[str, pa.Table]) -> None:
    """Write as tasks do, through pickles, and commit."""
    writer = pickle.loads(pickle.dumps(sink.writer()))
    written = [writer.write(batch, task, results) for task, results in enumerate(tasks)]
    sink.commit(batch, [entry for part in pickle.loads(pickle.dumps(written)) for entry in part])


def numbers(*values: int) -> pa.Table:
    return pa.table({"v": pa.array(values, pa.int64())})


def test_memory_keeps_each_row_once() -> None:
    sink = sinks.memory()
    deliver(sink, 0, {"A": numbers(1)}, {"A": numbers(2), "b": numbers(9)})
    deliver(sink, 1, {"A": numbers(3), "b": numbers()})
    deliver(sink, 1, {"A": numbers(3), "b": numbers()})
    assert sink.table("a")["v"].to_pylist() == [1, 2, 3]
    assert sink["B"]["v"].to_pylist() == [9]
    assert sink.queries() == ["A", "b"]


def test_memory_forgets_what_the_checkpoint_does_not_know() -> None:
    sink = sinks.memory()
    for batch in range(4):
        deliver(sink, batch, {"a": numbers(batch)})
    sink.recover(1)
    assert sink.table("a")["v"].to_pylist() == [0, 1]


@pytest.mark.parametrize("seed", range(20))
def test_bounded_memory_is_the_end_of_an_unbounded_one(seed: int) -> None:
    rng = random.Random(seed)
    limit = rng.randrange(1, 12)
    bounded, whole = sinks.memory(max_rows=limit), sinks.memory()
    for batch in range(10):
        results = {"a": numbers(*(batch * 100 + i for i in range(rng.randrange(6))))}
        deliver(bounded, batch, results)
        deliver(whole, batch, results)
    assert bounded["a"]["v"].to_pylist() == whole["a"]["v"].to_pylist()[-limit:]


def test_memory_knows_declared_queries_and_names_the_nearest() -> None:
    sink = sinks.memory()
    sink.declare({"spikes": numbers().schema})
    assert sink.table("spikes") == numbers()
    with pytest.raises(UnknownQueryError, match="did you mean spikes"):
        sink.table("spike")


def test_memory_of_a_query_that_was_replaced() -> None:
    sink = sinks.memory()
    deliver(sink, 0, {"a": numbers(1)})
    deliver(sink, 1, {"a": pa.table({"v": ["x"]})})
    with pytest.raises(SinkError, match="column v is int64 in one and string in another"):
        sink.table("a")
    assert sink.table("a", version=1)["v"].to_pylist() == ["x"]
    with pytest.raises(SinkError, match="have 2 versions, there is no 2"):
        sink.table("a", version=2)


def test_a_callback_gets_every_batch_and_may_fail() -> None:
    seen: list[tuple[int, str, list[int]]] = []
    sink = sinks.callback(
        lambda batch, query, table: seen.append((batch, query, table["v"].to_pylist()))
    )
    deliver(sink, 0, {"b": numbers(1)}, {"a": numbers(2), "b": numbers(3)})
    deliver(sink, 0, {"b": numbers(1)}, {"a": numbers(2), "b": numbers(3)})
    assert seen == [(0, "a", [2]), (0, "b", [1, 3])] * 2
    failing = sinks.callback(lambda batch, query, table: 1 // 0)
    with pytest.raises(SinkError, match="the callback failed on batch 3 of query a") as caught:
        deliver(failing, 3, {"a": numbers(1)})
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_the_console_shows_rows_as_they_are() -> None:
    text = io.StringIO()
    sink = sinks.console(rows=2, file=text)
    far = pa.array([-1, 2**62, None], pa.timestamp("us", "UTC"))
    table = pa.table({"window_end": far, "name": ["[red]x[/red]", None, "z"], "v": [1.5, 2.5, 3.5]})
    deliver(sink, 7, {"spikes": table})
    shown = text.getvalue()
    for part in ("batch 7 · spikes: 3 rows", "[red]x[/red]", "NULL", "1.5", "and 1 more"):
        assert part in shown
    assert "3.5" not in shown


@pytest.mark.parametrize(
    "make",
    [
        lambda: sinks.memory(max_rows=0),
        lambda: sinks.console(rows=0),
        lambda: sinks.callback(3),
        lambda: sinks.parquet("s3://bucket/out"),
        lambda: sinks.parquet("out", compact_every=0),
    ],
)
def test_mistakes_are_refused_when_a_sink_is_made(make: object) -> None:
    with pytest.raises(SinkError) as caught:
        make()  # type: ignore[operator]
    assert caught.value.hint
