"""Bytewax: `fold_window` with a sliding windower a query; every row is a Python object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BATCH = 1000
Row = dict[str, Any]
Folded = list[float]


class Adapter:
    """One worker: more share one interpreter, and one core."""

    def __init__(self, mode: str) -> None:
        self._dataflow = import_module("bytewax.dataflow")
        self._op = import_module("bytewax.operators")
        self._windowing = import_module("bytewax.operators.windowing")
        self._testing = import_module("bytewax.testing")

    def prepare(self, job: dict[str, Any]) -> str:
        """Take the path and the queries."""
        functions = {each["function"] for query in job["queries"] for each in query["aggregates"]}
        if functions - {"count", "sum"} or any(
            each["where"] for query in job["queries"] for each in query["aggregates"]
        ):
            raise NotImplementedError("counts and sums of all rows only")
        self._job = job
        return "fold_window a query, one worker"

    def run(self) -> list[list[Any]]:
        """Answer all queries in one dataflow."""
        rows = pq.read_table(self._job["data"], columns=self._job["columns"]).to_pylist()
        flow = self._dataflow.Dataflow("peers")
        source = self._testing.TestingSource(rows, batch_size=_BATCH)
        stream = self._op.input("rows", flow, source)
        found: list[list[Any]] = []
        for query in self._job["queries"]:
            found.append([])
            self._add(stream, query, found[-1])
        self._testing.run_main(flow)
        return found

    def _add(self, stream: Any, query: dict[str, Any], found: list[Any]) -> None:
        op, name = self._op, query["name"]
        if query["where"]:
            stream = op.filter(f"{name}-where", stream, _condition(query["where"]))
        keyed = op.key_on(f"{name}-key", stream, _key(query["groups"]))
        clock = self._windowing.EventClock(
            # Bytewax takes no other UTC than Python's own.
            ts_getter=lambda row: row["ts"].replace(tzinfo=UTC),
            # The watermark goes on with the wall clock: rows of one time must not become late.
            wait_for_system_duration=timedelta(minutes=10),
        )
        windower = self._windowing.SlidingWindower(
            length=timedelta(microseconds=query["range"]),
            offset=timedelta(microseconds=query["slide"]),
            align_to=_EPOCH,
        )
        build, fold, merge = _folding(query["aggregates"])
        windowed = self._windowing.fold_window(
            f"{name}-fold", keyed, clock, windower, build, fold, merge
        )
        op.output(f"{name}-out", windowed.down, self._testing.TestingSink(found))

    def tables(self, found: list[list[Any]]) -> Iterator[tuple[str, pa.Table]]:
        """The answers by name; a window's number counts slides since the epoch."""
        for query, items in zip(self._job["queries"], found, strict=True):
            columns: dict[str, Any] = {
                "window_start": [number * query["slide"] for _, (number, _) in items]
            }
            for group in query["groups"]:
                columns[group] = [int(key) for key, _ in items]
            for place, each in enumerate(query["aggregates"]):
                kind = int if each["function"] == "count" else float
                columns[each["name"]] = [kind(values[place]) for _, (_, values) in items]
            yield query["name"], pa.table(columns)


def _key(groups: list[str]) -> Callable[[Row], str]:
    return (lambda row: str(row[groups[0]])) if groups else (lambda _: "")


def _condition(where: str) -> Callable[[Row], bool]:
    text = compile(where.replace("AND", "and").replace("NOT", "not"), "where", "eval")
    return lambda row: bool(eval(text, {}, row))


def _folding(
    aggregates: list[dict[str, Any]],
) -> tuple[
    Callable[[], Folded], Callable[[Folded, Row], Folded], Callable[[Folded, Folded], Folded]
]:
    columns = [None if each["function"] == "count" else each["column"] for each in aggregates]

    def fold(folded: Folded, row: Row) -> Folded:
        for place, column in enumerate(columns):
            folded[place] += 1 if column is None else row[column]
        return folded

    def merge(one: Folded, other: Folded) -> Folded:
        return [a + b for a, b in zip(one, other, strict=True)]

    return (lambda: [0] * len(columns)), fold, merge
