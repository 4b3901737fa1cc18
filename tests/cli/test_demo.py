"""``muntin demo`` through its real entry point, without a terminal; and what it measures."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from muntin import pipelines
from muntin.cli import demo
from muntin.cli.demo_measure import JOINING, Measured, _check_same, draw, report
from muntin.errors import MuntinError
from muntin.spark.environment.java import find_java
from quick_jvm import quick_jvm

MUNTIN = str(Path(sys.executable).parent / "muntin")


@pytest.mark.spark
def test_the_demo() -> None:
    pytest.importorskip("pyspark")
    if find_java() is None:
        pytest.skip("no Java runtime")
    done = subprocess.run(
        [MUNTIN, "demo", "--queries", "12", "--seconds", "3", "--seed", "1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
        env=quick_jvm(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shown = done.stdout
    assert "12 window queries over one stream of trades" in shown
    assert "spikes and vwap join the running stream" in shown
    assert "_001 leaves it" in shown
    assert "SharedPlan  13 queries" in shown
    assert "Muntin, all 12 queries in one pass" in shown
    assert "extrapolated" in shown
    assert "Traceback" not in done.stderr
    assert "\tat " not in done.stderr


class FakeRun:
    """A stream whose queries join and leave at once."""

    def __init__(self) -> None:
        self.names: list[str] = ["first_001"]

    def poll(self) -> bool:
        return False

    def progress(self) -> dict[str, Any]:
        return {"trades": SimpleNamespace(batch_rows=1)}

    def add(self, sql: str) -> list[str]:
        assert sql == JOINING
        self.names += ["spikes", "vwap"]
        return self.names[-2:]

    def queries(self) -> dict[str, Any]:
        return {"trades": [SimpleNamespace(name=name) for name in self.names]}

    def drop(self, name: str) -> None:
        self.names.remove(name)


@pytest.mark.parametrize(("answers_after", "ends_after"), [(5, 10), (20, 20), (None, 40)])
def test_it_waits_for_queries_that_joined(
    monkeypatch: pytest.MonkeyPatch, answers_after: int | None, ends_after: int
) -> None:
    """The clock moves a second with each nap; nine are asked for, and it waits for thirty more."""
    clock = SimpleNamespace(now=-1)
    answered: set[str] = set()

    def sleep(seconds: float) -> None:
        assert seconds
        clock.now += 1
        answered.update({"spikes", "vwap"} if clock.now == answers_after else {"first_001"})

    fake_time = SimpleNamespace(sleep=sleep, monotonic=lambda: clock.now)
    monkeypatch.setattr(demo, "time", fake_time)
    running: Any = FakeRun()
    written = io.StringIO()
    screen: Any = SimpleNamespace(
        tick=lambda _: None, say=written.write, finish=lambda _, going_on: None
    )
    signals: Any = SimpleNamespace(received=0)
    demo._watch(running, 9, screen, signals, answered)
    assert running.names == ["spikes", "vwap"]
    assert "spikes and vwap join the running stream" in written.getvalue()
    assert clock.now == ends_after


def test_the_queries_are_sound_and_the_same_for_a_seed() -> None:
    drawn = draw(256, seed=7)
    assert drawn == draw(256, seed=7) != draw(256, seed=8)
    assert all(query.range % query.slide == 0 for query in drawn)
    stream = "CREATE STREAM trades WITH (format = 'rate');"
    pipeline = pipelines.read(stream + ";".join(query.sql() for query in drawn) + ";" + JOINING)
    assert len(pipeline.queries["trades"]) == 258


def test_the_report_says_what_was_measured_and_what_was_not() -> None:
    written = io.StringIO()
    report(Console(file=written, width=80), Measured(256, 1000, 2.0, (1.0, 3.0)))
    lines = written.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert any("mean of 2: 1.0 to 3.0" in line for line in lines)
    assert any("512.0 s  extrapolated" in line for line in lines)
    assert "about 256 times as long, if the other 254" in " ".join(lines)


def test_answers_that_differ_are_no_comparison() -> None:
    query = next(each for each in draw(9, seed=7) if not each.is_grouped)
    ours = pa.table({"window_start": [0, 5], "value": [1.0, 2.0]})
    _check_same(query, ours, ours.take([1, 0]))
    for other in (ours.slice(1), ours.set_column(1, "value", pa.array([1.0, 2.1]))):
        with pytest.raises(MuntinError, match="differently"):
            _check_same(query, ours, other)
