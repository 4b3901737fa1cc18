"""The log of a run's keeps: what is read from it is what a stream in this process answers."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import muntin
from muntin.queries import DropKeep
from muntin.spark.streaming.checkpoint.asks import RETAINED, AskLog, asking_of
from muntin.spark.streaming.problems import CheckpointError
from synopses import log_writer
from synopses.log_writer import KEEP, LogWriter, local

QUESTIONS = (
    "SELECT k, max(v) AS m, sum(v) AS s, count(*) AS n FROM t [RANGE 21] GROUP BY k",
    "SELECT count(*) AS n FROM t [RANGE 60 AS OF WATERMARK] WHERE v > 50",
    "SELECT max(v) AS m FROM t [RANGE 7 ALIGNED] WHERE k = 'b'",
)


def check(asked: Any, batches: int) -> None:
    stream = local(batches)
    for question in QUESTIONS:
        found, wanted = (each.ask(question, timeout="1 minute") for each in (asked, stream))
        assert found.table.to_pylist() == wanted.table.to_pylist(), question
        facts = ("exact", "covers", "as_of", "batch", "rows")
        assert [getattr(found, each) for each in facts] == [
            getattr(wanted, each) for each in facts
        ], question
    with pytest.raises(muntin.QuestionError, match="has rows from"):
        asked.ask("SELECT count(*) AS n FROM t [RANGE 60 AS OF 70]")


def test_a_log_answers_as_a_stream_and_stays_small(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "ck")
    for number in range(60):
        writer.run(number, "a")
        if number == 30:
            # A run that ends and starts again goes on from its files.
            writer.wait()
            writer.close()
            writer = LogWriter(tmp_path / "ck")
    writer.wait()
    check(writer.keeps.asking, 60)
    check(asking_of(tmp_path / "ck"), 60)
    files = list((tmp_path / "ck" / "asks" / "data").glob("*/*"))
    assert any(path.name.startswith("c1-") for path in files)
    assert len(files) < 60
    assert len(list((tmp_path / "ck" / "asks" / "commits").glob("*.json"))) == RETAINED
    assert "entries per row" in writer.keeps.explain()
    writer.close()


def test_a_reader_follows_a_log_that_grows(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "ck")
    with pytest.raises(CheckpointError, match="has not kept a batch yet"):
        asking_of(tmp_path / "ck")
    writer.run(0, "a")
    asked = asking_of(tmp_path / "ck")
    stream = local(1)
    for number in range(1, 45):
        writer.run(number, "a")
        stream.feed(log_writer.batch_of(number))
        if number == 25:
            # The run ends, and starts again; what reads its log goes on.
            writer.wait()
            writer.close()
            writer = LogWriter(tmp_path / "ck")
        if number % 4 == 0:
            for question in QUESTIONS:
                found, wanted = (each.ask(question, timeout="1 minute") for each in (asked, stream))
                assert found.table.to_pylist() == wanted.table.to_pylist(), question
                assert (found.batch, found.covers) == (wanted.batch, wanted.covers)
                assert found.isolation == "lws"
    writer.wait()
    writer.keeps.apply([DropKeep("recent")], None)
    writer.run(45, "a")
    with pytest.raises(muntin.QuestionError, match="nothing is kept of t"):
        asked.ask(QUESTIONS[0])
    writer.close()


def test_a_manifest_may_go_while_a_reader_looks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = LogWriter(tmp_path / "ck")
    for number in range(60):
        writer.run(number, "a")
    listed = AskLog.batches
    monkeypatch.setattr(AskLog, "batches", lambda log: [60, *listed(log)])
    check(asking_of(tmp_path / "ck"), 60)
    writer.close()


NAMED = (
    "CREATE KEEP gram AS SELECT k, max(v), sum(v) FROM t [RANGE 60 SLIDE 2] GROUP BY k"
    " WITH (synopsis = 'timegram', buckets = 16);"
    "CREATE KEEP shared AS SELECT k, max(v + 1) FROM t [RANGE 60 SLIDE 2] GROUP BY k"
    " WITH (synopsis = 'ordered_sharing')"
)


def test_a_log_has_named_synopses(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "ck", NAMED)
    stream = local(0, NAMED)
    for number in range(30):
        writer.run(number, "a")
        stream.feed(log_writer.batch_of(number))
        if number == 20:
            writer.wait()
            writer.close()
            writer = LogWriter(tmp_path / "ck", NAMED)
        if number % 3 == 2:
            writer.wait()
            for call in ("max(v) AS m, sum(v) AS s", "max(v + 1) AS m"):
                sql = f"SELECT {call} FROM t [RANGE {number + 5}] WHERE k = 'b'"
                listed = (stream, writer.keeps.asking, asking_of(tmp_path / "ck"))
                answers = [each.ask(sql, timeout="1 minute") for each in listed]
                assert [each.table for each in answers] == 3 * [answers[0].table]
                assert {each.exact for each in answers} == {answers[0].exact}
                assert not (answers[0].exact and "sum" in call)
    assert "timegram', buckets = 16" in writer.keeps.explain()
    assert "shared, which took" in writer.keeps.explain()
    writer.close()


def test_a_batch_that_is_run_again_is_kept_once(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "ck")
    for number in range(40):
        if number % 3 == 0:
            # The process dies after the manifest, and before Spark has committed the batch.
            writer.run(number, "lost", commits=False)
            writer.close()
            writer = LogWriter(tmp_path / "ck")
        writer.run(number, "again")
    writer.wait()
    check(writer.keeps.asking, 40)
    assert not list((tmp_path / "ck" / "asks" / "data").glob("*/*lost*"))
    writer.close()


def test_keeps_join_and_leave_a_log(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "ck")
    for number in range(30):
        writer.run(number, "a")
    later = "CREATE KEEP later AS SELECT median(v) FROM t [RANGE 20 SLIDE 1]"
    assert writer.keeps.apply(muntin.queries.keep_statements(later), [frozenset({"ts", "v", "k"})])
    for number in range(30, 36):
        writer.run(number, "a")
    writer.wait()
    stream = local(30)
    stream.keep(later)
    for number in range(30, 36):
        stream.feed(log_writer.batch_of(number))
    median = "SELECT median(v) AS m FROM t [RANGE {}]"
    assert writer.keeps.asking.ask(median.format(9)).table == stream.ask(median.format(9)).table
    with pytest.raises(muntin.QuestionError, match="began while the stream ran"):
        writer.keeps.asking.ask(median.format(20))
    with pytest.raises(muntin.QueryError, match="already a keep named recent"):
        writer.keeps.apply(muntin.queries.keep_statements(KEEP), None)
    writer.keeps.apply(muntin.queries.keep_statements("DROP KEEP recent"), None)
    for number in range(36, 36 + RETAINED + 3):
        writer.run(number, "a")
    writer.wait()
    with pytest.raises(muntin.QuestionError):
        writer.keeps.asking.ask("SELECT max(v) AS m FROM t [RANGE 9]")
    assert not list((tmp_path / "ck" / "asks" / "data").glob("recent-*/*"))
    writer.close()


@pytest.mark.parametrize("seed", range(2))
def test_a_killed_process_leaves_a_log_that_goes_on(tmp_path: Path, seed: int) -> None:
    rnd = random.Random(seed)
    program = [sys.executable, log_writer.__file__, str(tmp_path / "ck"), "60"]
    # Killed anywhere in a batch, and again in the batch that is run once more.
    for last in (9, 17, 23):
        with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if int(line) >= last:
                    time.sleep(rnd.random() / 50)
                    process.send_signal(signal.SIGKILL)
                    break
        assert process.returncode == -signal.SIGKILL
    writer = LogWriter(tmp_path / "ck")
    assert writer.last() >= 23
    for number in range(writer.last() + 1, 60):
        writer.run(number, "after")
    writer.wait()
    check(writer.keeps.asking, 60)
    check(asking_of(tmp_path / "ck"), 60)
    writer.close()


def test_streams_of_a_log_are_told_apart(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "ck", streams=("t", "other"))
    writer.run(0, "a")
    writer.close()
    asking = asking_of(tmp_path / "ck")
    question = "SELECT count(*) AS n FROM {} [RANGE 60]"
    assert asking.ask(question.format("T"), timeout="1 minute").table["n"].to_pylist() == [12]
    with pytest.raises(muntin.QuestionError, match="nothing is kept of other"):
        asking.ask(question.format("other"))


def test_what_is_no_log_is_said(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is not the checkpoint of a run"):
        asking_of(tmp_path)
    writer = LogWriter(tmp_path / "ck")
    with pytest.raises(CheckpointError, match="has not kept a batch yet"):
        asking_of(tmp_path / "ck")
    writer.run(0, "a")
    writer.wait()
    writer.close()
    for path in (tmp_path / "ck" / "asks" / "data").glob("*/*"):
        path.unlink()
    with pytest.raises(CheckpointError, match="is missing, which is kept to be asked"):
        asking_of(tmp_path / "ck")


def test_every_bit_of_a_kept_file_counts(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "ck")
    writer.run(0, "a")
    writer.wait()
    writer.close()
    path = next((tmp_path / "ck" / "asks" / "data").glob("*/*"))
    content = path.read_bytes()
    for place in range(0, len(content), 97):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        with pytest.raises(CheckpointError, match=f"{path.name} is damaged") as caught:
            asking_of(tmp_path / "ck")
        assert "drop the keep" in str(caught.value.hint)
    path.write_bytes(content)
    found = asking_of(tmp_path / "ck").ask(QUESTIONS[0], timeout="1 minute")
    assert found.table == local(1).ask(QUESTIONS[0], timeout="1 minute").table


def test_a_start_misses_what_the_last_batch_kept(tmp_path: Path) -> None:
    """Whatever is gone or older than its record is refused, and nothing is removed."""
    writer = LogWriter(tmp_path / "ck")
    for number in range(2):
        writer.run(number, "a", recorded=True)
    writer.wait()
    writer.close()
    asks = tmp_path / "ck" / "asks"
    kept = sorted((asks / "data").glob("*/*"))
    (declared,) = (asks / "keeps").iterdir()
    newest = max((asks / "commits").iterdir())
    for gone, message in ((declared, "keeps is missing"), (newest, f"{newest.name} is missing")):
        content = gone.read_bytes()
        gone.unlink()
        with pytest.raises(CheckpointError, match=message):
            LogWriter(tmp_path / "ck")
        assert sorted((asks / "data").glob("*/*")) == kept
        gone.write_bytes(content)
    LogWriter(tmp_path / "ck").close()
