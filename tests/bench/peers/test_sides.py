"""The comparison itself, through the processes that it really uses, on very few rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from muntin.errors import MuntinError
from muntin_bench.peers import environments
from muntin_bench.peers.compare import AnswersDifferError
from muntin_bench.peers.environments import InstallError, find, folder_of, pinned, provide
from muntin_bench.peers.measuring import Measuring
from muntin_bench.peers.process import PeerError, Spent, engine
from muntin_bench.peers.questions import FULL, TINY, questions
from muntin_bench.peers.runner import chosen, compare
from muntin_bench.peers.sides import (
    DUCKDB,
    DUCKDB_SLICES,
    OURS,
    PANDAS,
    POLARS,
    POLARS_SLICES,
    SIDES,
    Line,
    Side,
    started,
)


def test_all_questions_beside_peers_that_are_here() -> None:
    sides = (OURS, DUCKDB, DUCKDB_SLICES, POLARS, POLARS_SLICES, PANDAS)
    report = compare(TINY, sides, install=False, repeats=1)
    *tables, ways, left_out = report.sections
    assert [len(table.rows) for table in tables] == [6] * 18
    assert all("×" in cell for table in tables[:10:2] for row in table.rows for cell in row[1:])
    # Aggregates over all values are not written by hand, nor in pandas.
    by_hand = {DUCKDB_SLICES.name, POLARS_SLICES.name, PANDAS.name}
    assert {(row[0], row[1].split(",")[0]) for row in left_out.rows} == {
        (side, f"nexmark_{number}") for side in by_hand for number in (15, 16, 17, 19)
    }
    assert {row[0] for row in ways.rows} == {side.name for side in sides}
    assert [check.promise.split(",")[0] for check in report.checks] == [
        *("windows", "windows", "predicates", "predicates")
    ]
    assert {plot.name for plot in report.plots} >= {"slide", "windows"}


class Wrong:
    """An engine that answers as another does, but leaves out a window."""

    def __init__(self, engine) -> None:
        self._engine = engine
        self._folder = Path()

    def prepare(self, mode, job):
        self._folder = Path(job["answers"])
        return self._engine.prepare(mode, job)

    def answer(self, mode):
        import pyarrow.parquet as pq

        seconds = self._engine.answer(mode)
        for path in self._folder.glob("*.parquet"):
            pq.write_table(pq.read_table(path).slice(1), path)
        return seconds


def test_a_peer_with_other_answers_fails_the_benchmark(tmp_path: Path) -> None:
    question = questions(TINY)[0]
    with started((OURS, POLARS), install=False, folder=tmp_path, say=print) as (lines, missing):
        assert not missing
        lines[1] = Line(POLARS, Wrong(lines[1].engine))
        with pytest.raises(AnswersDifferError, match="answers of polars differ: query q0000"):
            Measuring(question, lines, tmp_path, 1).run()


class Slow:
    """An engine that takes so long a query."""

    def __init__(self, engine, seconds: float) -> None:
        self._engine, self._seconds, self._queries = engine, seconds, 0
        self.asked: list[int] = []

    def prepare(self, mode, job):
        self._queries = len(job["queries"])
        self.asked.append(self._queries)
        return self._engine.prepare(mode, job)

    def answer(self, mode):
        self._engine.answer(mode)
        return self._seconds * self._queries

    def time(self, mode):
        return Spent(self._seconds * self._queries, 1.0)


def test_what_takes_long_is_measured_in_part(tmp_path: Path) -> None:
    with started((OURS, POLARS), install=False, folder=tmp_path, say=print) as (lines, _):
        for seconds, asked, factors, shown in (
            (10, [1, 3], [1, 1], [10, 30]),
            (25, [1, 2], [1, 1.5], [25, 75]),
            (40, [1], [1, 3], [40, 120]),
        ):
            slow = Slow(lines[1].engine, seconds)
            sides = [lines[0], Line(POLARS, slow)]
            cells = Measuring(questions(TINY)[1], sides, tmp_path, 1, patience=60).run()
            theirs = [cell for cell in cells if cell.side == POLARS]
            assert slow.asked == asked
            assert [cell.factor for cell in theirs] == factors
            assert [cell.timing.median for cell in theirs if cell.timing] == pytest.approx(shown)


def test_a_failing_adapter_says_why(tmp_path: Path) -> None:
    with engine("duckdb", sys.executable, log=tmp_path / "log") as peer:
        job = {"data": "/nowhere.parquet", "columns": ["ts"], "queries": [], "answers": "x"}
        job["queries"] = [questions(TINY)[0].sizes[0].queries[0].plain()]
        peer.prepare("", job)
        with pytest.raises(PeerError, match="duckdb: IO Error: No files found"):
            peer.answer("")
    with (
        engine("nobody", sys.executable, log=tmp_path / "log") as peer,
        pytest.raises(PeerError, match=r"No such file.*nobody\.py"),
    ):
        peer.prepare("", job)


def test_environments_are_found_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(environments.FOLDER_VARIABLE, str(tmp_path))
    assert find("flink") is None
    assert pinned("flink")[1] in folder_of("flink").name
    (tmp_path / folder_of("flink").name).mkdir()
    assert find("flink") is None
    (folder_of("flink") / "ready").touch()
    assert find("flink") == folder_of("flink") / "bin" / "python"
    with pytest.raises(MuntinError, match="no peer 'flnk'"):
        find("flnk")


def test_what_cannot_be_installed_is_left_out_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(environments.FOLDER_VARIABLE, str(tmp_path))
    words = "WARNING: something else\nERROR: No matching distribution found for bytewax"
    failed = subprocess.CompletedProcess([], 1, "", words)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    said: list[str] = []
    with pytest.raises(InstallError, match="cannot be installed here: ERROR: No matching"):
        provide("bytewax", said.append)
    assert len(said) == 1
    assert find("bytewax") is None
    other = Side("Bytewax", "bytewax", peer="bytewax")
    with started((OURS, other), install=False, folder=tmp_path, say=print) as (lines, missing):
        assert [line.side for line in lines] == [OURS]
        assert "quick run installs nothing" in missing["Bytewax"]


def test_a_quick_run_asks_fewer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(environments.FOLDER_VARIABLE, str(tmp_path))
    assert {side.peer for side in chosen(quick=True)} == {"", "duckdb", "polars", "pandas", "spark"}
    assert chosen(quick=False) == SIDES
    assert questions(FULL)[1].sizes[-1].label == "1,024 queries"
