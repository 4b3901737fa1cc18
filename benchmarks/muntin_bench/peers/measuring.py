"""One question put to all sides: answers are compared, then sides take turns at being timed."""

from __future__ import annotations

import re
import shutil
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from muntin_bench.measure import Timing
from muntin_bench.peers.compare import check_hottest, check_recomputed, check_same
from muntin_bench.peers.data import Data
from muntin_bench.peers.growth import Growth
from muntin_bench.peers.process import PeerError, Spent
from muntin_bench.peers.questions import Question, Size, Spec
from muntin_bench.peers.sides import PARTIAL, Line, Side
from muntin_bench.progress import step

# What would take longer is measured in part, and multiplied.
PATIENCE = 20.0  # seconds
# What has taken longer in all is timed no more.
_LONG = 10.0
_ROW_GROUPS = 8


@dataclass(frozen=True)
class Cell:
    """What a side took for a size, or the reason why it is not known.

    A factor above 1 says how many times less work was measured; the seconds are of all of it.
    """

    side: Side
    size: Size
    timing: Timing | None
    factor: float = 1.0
    cpu: float = 0.0
    how: str = ""
    reason: str = ""

    def __str__(self) -> str:
        if self.timing is None:
            return f"{self.side.name}: {self.reason}"
        about = f" (× {self.factor:.3g})" if self.factor > 1 else ""
        return f"{self.side.name}: {self.timing.milliseconds} ms, cores {self.cpu:.2f} s{about}"


@dataclass(frozen=True)
class Part:
    """What a side is given of a size: some rows, and some queries."""

    rows: int
    queries: int

    @property
    def key(self) -> tuple[int, int]:
        """What answers depend on."""
        return self.rows, self.queries


class Measuring:
    """Puts the sizes of one question, growing, to all sides; `lines` begins with Muntin."""

    def __init__(
        self,
        question: Question,
        lines: Sequence[Line],
        folder: Path,
        repeats: int,
        patience: float = PATIENCE,
    ) -> None:
        self._question, self._lines = question, lines
        self._folder, self._repeats, self._patience = folder, repeats, patience
        # Seconds by work, by side: of the rows that a side is given.
        self._growth = {line.side.name: Growth() for line in lines}
        self._last: dict[str, Cell] = {}

    def run(self) -> list[Cell]:
        """All sizes."""
        cells = []
        for size in self._question.sizes:
            step(f"{self._question.name}, {size.label}")
            for cell in self._size(size):
                cells.append(cell)
                step(f"  {cell}")
                self._last[cell.side.name] = cell
        return cells

    def _size(self, size: Size) -> list[Cell]:
        parts = {line.side.name: self._part(line.side, size) for line in self._lines}
        wanted = self._wanted(size, parts)
        cells: dict[str, Cell] = {}
        ready: list[Line] = []
        for line in self._lines:
            part = parts[line.side.name]
            if part is None:
                cells[line.side.name] = self._extended(line.side, size)
                continue
            try:
                how, seconds = self._compare(line, size, part, wanted[part.key])
            except PeerError as error:
                cells[line.side.name] = Cell(line.side, size, None, reason=error.message)
                continue
            first = Timing(line.side.name, (seconds,))
            cells[line.side.name] = Cell(line.side, size, first, how=how)
            ready.append(line)
        for name, spent in self._timed(ready, cells).items():
            cells[name] = self._grown(cells[name], spent, parts[name])
        return [cells[line.side.name] for line in self._lines]

    def _grown(self, cell: Cell, spent: Sequence[Spent], part: Part | None) -> Cell:
        """What was measured of a part, for the whole size."""
        assert part is not None
        size, growth = cell.size, self._growth[cell.side.name]
        work = size.work * part.queries / len(size.queries)
        median = statistics.median(run.seconds for run in spent)
        growth.add(work, median)
        rows = size.data.rows / part.rows
        longer = growth.at(size.work) / median * rows
        timing = Timing(cell.side.name, tuple(run.seconds * longer for run in spent))
        cpu = statistics.mean(run.cpu for run in spent) * longer
        return replace(cell, timing=timing, cpu=cpu, factor=size.work / work * rows)

    def _part(self, side: Side, size: Size) -> Part | None:
        """What a side can be asked within the patience; None if only smaller sizes can tell."""
        count = len(size.queries)
        rows = min(side.rows or size.data.rows, size.data.rows)
        queries = min(side.queries or count, count)
        growth, work = self._growth[side.name], size.work * queries / count
        # What is no more work than before may still take longer, and what is more work for a
        # side that shares nothing may not: nothing tells.
        unknown = work <= growth.last or (count == 1 and growth.sizes == 1)
        if side.shares or unknown or growth.at(work) <= self._patience:
            return Part(rows, queries)
        fewer = int(growth.within(self._patience) / size.work * count)
        return Part(rows, fewer) if size.work * fewer / count > growth.last else None

    def _extended(self, side: Side, size: Size) -> Cell:
        """What the line through smaller sizes says, where none of this one was measured."""
        growth, before = self._growth[side.name], self._last[side.name]
        rows = size.data.rows / min(side.rows or size.data.rows, size.data.rows)
        seconds = growth.at(size.work) * rows
        timing = Timing(side.name, (seconds,))
        cpu = before.cpu * seconds / before.timing.median if before.timing else 0.0
        return Cell(side, size, timing, size.work / growth.last * rows, cpu, before.how)

    def _wanted(
        self, size: Size, parts: Mapping[str, Part | None]
    ) -> dict[tuple[int, int], dict[str, pa.Table]]:
        """Muntin's answers for every number of rows, checked against sums over rows."""
        ours = self._lines[0]
        asked = {part.key for part in parts.values() if part is not None}
        found: dict[int, dict[str, pa.Table]] = {}
        for rows in {rows for rows, _ in asked}:
            most = max(queries for each, queries in asked if each == rows)
            _, answers = self._answer(ours, size, Part(rows, most))
            table = pq.read_table(self._path(size.data, rows))
            check_recomputed(ours.side.name, answers, table, size.queries[:most])
            found[rows] = answers
        return {key: found[key[0]] for key in asked}

    def _compare(
        self, line: Line, size: Size, part: Part, wanted: Mapping[str, pa.Table]
    ) -> tuple[str, float]:
        """The seconds of a first run, whose answers are the wanted ones."""
        (how, seconds), found = self._answer(line, size, part)
        if line.side not in PARTIAL:
            check_same(line.side.name, found, wanted, size.queries[: part.queries])
            if self._question.name == "hot_items":
                check_hottest(line.side.name, found, wanted, size.queries[0])
        return how, seconds

    def _answer(
        self, line: Line, size: Size, part: Part
    ) -> tuple[tuple[str, float], dict[str, pa.Table]]:
        queries = size.queries[: part.queries]
        answers = self._folder / "answers"
        shutil.rmtree(answers, ignore_errors=True)
        path = self._path(size.data, part.rows)
        job = {
            "data": str(path),
            "columns": columns_of(queries, pq.read_schema(path).names),
            "queries": [query.plain() for query in queries],
            "answers": str(answers),
        }
        how = line.engine.prepare(line.side.mode, job)
        seconds = line.engine.answer(line.side.mode)
        files = {query.name: answers / f"{query.name}.parquet" for query in queries}
        found = {name: pq.read_table(file) for name, file in files.items() if file.exists()}
        return (how, seconds), found

    def _path(self, data: Data, rows: int) -> Path:
        """The first rows as a Parquet file, which is written once."""
        path = self._folder / f"{data.name}-{rows}.parquet"
        if not path.exists():
            table = data.make().slice(0, rows)
            pq.write_table(table, path, row_group_size=max(rows // _ROW_GROUPS, 1))
        return path

    def _timed(self, ready: Sequence[Line], cells: dict[str, Cell]) -> dict[str, list[Spent]]:
        """Time all that are ready in turn; those that have taken long already, no more."""
        runs: dict[str, list[Spent]] = {line.side.name: [] for line in ready}
        for repeat in range(self._repeats):
            for line in ready if repeat % 2 == 0 else ready[::-1]:
                name = line.side.name
                if cells[name].timing is None or sum(run.seconds for run in runs[name]) > _LONG:
                    continue
                try:
                    runs[name].append(line.engine.time(line.side.mode))
                except PeerError as error:
                    cells[name] = replace(cells[name], timing=None, reason=error.message)
        return {name: spent for name, spent in runs.items() if cells[name].timing is not None}


def columns_of(queries: Sequence[Spec], names: Sequence[str]) -> list[str]:
    """The columns that queries read, in the order of the data.

    >>> columns_of([Spec("q", 2, 1, "NOT r1000 AND vol > 3")], ["ts", "vol", "amount", "symbol"])
    ['ts', 'vol', 'amount']
    """
    read = {"ts"}
    for query in queries:
        read.update(query.groups, (each.column for each in query.aggregates))
        for where in (query.where, *(each.where for each in query.aggregates)):
            read.update(re.findall(r"\w+", where))
    return [name for name in names if name in read]
