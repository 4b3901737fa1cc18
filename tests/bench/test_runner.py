"""Benchmarks by name: all take `quick`, and one that fails says so."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from muntin.errors import MuntinError
from muntin_bench import ALL, NAMES, Report, attempt, chosen, progress, run, runner

SCALED = ("aggregators", "holistic", "joins", "optimizer", "planning", "sharing", "spark")


def test_all_leaves_the_peers_to_those_who_ask() -> None:
    assert set(NAMES) - set(ALL) <= {"peers"}
    assert chosen(["spark", "all"]) == ("spark", *(name for name in ALL if name != "spark"))


def test_every_benchmark_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text()
    assert [name for name in NAMES if f"| `muntin bench {name}` |" not in page] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_can_be_asked_to_be_quick(name: str) -> None:
    parameter = inspect.signature(import_module(f"muntin_bench.{name}").run).parameters["quick"]
    assert parameter.default is False


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("name", SCALED)
def test_quick_measures_less(name: str, quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = import_module(f"muntin_bench.{name}.benchmark")
    monkeypatch.setattr(benchmark, "run_at", lambda scale, *_: Report(name, repr(scale)))
    report = run(name, quick=quick)
    assert report.data == repr(benchmark.QUICK if quick else benchmark.FULL)
    assert report.conditions is not None
    assert report.conditions.quick == quick


def planted(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*, quick: bool) -> Report:
        progress.step("comparing")
        raise error

    monkeypatch.setattr(runner, "import_module", lambda _: SimpleNamespace(run=fail))


def test_different_answers_make_a_benchmark_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    planted(monkeypatch, AssertionError("sums differ"))
    with pytest.raises(AssertionError):
        run("local")
    report = attempt("local", quick=True)
    assert report.failure is not None
    assert report.failure.startswith("AssertionError: sums differ\n")
    assert "Traceback" in report.failure
    assert (report.timings, report.sections, report.checks) == ((), (), ())
    assert "local 0:00 comparing" in capsys.readouterr().err
    assert progress.running() is None


def test_what_is_missing_is_said_without_a_stack_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, MuntinError("needs DuckDB", hint="pip install duckdb"))
    assert attempt("local").failure == "needs DuckDB\nHint: pip install duckdb"


def test_unknown_benchmarks_are_refused_before_anything_runs() -> None:
    with pytest.raises(MuntinError, match="there is no benchmark 'shering'"):
        chosen(["local", "shering"])


def test_nothing_is_timed_without_assertions() -> None:
    code = "import muntin_bench as bench; print(bench.attempt('local').failure)"
    done = subprocess.run(
        [sys.executable, "-O", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("benchmarks compare answers by assert")
