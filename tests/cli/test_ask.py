"""``muntin ask``: from the log of a checkpoint that nothing runs with, and of what runs here."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cli.conftest import Muntin
from muntin.pipelines.control import Commands, ControlServer, is_about_keeps, shown_answer
from synopses.log_writer import LogWriter, local

SQL = "SELECT k, max(v) AS high, sum(v) AS total FROM t [RANGE 21] GROUP BY k"
PATIENCE = ("--timeout", "1 minute")
BATCHES = 9


def wanted() -> dict[str, Any]:
    return told(shown_answer(local(BATCHES).ask(SQL, timeout="1 minute")))


def told(answer: dict[str, Any]) -> dict[str, Any]:
    """All but how long it took, and how many blocks it was read from."""
    return {k: v for k, v in answer.items() if k not in ("milliseconds", "source")}


def test_a_stopped_checkpoint_is_asked(tmp_path: Path, muntin: Muntin) -> None:
    # muntin run has a folder for each stream, or for several together.
    folder = tmp_path / "ck" / "streams" / "s+t"
    writer = LogWriter(folder)
    for number in range(BATCHES):
        writer.run(number, "a")
    writer.wait()
    writer.close()
    for given in (folder, tmp_path / "ck"):
        asked = ("ask", SQL, "--checkpoint", str(given), *PATIENCE)
        code, shown, said = muntin(*asked, "--format", "json")
        assert (code, said) == (0, "")
        assert told(json.loads(shown)) == wanted()
    # No other stream's answer is given for it.
    code, shown, said = muntin(*(word.replace("FROM t", "FROM tt") for word in asked))
    assert (code, shown) == (1, "")
    assert "has no stream tt\nHint: did you mean t" in said
    code, shown, _ = muntin(*asked)
    *rows, facts = shown.splitlines()
    assert code == 0
    assert [line.split() for line in rows] == [
        ["k", "high", "total"],
        *([str(value) for value in row.values()] for row in wanted()["answer"]),
    ]
    assert facts.startswith("exact for ")
    assert f"batch {BATCHES}" in facts


def test_what_cannot_be_asked_is_said(tmp_path: Path, muntin: Muntin) -> None:
    code, shown, said = muntin("ask", SQL, "--checkpoint", str(tmp_path))
    assert (code, shown) == (1, "")
    assert "is not the checkpoint of a run" in said
    writer = LogWriter(tmp_path / "ck")
    writer.run(0, "a")
    writer.close()
    other = "SELECT median(v) AS m FROM t [RANGE 20]"
    code, shown, said = muntin("ask", other, "--checkpoint", str(tmp_path / "ck"))
    assert (code, shown) == (1, "")
    assert "CREATE OR REPLACE KEEP recent AS" in said


def test_a_pipeline_that_runs_here_is_asked(
    tmp_path: Path, muntin: Muntin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "nothing runs in this folder" in muntin("ask", SQL)[2]
    running: Any = SimpleNamespace(ask=local(BATCHES).ask)
    server = ControlServer(Path(".muntin") / "it", Commands(running))
    code, shown, said = muntin("ask", SQL, "--format", "json", *PATIENCE)
    server.close()
    assert (code, said) == (0, "")
    assert told(json.loads(shown)) == wanted()


def test_what_is_about_keeps() -> None:
    for text in ("CREATE KEEP k AS", "/* a\nb */ create or replace keep k", "-- a\nDROP KEEP k"):
        assert is_about_keeps(text)
    for text in ("CREATE QUERY keep AS", "-- CREATE KEEP\nCREATE QUERY q AS", ""):
        assert not is_about_keeps(text)
