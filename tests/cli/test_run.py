"""``muntin run``, ``add``, ``drop`` and ``list`` through their real entry points, over a crash."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest

from muntin import sinks
from muntin.cli.main import main
from muntin.pipelines.control import ControlError, ask
from muntin.spark.environment.java import find_java
from muntin.spark.streaming.problems import RunError
from muntin.testing import assert_same_rows, trades
from quick_jvm import OPTION, VALUE
from spark.folder_stream import FolderStream, expected, parts

MUNTIN = str(Path(sys.executable).parent / "muntin")
PATIENCE = 240
FILE = """\
CREATE STREAM trades (ts TIMESTAMP, symbol STRING, price DOUBLE, vol BIGINT, exchange STRING)
  WITH (format = 'parquet', path = '${folder}', files_per_batch = 1);
CREATE SINK out WITH (format = 'parquet', path = 'out');
"""
TOTAL = """CREATE QUERY total AS
  SELECT sum(price * vol) AS value FROM trades [RANGE '15 minutes' SLIDE '5 minutes'];"""
GONE = "CREATE QUERY gone AS SELECT count(*) AS n FROM trades [RANGE '5 minutes' SLIDE '1 minute'];"
BY_SYMBOL = """CREATE QUERY by_symbol AS SELECT symbol, max(vol) AS top
  FROM trades [RANGE '10 minutes' SLIDE '5 minutes'] GROUP BY symbol;"""


Muntin = Callable[..., tuple[int, str, str]]


class Command:
    """``muntin run`` as a process of its own, on a pipe or on a terminal."""

    def __init__(self, folder: Path, *options: str, terminal: bool = False) -> None:
        self.folder, self.output = folder, ""
        master, slave = pty.openpty() if terminal else os.pipe()
        arguments = [MUNTIN, "run", "file.sql", "--checkpoint", "ck", "--set", "folder=in"]
        arguments += ["--conf", f"{OPTION}={VALUE}"]
        self.process = subprocess.Popen(
            [*arguments, *options],
            cwd=folder,
            stdout=slave,
            stderr=slave,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "COLUMNS": "80", "LINES": "24", "TERM": "xterm"},
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, args=(master,), daemon=True)
        self._reader.start()

    def _read(self, source: int) -> None:
        while True:
            try:
                found = os.read(source, 1 << 16)
            except OSError:
                # A terminal ends with an error, a pipe with nothing.
                found = b""
            if not found:
                os.close(source)
                return
            self.output += found.decode(errors="replace")

    def wait_for_rows(self, rows: int) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                (stream,) = ask(self.folder / "ck", {"command": "list"})["streams"]
            except ControlError:
                stream = {"rows": -1}
            if stream["rows"] >= rows:
                return stream
            time.sleep(0.05)
        raise AssertionError(f"{self.process.poll()}: {self.output}")

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        code = self.process.wait(timeout=PATIENCE)
        self._reader.join(timeout=PATIENCE)
        return code


@pytest.fixture
def started() -> Iterator[Callable[..., Command]]:
    commands: list[Command] = []

    def start(*arguments: Any, **options: Any) -> Command:
        commands.append(Command(*arguments, **options))
        return commands[-1]

    yield start
    for command in commands:
        if command.process.poll() is None:
            command.end(signal.SIGKILL)


@pytest.mark.spark
def test_a_crash_loses_nothing(
    tmp_path: Path, started: Callable[..., Command], muntin: Muntin, monkeypatch: Any
) -> None:
    pytest.importorskip("pyspark")
    if find_java() is None:
        pytest.skip("no Java runtime")
    # Longer than the address of a socket may be.
    folder = tmp_path / "a" / ("deep" * 30)
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    Path("file.sql").write_text(FILE + TOTAL + GONE)
    Path("add.sql").write_text(BY_SYMBOL)
    batches = parts(trades(2000, seed=5, seconds=6000), 4)
    stream = FolderStream(folder / "in")
    stream.put(batches[0])

    first = started(folder, "--log-format", "json")
    first.wait_for_rows(500)
    assert muntin("add", "add.sql", "--checkpoint", "ck")[:2] == (0, "by_symbol joined\n")
    code, shown, _ = muntin("drop", "GONE", "--checkpoint", "ck", "--format", "json")
    assert (code, json.loads(shown)) == (0, {"dropped": ["GONE"]})
    bad = TOTAL.replace("total", "other").replace("vol)", "vl)")
    code, _, said = muntin("add", bad, "--checkpoint", "ck")
    assert (code, "did you mean vol?" in said) == (1, True)
    code, _, said = muntin("add", TOTAL, "--checkpoint", "ck")
    assert (code, "there is already a query named total" in said) == (1, True)
    stream.put(batches[1])
    first.wait_for_rows(1000)
    assert first.end(signal.SIGKILL) == -signal.SIGKILL
    events = [json.loads(line) for line in first.output.splitlines() if line.startswith("{")]
    assert "trades" in [one["stream"] for one in events if one["event"] == "progress"]
    code, _, said = muntin("list", "--checkpoint", "ck")
    assert (code, "nothing runs with the checkpoint ck" in said) == (1, True)

    again = started(folder, "--plot", "charts", terminal=True)
    for batch in batches[2:]:
        stream.put(batch)
    found = again.wait_for_rows(2000)
    assert found["rows"] == 2000
    code, shown, _ = muntin("list", "--checkpoint", "ck")
    assert (code, shown.splitlines()[0]) == (
        0,
        "stream trades: 2 queries, 2,000 rows, 0 late, 0 bad",
    )
    assert again.end(signal.SIGINT) == 128 + signal.SIGINT
    assert "last result" in again.output
    assert "stopped; start it again to resume" in again.output
    assert (folder / "charts" / "total.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "charts" / "by_symbol.png").exists()
    assert "Traceback" not in again.output
    assert "\tat " not in again.output
    sets = [TOTAL + GONE, TOTAL + BY_SYMBOL, TOTAL + BY_SYMBOL, TOTAL + BY_SYMBOL]
    for name, table in expected(batches, sets).items():
        assert_same_rows(sinks.read(folder / "out")[name], table)


class FakeRun:
    """A pipeline that fails as soon as it is looked at."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint, self.is_stopped = checkpoint, False

    def poll(self) -> bool:
        raise RunError("the disk is full", hint="free some space")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.is_stopped = True


def test_a_run_that_fails_ends_with_three(
    tmp_path: Path, muntin: Muntin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("file.sql").write_text(FILE + TOTAL)
    fake = FakeRun(tmp_path)
    monkeypatch.setattr("muntin.cli.run.quiet_session", lambda _: SimpleNamespace())
    monkeypatch.setattr("muntin.spark.stop", lambda _: None)
    given: dict[str, Any] = {}
    monkeypatch.setattr(
        "muntin.pipelines.runner.run", lambda *_, **options: given.update(options) or fake
    )
    arguments = ("run", "file.sql", "--set", "folder=in")
    code, _, said = muntin(*arguments)
    assert (code, fake.is_stopped) == (3, True)
    assert (given["on_gap"], given["once"]) == ("fail", False)
    muntin(*arguments, "--once", "--on-gap", "accept")
    assert (given["on_gap"], given["once"]) == ("accept", True)
    assert said.endswith("error: the disk is full\nHint: free some space\n")
    monkeypatch.setattr("muntin.pipelines.runner.run", lambda *_, **__: fake.poll())
    assert muntin(*arguments)[0] == 3
    monkeypatch.setattr(sys, "argv", ["muntin", "--debug", *arguments])
    with pytest.raises(Exception, match="the disk is full"):
        main()


def test_what_cannot_be_run(tmp_path: Path, muntin: Muntin, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("muntin.cli.run.quiet_session", lambda _: SimpleNamespace())
    monkeypatch.setattr("muntin.spark.stop", lambda _: None)
    Path("file.sql").write_text(FILE + TOTAL)
    code, _, said = muntin("run", "file.sql")
    assert (code, "nothing says what ${folder} is" in said) == (1, True)
    code, _, said = muntin("run", "file.sql", "--set", "folder=in", "--conf", "memory")
    assert (code, "--conf memory is not of the form name=value" in said) == (1, True)
    code, _, said = muntin("run", "file.sql", "--set", "folder=in")
    assert (code, "there is nothing at" in said) == (1, True)
    assert not Path(".muntin/file/control").exists()
    Path("rate.sql").write_text("CREATE STREAM trades WITH (format = 'rate');" + TOTAL)
    code, _, said = muntin("run", "rate.sql", "--once")
    assert (code, "has nothing to process once" in said) == (1, True)
    Path("none.sql").write_text("CREATE STREAM trades WITH (format = 'rate');")
    code, _, said = muntin("run", "none.sql")
    assert (code, "there are no queries to run" in said) == (1, True)


def test_a_checkpoint_that_cannot_be_written_is_said_before_spark_starts(
    tmp_path: Path, muntin: Muntin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delattr("muntin.cli.run.quiet_session")
    Path("rate.sql").write_text("CREATE STREAM trades WITH (format = 'rate');" + TOTAL)
    Path("ck").write_text("a file, where a folder is wanted")
    code, _, said = muntin("run", "rate.sql", "--checkpoint", "ck")
    where = tmp_path / "ck"
    assert code == 1
    assert said == (
        f"error: cannot write to the checkpoint {where}: File exists\n"
        "Hint: choose a folder, not a file\n"
    )


@pytest.mark.parametrize("ends", ["the signal", "the end of Spark"])
def test_a_signal_while_spark_starts(
    tmp_path: Path, muntin: Muntin, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    """What was being started is ended, and what it says about that is not shown."""
    monkeypatch.chdir(tmp_path)
    Path("rate.sql").write_text("CREATE STREAM trades WITH (format = 'rate');" + TOTAL)
    processes = []

    def start(_: object) -> None:
        process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        processes.append(process)
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(PATIENCE)
        except SystemExit as end:
            if ends == "the signal":
                raise
            process.kill()
            raise RunError("the JVM has ended", hint="look at its frames") from end

    monkeypatch.setattr("muntin.cli.run.quiet_session", start)
    before = signal.getsignal(signal.SIGTERM)
    code, _, said = muntin("run", "rate.sql")
    assert (code, said.splitlines()[1:]) == (128 + signal.SIGTERM, ["stopped"])
    assert signal.getsignal(signal.SIGTERM) is before
    with processes[0] as process:
        assert process.wait(PATIENCE) == -signal.SIGKILL
