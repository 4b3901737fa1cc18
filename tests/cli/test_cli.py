"""The command through its real entry point."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import muntin_bench as bench
from muntin import __version__
from muntin_bench.measure import measure
from muntin_bench.report import Report

MUNTIN = str(Path(sys.executable).parent / "muntin")


def muntin(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [MUNTIN, *arguments], capture_output=True, text=True, check=False, timeout=300
    )


def test_version_and_help() -> None:
    assert muntin("--version").stdout.strip() == f"muntin {__version__}"
    for command in ("demo", "bench"):
        shown = muntin(command, "--help").stdout
        assert "Example: " in shown


def test_the_module_is_the_command() -> None:
    command = [sys.executable, "-m", "muntin", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == f"muntin {__version__}"


def test_a_mistake_is_a_message_and_an_exit_code() -> None:
    done = muntin("bench", "locl")
    assert done.returncode == 1
    assert "did you mean local?" in done.stderr
    assert "Traceback" not in done.stderr


def test_reports_are_read_by_machines() -> None:
    report = Report("x", "y", tuple(measure({"a": int, "b": int}, repeats=3).values()))
    parsed = json.loads(report.to_json())
    assert [timing["side"] for timing in parsed["timings"]] == ["a", "b"]
    assert parsed["versions"]["muntin"] == __version__


def test_unknown_benchmarks_are_refused() -> None:
    with pytest.raises(Exception, match="there is no benchmark"):
        bench.run("nope")
