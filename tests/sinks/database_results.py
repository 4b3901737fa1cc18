"""Results of made-up queries for sinks that keep one table each."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import pyarrow as pa

from muntin.sinks import DriverSink, with_key

KEY = ("window_start", "window_end", "symbol")


def answers(start: int, symbols: Sequence[str | None], values: Sequence[float | None]) -> pa.Table:
    """One window of a query by symbol."""
    times = pa.timestamp("us", "UTC")
    return pa.table(
        {
            "window_start": pa.array([start * 1_000_000] * len(symbols), times),
            "window_end": pa.array([(start + 60) * 1_000_000] * len(symbols), times),
            "symbol": pa.array(symbols, pa.string()),
            "value": pa.array(values, pa.float64()),
        }
    )


def declare(sink: DriverSink, **tables: pa.Table) -> None:
    sink.declare({name: with_key(table.schema, KEY) for name, table in tables.items()})


def deliver(sink: DriverSink, batch: int, **tables: pa.Table) -> None:
    """Write as two tasks do, through pickles, and commit."""
    writer = pickle.loads(pickle.dumps(sink.writer()))
    halves = [{}, {}]
    for name, table in tables.items():
        middle = table.num_rows // 2
        halves[0][name], halves[1][name] = table.slice(0, middle), table.slice(middle)
    entries = [
        entry for task, half in enumerate(halves) for entry in writer.write(batch, task, half)
    ]
    sink.commit(batch, pickle.loads(pickle.dumps(entries)))
