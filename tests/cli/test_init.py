"""``muntin init``: what it makes is sound, and what is there stays."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

import muntin
from muntin import pipelines
from muntin.cli.main import main


@pytest.fixture
def init(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def call(folder: Path) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["muntin", "init", str(folder)])
        with pytest.raises(SystemExit) as end:
            main()
        shown = capsys.readouterr()
        return int(end.value.code or 0), shown.out + shown.err

    return call


def test_what_it_makes_is_sound(tmp_path: Path, init: Callable[..., Any]) -> None:
    folder = tmp_path / "some" / "where"
    code, shown = init(folder)
    assert (code, shown) == (0, f"made {folder}; next: cd {folder} && muntin run live.sql\n")
    live = pipelines.read(folder / "live.sql")
    assert [query.name for query in live.queries["trades"]] == ["turnover", "vwap", "large"]
    history = pipelines.read(folder / "history.sql")
    files = sorted((folder / "data" / "trades").iterdir())
    rows = pa.concat_tables(pa.csv.read_csv(file) for file in files)
    rows = rows.set_column(0, "ts", rows["ts"].cast(pa.timestamp("us", "UTC")))
    names = pa.csv.read_csv(folder / "data" / "names.csv")
    results = muntin.aggregate(
        rows, list(history.queries["trades"]), time="ts", tables={"names": names}
    )
    assert set(results["turnover"]["company"].to_pylist()) == set(names["company"].to_pylist())
    assert results["spread"].num_rows == 24


def test_nothing_is_overwritten(tmp_path: Path, init: Callable[..., Any]) -> None:
    (tmp_path / "README.md").write_text("mine")
    code, shown = init(tmp_path)
    assert (code, "README.md is there already" in shown) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    code, shown = init(tmp_path / "README.md")
    assert (code, "is a file already" in shown) == (1, True)
