"""Reports: shown whole, written for machines, and read back as they were."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from muntin_bench import plots
from muntin_bench.conditions import conditions
from muntin_bench.reading import ReportError, read_report
from muntin_bench.report import Check, Report, Section


def shown(report: Report, width: int = 100) -> str:
    console = Console(record=True, width=width, file=StringIO())
    report.show(console)
    return console.export_text()


def test_a_report_is_shown_with_medians_ranges_and_promises(tiny: Report) -> None:
    text = shown(tiny)
    assert "1,000.0 (900.0 to 1,100.0)" in text
    assert "4.00× (3.82 to 4.22)" in text
    assert "met    held: 1.50× (1.40 to 1.60), at most 2×" in text
    assert "missed broken: 2.50 s, at most 2 s" in text
    assert "a quick run" in text


def test_a_promise_may_be_a_lower_bound() -> None:
    checks = (Check("more", 10, 12, least=True), Check("less", 10, 9, least=True))
    assert [check.met for check in checks] == [True, False]
    assert "missed less: 9.00×, at least 10×" in shown(Report("tiny", "made up", checks=checks))


def test_tables_are_whole_on_a_narrow_terminal() -> None:
    console = Console(record=True, width=40)
    rows = tuple((f"{'long ' * 12}name", "[value]") for _ in range(2))
    Report("tiny", "made up", sections=(Section("wide", ("first", "second"), rows),)).show(console)
    text = console.export_text()
    assert text.count(rows[0][0]) == text.count("[value]") == 2
    assert console.width == 40


def test_a_failure_is_shown() -> None:
    failure = "AssertionError: sums [differ]\n" + "line\n" * 50
    text = shown(Report("tiny", "", failure=failure))
    assert "failed AssertionError: sums [differ]" in text
    assert text.count("line") < 20


def test_a_report_is_saved_with_its_plots_and_read_back(tiny: Report, tmp_path: Path) -> None:
    written, plot = tiny.save(tmp_path)
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert read_report(written) == tiny
    parsed = json.loads(written.read_text())
    assert [check["met"] for check in parsed["checks"]] == [True, False]
    assert [timing["median"] for timing in parsed["timings"]] == [1.0, 4.0]
    assert (parsed["quick"], parsed["seeds"], parsed["machine"]["cores"]) == (True, [0, 7], "2")


def test_plots_are_left_out_without_matplotlib(
    tiny: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "find_spec", lambda _: None)
    assert [path.name for path in tiny.save(tmp_path)] == ["local.json"]
    with pytest.raises(Exception, match=r"plots need matplotlib\nHint: pip install"):
        plots.draw(tiny.plots[0], tmp_path / "plot.png")


def test_versions_of_what_is_used_are_told() -> None:
    found = conditions(["duckdb", "no-such-package"]).versions
    assert found["duckdb"][0].isdigit()
    assert found["no-such-package"] == "not installed"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "cannot be read: No such file"),
        ("no JSON", "holds no JSON"),
        ("[1]", "but no report"),
        ('{"name": "x"}', "has no 'data'"),
    ],
)
def test_files_that_are_no_reports_are_refused(tmp_path: Path, text: str | None, why: str) -> None:
    path = tmp_path / "x.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ReportError, match=why):
        read_report(path)


@pytest.mark.parametrize(
    "damage",
    [
        {"checks": [{}]},
        {"timings": [{"side": "a", "seconds": ["x"]}]},
        {"machine": []},
        {"sections": 1},
        {"plots": [{"name": "a", "title": "", "across": "", "up": "", "lines": {"a": [1]}}]},
    ],
)
def test_damaged_reports_are_refused(
    tiny: Report, tmp_path: Path, damage: dict[str, object]
) -> None:
    path, *_ = tiny.save(tmp_path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **damage}))
    with pytest.raises(ReportError, match="damaged report"):
        read_report(path)
