"""Reads results back: committed rows only, each once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from muntin.display import count, html_facts
from muntin.errors import UnknownQueryError, did_you_mean
from muntin.sinks.durable import local_path
from muntin.sinks.files import layout
from muntin.sinks.files.layout import read_data
from muntin.sinks.files.log import CommitLog
from muntin.sinks.files.manifest import FileEntry
from muntin.sinks.schemas import concat, pick
from muntin.sinks.sink import SinkError

_LOOKS = 20
_THREADS = 8


class Output(Mapping[str, pa.Table]):
    """A folder of results by query name, regardless of case.

    Every access looks at what is committed at that moment, even while a run writes there and
    compacts. The order of rows is not guaranteed.

    Args:
        root: The folder.
        skips_missing: Whether files that somebody has deleted are left out; otherwise their
            results cannot be read.
    """

    def __init__(self, root: Path, *, skips_missing: bool = False) -> None:
        if layout.read_marker(root) is None:
            what = "holds no results of Muntin" if root.exists() else "does not exist"
            raise SinkError(f"{root} {what}", hint="give the folder of a parquet sink")
        self.root, self._skips_missing = root, skips_missing
        self._log = CommitLog(root)

    def __getitem__(self, query: str) -> pa.Table:
        return self.table(query)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._names().values()))

    def __len__(self) -> int:
        return len(self._names())

    def __repr__(self) -> str:
        lines = [f"  {name}: {count(rows, 'row')}" for name, rows in self._rows().items()]
        return "\n".join([f"Results in {self.root}", *lines])

    def _repr_html_(self) -> str:
        """How many rows each query has, for notebooks; nothing is read for it."""
        rows = {name: count(number, "row") for name, number in self._rows().items()}
        return html_facts(f"Results in {self.root}", rows)

    def _rows(self) -> dict[str, int]:
        """The committed rows of each query, by its name."""
        rows: dict[str, int] = dict.fromkeys(self._names(), 0)
        for entry in self._log.snapshot().files:
            rows[entry.query.lower()] = rows.get(entry.query.lower(), 0) + entry.rows
        names = self._names()
        return {names.get(key, key): rows[key] for key in sorted(rows)}

    def table(self, query: str, *, version: int | None = None) -> pa.Table:
        """The committed rows of a query.

        Args:
            query: Its name.
            version: Which version of its columns, counted from 0, where a query was replaced
                by one with other columns; by default, all of them.
        """
        for _ in range(_LOOKS):
            entries = self._entries(query, version)
            self._refuse_missing(query, entries)
            try:
                with ThreadPoolExecutor(_THREADS) as pool:
                    tables = list(pool.map(self._read, entries))
            except FileNotFoundError as error:
                # Compacted away since the manifests were read; look at them again.
                missing = error
                continue
            return concat(query, tables) if tables else self._empty(query)
        raise SinkError.of("read", str(missing.filename), missing)

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
        if version is not None:
            chosen = pick(query, version, [entry.schema for entry in entries])
            entries = [entry for entry in entries if entry.schema == chosen]
        if not self._skips_missing:
            return entries
        gone = {entry.path for entry in self._missing(entries)}
        return [entry for entry in entries if entry.path not in gone]

    def _refuse_missing(self, query: str, entries: Sequence[FileEntry]) -> None:
        gone = self._missing(entries)
        if gone:
            raise SinkError(
                f"{self.root / gone[0].path} holds committed results of {query}, and is not there"
                + f" ({len(gone)} such files)" * (len(gone) > 1),
                hint="restore it from a copy; or leave out what was deleted on purpose: "
                'read(folder, on_missing="skip")',
            )

    def _missing(self, entries: Sequence[FileEntry]) -> list[FileEntry]:
        """Files that are not there, and that are still to be: compaction has not replaced them."""
        gone = [entry for entry in entries if not (self.root / entry.path).exists()]
        named = {entry.path for entry in self._log.snapshot().files} if gone else set()
        return [entry for entry in gone if entry.path in named]

    def _names(self) -> dict[str, str]:
        names = {name.lower(): name for name in layout.declared(self.root)}
        return names | {entry.query.lower(): entry.query for entry in self._log.snapshot().files}

    def _check_known(self, query: str) -> None:
        names = self._names()
        if query.lower() not in names:
            joined = "a query that joins a running stream is known here from its first batch on"
            near = did_you_mean(query, names.values())
            raise UnknownQueryError(
                f"{self.root} has no results of a query {query!r}",
                hint=f"{near}; {joined}" if near else joined,
            )

    def _empty(self, query: str) -> pa.Table:
        known = {name.lower(): schema for name, schema in layout.declared(self.root).items()}
        return known[query.lower()].empty_table()


def read(folder: str | os.PathLike[str], *, on_missing: Literal["fail", "skip"] = "fail") -> Output:
    """The results in a folder that a parquet sink writes: ``read("out")["spikes"]``.

    Args:
        folder: The folder of the sink.
        on_missing: What happens if a file was deleted: ``fail`` refuses to read, ``skip`` leaves
            out its results, for folders from which old files are deleted on purpose.
    """
    if on_missing not in ("fail", "skip"):
        raise SinkError(
            f"on_missing must be fail or skip, not {on_missing!r}",
            hint="skip leaves out what was deleted",
        )
    return Output(local_path(folder), skips_missing=on_missing == "skip")
