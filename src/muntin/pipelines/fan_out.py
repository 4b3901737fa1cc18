"""A sink of several sinks, each of which takes the results of some queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from muntin.sinks import DriverSink, RowsEntry, Sink, Writer
from muntin.sinks.sink import RowsWriter

Watcher = Callable[[int, str, pa.Table], object]


@dataclass(frozen=True)
class Takes:
    """Which queries a sink takes: those named, or all but those named.

    >>> Takes.all().is_taken("spikes"), Takes.only(["A"]).is_taken("a")
    (True, True)
    """

    names: frozenset[str]
    others: bool

    @classmethod
    def all(cls) -> Takes:
        """Every query, also those that join later."""
        return cls(frozenset(), others=True)

    @classmethod
    def only(cls, names: Iterable[str]) -> Takes:
        """The queries of these names."""
        return cls(frozenset(name.lower() for name in names), others=False)

    @classmethod
    def all_but(cls, names: Iterable[str]) -> Takes:
        """Every query but those of these names."""
        return cls(frozenset(name.lower() for name in names), others=True)

    def is_taken(self, query: str) -> bool:
        """Whether a query's results go here."""
        return (query.lower() in self.names) != self.others


@dataclass(frozen=True)
class Tagged:
    """What one of the sinks wrote in a task, with its place among them."""

    place: int
    entry: Any


class FanOutWriter(Writer[Tagged]):
    """Hands each result to the writers of all sinks that take it."""

    def __init__(self, parts: Sequence[tuple[Takes, Writer[Any]]]) -> None:
        self._parts = tuple(parts)

    def write(
        self, batch_id: int, attempt_id: int | str, results: Mapping[str, pa.Table]
    ) -> list[Tagged]:
        """Write to each."""
        written: list[Tagged] = []
        for place, (takes, writer) in enumerate(self._parts):
            taken = {name: table for name, table in results.items() if takes.is_taken(name)}
            if taken:
                entries = writer.write(batch_id, attempt_id, taken)
                written += [Tagged(place, entry) for entry in entries]
        return written


class FanOutSink(Sink[Tagged]):
    """Several sinks at once; each keeps what it promises on its own.

    A crash between the commits of two sinks repeats the batch for both, and a commit is safe to
    repeat.

    >>> from muntin.sinks import memory
    >>> some, rest = memory(), memory()
    >>> sink = FanOutSink([(Takes.only(["a"]), some), (Takes.all_but(["a"]), rest)])
    >>> tables = {"a": pa.table({"n": [1]}), "b": pa.table({"n": [2]})}
    >>> sink.commit(0, sink.writer().write(0, 0, tables))
    >>> some.queries(), rest.queries()
    (['a'], ['b'])
    """

    def __init__(self, parts: Sequence[tuple[Takes, Sink[Any]]]) -> None:
        self.parts = tuple(parts)

    def writer(self) -> FanOutWriter:
        """The writers of all sinks."""
        return FanOutWriter([(takes, sink.writer()) for takes, sink in self.parts])

    def places(self, entries: Sequence[Tagged]) -> set[str]:
        """Those of each sink that has entries."""
        found: set[str] = set()
        for place, (_, sink) in enumerate(self.parts):
            found |= sink.places([each.entry for each in entries if each.place == place])
        return found

    def positions(self, run: str) -> dict[str, int]:
        """Those of all sinks."""
        found: dict[str, int] = {}
        for _, sink in self.parts:
            found |= sink.positions(run)
        return found

    def skip_to(self, batches: Mapping[str, int], run: str) -> None:
        """Let those sinks skip that have one of the places."""
        for _, sink in self.parts:
            mine = {name: batches[name] for name in sink.positions(run) if name in batches}
            if mine:
                sink.skip_to(mine, run)

    def recover(self, last_batch: int, *, run: str = "") -> None:
        """Recover each."""
        for _, sink in self.parts:
            sink.recover(last_batch, run=run)

    def declare(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Tell each of the queries that it takes."""
        for takes, sink in self.parts:
            sink.declare({name: each for name, each in schemas.items() if takes.is_taken(name)})

    def check_outputs(self, outputs: Mapping[str, str]) -> None:
        """Ask each about the queries that it takes."""
        for takes, sink in self.parts:
            sink.check_outputs(
                {name: each for name, each in outputs.items() if takes.is_taken(name)}
            )

    def reach(self, times: Mapping[str, pa.Scalar]) -> None:
        """Tell each of the queries that it takes."""
        for takes, sink in self.parts:
            sink.reach({name: each for name, each in times.items() if takes.is_taken(name)})

    def commit(self, batch_id: int, entries: Sequence[Tagged]) -> None:
        """Commit each, in order."""
        for place, (_, sink) in enumerate(self.parts):
            sink.commit(batch_id, [each.entry for each in entries if each.place == place])

    def close(self) -> None:
        """Close each."""
        for _, sink in self.parts:
            sink.close()


class LastRows(DriverSink):
    """Shows the last row of each query to a function; it keeps nothing and promises nothing."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def writer(self) -> RowsWriter:
        """Ships one row of each query and task."""
        return _LastRowsWriter()

    def deliver(self, batch_id: int, tables: Mapping[str, pa.Table]) -> None:
        """Show the row of the latest window."""
        for name, table in tables.items():
            self._watcher(
                batch_id, name, table.sort_by(table.column_names[1]).slice(table.num_rows - 1)
            )


class _LastRowsWriter(RowsWriter):
    def write(
        self, batch_id: int, attempt_id: int | str, results: Mapping[str, pa.Table]
    ) -> list[RowsEntry]:
        last = {name: each.slice(max(each.num_rows - 1, 0)) for name, each in results.items()}
        return super().write(batch_id, attempt_id, last)
