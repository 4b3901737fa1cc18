"""``muntin check`` through its real entry point, as a process once and then in this one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from muntin.cli.main import main

MUNTIN = str(Path(sys.executable).parent / "muntin")
GOOD = """\
CREATE STREAM trades (ts TIMESTAMP, symbol STRING, vol BIGINT)
  WITH (format = 'csv', path = '${folder}/in', lateness = '5 seconds');
CREATE TABLE close (symbol STRING, cp DOUBLE) WITH (format = 'csv', path = 'close.csv');
CREATE SINK out WITH (format = 'parquet', path = 'out');
CREATE QUERY volume AS
  SELECT symbol, sum(vol) AS v FROM trades [RANGE '1 hour' SLIDE '1 minute'] GROUP BY symbol;
"""


Muntin = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.sql").write_text(GOOD)
    (tmp_path / "bad.sql").write_text(GOOD.replace("vol)", "vl)") + "\nCRATE x;")
    return tmp_path


def test_a_sound_file(folder: Path) -> None:
    for path in ("in", "close.csv"):
        (folder / path).mkdir()
    done = subprocess.run(
        [MUNTIN, "check", "good.sql", "--set", "folder=."],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=folder,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "good.sql: 1 stream, 1 table, 1 query, 1 sink, nothing wrong\n"


@pytest.mark.usefixtures("folder")
def test_every_problem_with_its_place(muntin: Muntin) -> None:
    code, shown, _ = muntin("check", "bad.sql")
    assert code == 1
    assert shown == (
        "bad.sql:2:32: stream trades: path: nothing says what ${folder} is\n"
        "    WITH (format = 'csv', path = '${folder}/in', lateness = '5 seconds');\n"
        "                                 ^\n"
        "  Hint: give it a value: --set folder=...\n"
        "bad.sql:6:22: query volume: no column vl\n"
        "    SELECT symbol, sum(vl) AS v FROM trades [RANGE '1 hour' SLIDE '1 minute'] "
        "GROUP BY symbol;\n"
        "                       ^\n"
        "  Hint: did you mean vol?\n"
        "bad.sql:8:1: unexpected CRATE\n"
        "  CRATE x;\n"
        "  ^\n"
        "  Hint: did you mean CREATE?\n"
        "3 problems\n"
    )
    _, shown, _ = muntin("check", "bad.sql", "--set", "folder=x")
    assert shown.startswith("bad.sql:6:22: query volume: no column vl\n")


@pytest.mark.usefixtures("folder")
def test_for_machines(muntin: Muntin) -> None:
    code, shown, _ = muntin("check", "good.sql", "--set", "folder=x", "--format", "json")
    assert code == 0
    found = json.loads(shown)
    assert found["ok"] is True
    (stream,) = found["streams"]
    assert stream["columns"] == {"ts": "TIMESTAMP", "symbol": "STRING", "vol": "BIGINT"}
    assert stream["queries"][0]["sinks"] == ["out"]
    code, shown, _ = muntin("check", "bad.sql", "--set", "folder=x", "--format", "json")
    assert code == 1
    found = json.loads(shown)
    assert [(one["line"], one["column"]) for one in found["problems"]] == [(6, 22), (8, 1)]
    assert found["problems"][0]["hint"] == "did you mean vol?"


def test_files_that_are_not_there_yet_are_noted(muntin: Muntin, folder: Path) -> None:
    code, shown, _ = muntin("check", "good.sql", "--set", "folder=data")
    assert code == 0
    assert shown == (
        "good.sql: 1 stream, 1 table, 1 query, 1 sink, nothing wrong\n"
        "note: data/in does not exist yet\n"
        "note: close.csv does not exist yet\n"
    )
    (folder / "data" / "in").mkdir(parents=True)
    _, shown, _ = muntin("check", "good.sql", "--set", "folder=data", "--format", "json")
    assert json.loads(shown)["notes"] == [{"message": "close.csv does not exist yet", "line": 3}]
    _, shown, _ = muntin("check", "good.sql", "--set", "folder=/no/where*")
    assert "note: /no/where*/in does not exist yet\n" in shown
    _, shown, _ = muntin("check", "good.sql", "--set", "folder=s3://bucket")
    assert "bucket" not in shown


@pytest.mark.parametrize("form", ["text", "json"])
def test_secrets_are_not_shown(muntin: Muntin, folder: Path, form: str) -> None:
    bad = {
        "CREATE SINK s WITH (format = 'postgres', url='postgresql://me:HUSH@host/db');": "url",
        "CREATE SINK s WITH (format = 'postgres',\n  password = 'HUSH', k = 5);": "no option",
        "CREATE SINK s WITH (format = 'postgres://me:HUSH@h');": "there is no 'postgres",
        "CREATE SINK s WITH (format = 'postgres', url_env = 'a://me:HUSH@h');": "name of an",
        "CREATE SINK s WITH (format = 'postgres', password = HUSH);": "value of an option",
        "CREATE SINK s WITH (format = 'postgres', password =\n'HUSH);": "not closed",
        "CREATE STREAM s WITH (format = 'csv', path = 's3://me:HUSH@b/x');": "not looked up",
    }
    for statement, message in bad.items():
        (folder / "secret.sql").write_text(statement)
        code, shown, said = muntin("check", "secret.sql", "--format", form)
        assert code == 1
        assert message in shown
        assert "HUSH" not in shown + said


@pytest.mark.usefixtures("folder")
def test_files_and_settings_that_are_none(muntin: Muntin) -> None:
    code, shown, _ = muntin("check", "nothing.sql")
    assert code == 1
    assert "cannot read nothing.sql: No such file" in shown
    assert "Hint: check the path\n" in shown
    code, _, said = muntin("check", "good.sql", "--set", "folder")
    assert code == 1
    assert said.startswith("error: --set folder is not of the form name=value\nHint: ")


@pytest.mark.usefixtures("folder")
def test_no_stack_trace_unless_asked_for(muntin: Muntin, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("muntin.pipelines.read", fail)
    code, _, said = muntin("check", "good.sql")
    assert code == 1
    assert said.startswith("error: RuntimeError: broken\nHint: this is a bug in Muntin")
    monkeypatch.setattr(sys, "argv", ["muntin", "--debug", "check", "good.sql"])
    with pytest.raises(RuntimeError):
        main()


def test_it_starts_without_spark_and_the_compiler(folder: Path) -> None:
    code = (
        "import sys; from muntin.cli.main import app\n"
        "heavy = {'pyspark', 'numba', 'polars', 'pyarrow', 'numpy', 'sqlglot', 'duckdb'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "try: app(['check', 'good.sql', '--set', 'folder=x'])\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'pyspark', 'numba', 'duckdb', 'pyarrow.dataset'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=folder, timeout=300)
