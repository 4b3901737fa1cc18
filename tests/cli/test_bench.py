"""``muntin bench``: reports for people and machines, failures, and comparing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from muntin.cli.bench import check_installed
from muntin.errors import MuntinError
from muntin_bench import runner
from muntin_bench.measure import Timing
from muntin_bench.report import Check, Report

Muntin = Callable[..., tuple[int, str, str]]


def made_up(name: str, value: float = 1.5) -> Report:
    timings = (Timing("ours", (1.0, 1.1, 0.9)), Timing("theirs", (4.0, 4.2, 3.8)))
    return Report(name, "made up", timings, checks=(Check("fast enough", 2, value),))


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What benchmarks find, by name; an error is raised."""
    found: dict[str, object] = {name: made_up(name) for name in runner.NAMES}

    def module(path: str) -> SimpleNamespace:
        def run(*, quick: bool) -> object:
            outcome = found[path.rpartition(".")[2]]
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return SimpleNamespace(run=run)

    monkeypatch.setattr(runner, "import_module", module)
    return found


def test_one_benchmark_is_shown_and_saved(muntin: Muntin, tmp_path: Path) -> None:
    code, out, err = muntin("bench", "local", "--quick", "--output", str(tmp_path))
    assert code == 0
    assert "4.00×" in out
    assert "met    fast enough: 1.50×, at most 2×" in out
    assert "local 0:00 done" in err
    assert {path.name for path in tmp_path.iterdir()} == {"local.json", "report.md", "report.html"}
    assert json.loads((tmp_path / "local.json").read_text())["quick"] is True


def test_json_is_all_that_goes_to_standard_output(muntin: Muntin, tmp_path: Path) -> None:
    code, out, _ = muntin("bench", "local", "--format", "json", "--output", str(tmp_path))
    found = json.loads(out)
    assert (code, found["name"], found["quick"]) == (0, "local", False)
    assert {"cpu", "cores", "memory", "system", "python"} == set(found["machine"])


def test_all_are_run_but_peers(muntin: Muntin, tmp_path: Path) -> None:
    arguments = ("--quick", "all", "--format", "json", "--output", str(tmp_path))
    code, out, _ = muntin("bench", *arguments)
    assert code == 0
    assert [each["name"] for each in json.loads(out)["reports"]] == list(runner.ALL)
    page = (tmp_path / "report.html").read_text()
    assert all(f'<section id="{name}">' in page for name in runner.ALL)


def test_one_that_fails_is_named_after_the_others_ran(
    muntin: Muntin, tmp_path: Path, benchmarks: dict[str, object]
) -> None:
    benchmarks["local"] = AssertionError("sums differ")
    code, out, err = muntin("bench", "all", "--output", str(tmp_path))
    assert code == 1
    assert "failed AssertionError: sums differ" in out
    message = err[err.index("error: ") :]
    assert f"1 of {len(runner.ALL)} failed: local: AssertionError: sums differ" in message
    for name in runner.ALL:
        assert (tmp_path / f"{name}.json").is_file()
    assert "sums differ" in json.loads((tmp_path / "local.json").read_text())["failure"]
    assert "| local | failed |" in (tmp_path / "report.md").read_text()


def test_a_name_that_is_wrong_runs_nothing(muntin: Muntin, tmp_path: Path) -> None:
    code, _, err = muntin("bench", "local", "sparc", "--output", str(tmp_path))
    assert code == 1
    assert "did you mean spark?" in err
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Two reports; a promise that the first meets is missed by the second."""
    folders = tmp_path / "old", tmp_path / "new"
    for folder, value in zip(folders, (1.5, 2.5), strict=True):
        made_up("local", value).save(folder)
    old, new = (str(folder / "local.json") for folder in folders)
    return old, new


def test_reports_are_compared(muntin: Muntin, files: tuple[str, str]) -> None:
    old, new = files
    code, out, err = muntin("bench", "compare", old, new)
    assert code == 1
    assert "theirs / ours" in out
    assert "broken" in out
    assert "local misses what it met: fast enough" in err
    code, out, err = muntin("bench", "compare", new, old)
    assert (code, err) == (0, "")
    assert "mended" in out


def test_comparisons_are_read_by_machines(muntin: Muntin, files: tuple[str, str]) -> None:
    code, out, _ = muntin("bench", "compare", *files, "--format", "json")
    (found,) = json.loads(out)["comparisons"]
    assert (code, found["worse"], found["promises"][0]["verdict"]) == (1, True, "broken")
    assert found["changes"][0]["factor"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("{old}",), "compare takes two reports"),
        (("{old}", "{new}", "--quick"), "compare takes two reports"),
        (("{old}", "nowhere.json"), "nowhere.json cannot be read"),
        (("{old}", __file__), "holds no JSON"),
    ],
)
def test_what_cannot_be_compared_is_said(
    muntin: Muntin, files: tuple[str, str], arguments: tuple[str, ...], message: str
) -> None:
    old, new = files
    given = [argument.format(old=old, new=new) for argument in arguments]
    code, _, err = muntin("bench", "compare", *given)
    assert code == 1
    assert message in " ".join(err.split())
    assert "Hint: " in err
    assert "Traceback" not in err


def test_benchmarks_that_are_not_installed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muntin.cli.bench.find_spec", lambda name: None)
    with pytest.raises(MuntinError, match="the benchmarks are not installed"):
        check_installed()
