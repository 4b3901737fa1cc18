"""The socket of a running pipeline: who may use it, and what it says to what it is sent."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from muntin.errors import MuntinError
from muntin.pipelines.control import (
    Commands,
    ControlError,
    ControlServer,
    ask,
    is_running,
    socket_path,
)
from muntin.queries import queries


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    if request["command"] == "fail":
        raise MuntinError("it cannot", hint="try later")
    if request["command"] == "break":
        raise RuntimeError("broken")
    if request["command"] == "list":
        return {"file": None, "streams": []}
    return {"heard": request}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / ".muntin" / ("long" * 40)
    server = ControlServer(folder, answer)
    yield folder
    server.close()
    assert not socket_path(folder).exists()


def test_only_its_owner_may_use_it(checkpoint: Path) -> None:
    path = socket_path(checkpoint)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_questions_and_answers(checkpoint: Path) -> None:
    assert ask(checkpoint, {"command": "é"}) == {"heard": {"command": "é"}}
    with pytest.raises(ControlError, match="it cannot\nHint: try later"):
        ask(checkpoint, {"command": "fail"})
    with pytest.raises(ControlError, match="RuntimeError: broken"):
        ask(checkpoint, {"command": "break"})


def test_nonsense_is_answered_and_does_no_harm(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As clients do: the path itself is longer than an address may be.
    monkeypatch.chdir(checkpoint)
    with socket.socket(socket.AF_UNIX) as caller, caller.makefile("rwb") as lines:
        caller.connect("control/socket")
        for sent, word in (
            (b"nonsense", b"no JSON"),
            (b"[1]", b"not a JSON object"),
            (b"\xff", b"no JSON"),
        ):
            lines.write(sent + b"\n")
            lines.flush()
            assert word in lines.readline()
    assert is_running(checkpoint)


def test_a_socket_that_a_crash_left(checkpoint: Path) -> None:
    # Its process holds the lock no more, or nobody could begin.
    server = ControlServer(checkpoint, answer)
    assert ask(checkpoint, {"command": "again"})
    server.close()
    with pytest.raises(ControlError, match="nothing runs with the checkpoint"):
        ask(checkpoint, {"command": "list"})
    ControlServer(checkpoint, answer).close()


def test_commands_that_are_none() -> None:
    commands = Commands(running=None)  # type: ignore[arg-type]
    with pytest.raises(ControlError, match="did you mean list"):
        commands({"command": "lst"})
    with pytest.raises(ControlError, match="the request has no sql"):
        commands({"command": "add", "sql": 5})


class Replaced:
    """A pipeline with a query, which whatever is added replaces."""

    def __init__(self, seen: int | None, lag: float | None) -> None:
        self.found = "SELECT count(*) AS n FROM s [RANGE '5 minutes' SLIDE '5 minutes']"
        self.seen, self.lag = seen, lag

    def queries(self) -> dict[str, Any]:
        return {"s": queries(f"CREATE QUERY alerts AS {self.found}")}

    def progress(self) -> dict[str, Any]:
        return {"s": SimpleNamespace(seen=self.seen, lag=self.lag)}

    def add(self, sql: str) -> list[str]:
        self.found = sql.partition(" AS ")[2]
        return ["alerts"]


@pytest.mark.parametrize(
    ("seen", "lag", "words"),
    [
        (1_381_152_600_000_000, 9.0, "after 2013-10-07 13:30:00, and"),
        (77, None, "after 77, and"),
        (None, None, "after what has been read, and"),
    ],
)
def test_what_a_replaced_query_answers_is_said(
    tmp_path: Path, muntin: Callable[..., Any], seen: int | None, lag: float | None, words: str
) -> None:
    running: Any = Replaced(seen, lag)
    server = ControlServer(tmp_path, Commands(running))
    same = f"CREATE OR REPLACE QUERY alerts AS {running.found}"
    assert muntin("add", same, "--checkpoint", str(tmp_path))[1] == "alerts joined\n"
    other = same.replace("count(*)", "max(vol)")
    code, shown, _ = muntin("add", other, "--checkpoint", str(tmp_path))
    server.close()
    assert (code, shown.startswith("alerts replaced: the one before answers nothing more")) == (
        0,
        True,
    )
    assert words in shown


def test_the_one_that_runs_here_is_found(
    tmp_path: Path, checkpoint: Path, muntin: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, said = muntin("list")
    assert (code, "nothing runs in this folder" in said) == (1, True)
    monkeypatch.chdir(tmp_path)
    assert muntin("list", "--format", "json")[0] == 0
    (tmp_path / ".muntin" / "other" / "control").mkdir(parents=True)
    other = ControlServer(checkpoint.parent / "other", answer)
    code, _, said = muntin("list")
    assert (code, "several pipelines run here" in said) == (1, True)
    other.close()
    assert muntin("list")[0] == 0
