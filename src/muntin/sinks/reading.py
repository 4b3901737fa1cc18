"""Reads results back: committed rows only, each once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from muntin.errors import UnknownQueryError, did_you_mean
from muntin.sinks import layout
from muntin.sinks.data_file import read_data
from muntin.sinks.durable import local_path
from muntin.sinks.log import CommitLog
from muntin.sinks.manifest import FileEntry
from muntin.sinks.problems import SinkError
from muntin.sinks.schemas import concat, pick

_LOOKS = 20
_THREADS = 8


class Output(Mapping[str, pa.Table]):
    """A folder of results by query name, regardless of case.

    Every access looks at what is committed at that moment, also while a run writes there and
    compacts. Rows come in no promised order.
    """

    def __init__(self, root: Path) -> None:
        if layout.read_marker(root) is None:
            what = "holds no results of Muntin" if root.exists() else "does not exist"
            raise SinkError(f"{root} {what}", hint="give the folder of a parquet sink")
        self.root = root
        self._log = CommitLog(root)

    def __getitem__(self, query: str) -> pa.Table:
        return self.table(query)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._names().values()))

    def __len__(self) -> int:
        return len(self._names())

    def __repr__(self) -> str:
        rows: dict[str, int] = dict.fromkeys(self._names(), 0)
        for entry in self._log.snapshot().files:
            rows[entry.query.lower()] = rows.get(entry.query.lower(), 0) + entry.rows
        names = self._names()
        lines = [f"  {names.get(key, key)}: {rows[key]:,} rows" for key in sorted(rows)]
        return "\n".join([f"Results in {self.root}", *lines])

    def table(self, query: str, *, version: int | None = None) -> pa.Table:
        """The committed rows of a query.

        Args:
            query: Its name.
            version: Which version of its columns, counted from 0, where a query was replaced
                by one with other columns; all of them unless said otherwise.
        """
        for _ in range(_LOOKS):
            entries = self._entries(query, version)
            try:
                with ThreadPoolExecutor(_THREADS) as pool:
                    tables = list(pool.map(self._read, entries))
            except FileNotFoundError as error:
                # Compacted away since the manifests were read; look at them again.
                missing = error
                continue
            return concat(query, tables) if tables else self._empty(query)
        raise SinkError(
            f"{missing.filename} holds committed results of {query}, and is not there",
            hint="restore it from a copy; files(query) names those that are to be there",
        )

    def files(self, query: str, *, version: int | None = None) -> list[str]:
        """The paths of a query's committed files, for any reader of Parquet."""
        return [str(self.root / entry.path) for entry in self._entries(query, version)]

    def versions(self, query: str) -> list[pa.Schema]:
        """The columns of a query's results, one schema for each version, in order."""
        firsts: dict[str, FileEntry] = {}
        for entry in self._entries(query, None):
            firsts.setdefault(entry.schema, entry)
        return [pq.read_schema(self.root / entry.path) for entry in firsts.values()]

    def _read(self, entry: FileEntry) -> pa.Table:
        return read_data(self.root, entry)

    def _entries(self, query: str, version: int | None) -> list[FileEntry]:
        entries = [
            entry for entry in self._log.snapshot().files if entry.query.lower() == query.lower()
        ]
        if not entries:
            self._check_known(query)
        if version is None:
            return entries
        chosen = pick(query, version, [entry.schema for entry in entries])
        return [entry for entry in entries if entry.schema == chosen]

    def _names(self) -> dict[str, str]:
        names = {name.lower(): name for name in layout.declared(self.root)}
        return names | {entry.query.lower(): entry.query for entry in self._log.snapshot().files}

    def _check_known(self, query: str) -> None:
        names = self._names()
        if query.lower() not in names:
            raise UnknownQueryError(
                f"{self.root} has no results of a query {query!r}",
                hint=did_you_mean(query, names.values()),
            )

    def _empty(self, query: str) -> pa.Table:
        known = {name.lower(): schema for name, schema in layout.declared(self.root).items()}
        return known[query.lower()].empty_table()


def read(folder: str | os.PathLike[str]) -> Output:
    """The results in a folder that a parquet sink writes: ``read("out")["spikes"]``."""
    return Output(local_path(folder))
