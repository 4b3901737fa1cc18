"""Questions to a run on Spark: the answers are those of a stream in this process, bit for bit."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import muntin
from muntin.spark.streaming.checkpoint.asks import AskLog, asking_of
from muntin.spark.streaming.driver.handle import Run
from muntin.streams import Stream
from muntin.testing import trades
from spark.folder_stream import PATIENCE, FolderStream, parts, wait_for_batches

QUERY = """CREATE QUERY volume AS SELECT symbol, sum(vol) AS vol
  FROM trades [RANGE '10 minutes' SLIDE '5 minutes'] GROUP BY symbol"""
RECENT = """CREATE KEEP recent AS
  SELECT symbol, max(price), min(price), min(vol), max(vol), sum(vol), avg(price), count(*)
  FROM trades [RANGE '20 minutes' SLIDE '10 seconds'] GROUP BY symbol CUT (vol > 1000)"""
NAMED = """CREATE KEEP gram AS SELECT max(price * 2), avg(price * 2) FROM trades
  [RANGE '20 minutes' SLIDE '1 minute'] WITH (synopsis = 'timegram', buckets = 256);
CREATE KEEP shared AS SELECT symbol, min(price * 3) FROM trades
  [RANGE '20 minutes' SLIDE '10 seconds'] GROUP BY symbol WITH (synopsis = 'ordered_sharing')"""
LATER = (
    "CREATE KEEP later AS SELECT median(price) FROM trades [RANGE '20 minutes' SLIDE '1 minute']"
)
QUESTIONS = [
    "SELECT symbol, max(price) AS high, sum(vol) AS vol FROM trades [RANGE '7 minutes'] GROUP BY 1",
    "SELECT avg(price) AS mean FROM trades [RANGE '15 minutes' AS OF WATERMARK] WHERE vol > 1000",
    "SELECT count(*) AS n FROM trades [RANGE '20 minutes' ALIGNED] WHERE symbol = 'A'",
    "SELECT max(price * 2) AS high, avg(price * 2) AS mean FROM trades [RANGE '9 minutes']",
    "SELECT min(price * 3) AS low FROM trades [RANGE '9 minutes'] WHERE symbol = 'A'",
]


def local(batches: list[Any], joins: int) -> Stream:
    """A stream in this process with the same history: a keep joins after some batches."""
    stream = muntin.stream(
        QUERY, batches[0].schema, lateness="1 minute", max_ahead=None, keeps=[RECENT, NAMED]
    )
    for number, batch in enumerate(batches):
        if number == joins:
            stream.keep(LATER)
        stream.feed(batch)
    return stream


def check(asked: Any, stream: Stream, questions: list[str]) -> None:
    for question in questions:
        found, wanted = (each.ask(question, timeout="1 minute") for each in (asked, stream))
        assert found.table.to_pylist() == wanted.table.to_pylist(), question
        assert (found.exact, found.covers, found.as_of) == (
            wanted.exact,
            wanted.covers,
            wanted.as_of,
        )
        assert (found.batch, found.rows) == (wanted.batch, wanted.rows)


def started(spark: Any, folder: FolderStream, tmp_path: Path) -> Run:
    return muntin.run(
        folder.frame(spark),
        QUERY,
        lateness="1 minute",
        max_ahead=None,
        trigger="available_now",
        checkpoint=tmp_path / "ck",
        sink=muntin.sinks.parquet(tmp_path / "out"),
        partitions=2,
        buckets=4,
        keeps=[RECENT, NAMED],
    )


def test_a_run_answers_as_a_stream_of_this_process(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = parts(trades(6000, symbols=9, seconds=5400), 12)
    folder = FolderStream(tmp_path / "in")
    for batch in batches[:4]:
        folder.put(batch)
    first = started(spark, folder, tmp_path)
    first.await_termination(120)
    assert [keep.name for keep in first.keeps()] == ["recent", "gram", "shared"]
    check(first, local(batches[:4], 99), QUESTIONS)
    first.stop()

    # Another process reads the log of a run that is stopped, or goes on.
    check(asking_of(tmp_path / "ck"), local(batches[:4], 99), QUESTIONS)

    # A crash between a batch's results and what it keeps: the batch is run again.
    for batch in batches[4:]:
        folder.put(batch)
    write, calls = AskLog.write, []

    def fail(log: AskLog, manifest: Any) -> None:
        calls.append(manifest.batch)
        if manifest.batch == 6:
            raise OSError("no space left")
        write(log, manifest)

    monkeypatch.setattr(AskLog, "write", fail)
    broken = started(spark, folder, tmp_path)
    with pytest.raises(muntin.MuntinError, match="no space left"):
        broken.await_termination(120)
    monkeypatch.setattr(AskLog, "write", write)
    assert calls == [4, 5, 6]

    later = started(spark, folder, tmp_path)
    later.await_termination(120)
    check(later, local(batches, 99), QUESTIONS)
    later.stop()
    files = [path for path in (tmp_path / "ck" / "asks" / "data").glob("*/*") if path.is_file()]
    manifest = AskLog(tmp_path / "ck", later._checkpoint.run).newest()
    assert manifest is not None
    assert manifest.batch == 11
    assert {file.name for file in manifest.keeps[0].files} <= {path.name for path in files}


def test_a_keep_that_joins_at_a_restart_leaves_others_as_they_are(
    spark: Any, tmp_path: Path
) -> None:
    batches = parts(trades(3000, symbols=5, seconds=5400), 6)
    folder = FolderStream(tmp_path / "in")
    for batch in batches[:3]:
        folder.put(batch)
    run = started(spark, folder, tmp_path)
    run.await_termination(120)
    run.stop()
    for batch in batches[3:]:
        folder.put(batch)
    again = muntin.run(
        folder.frame(spark),
        QUERY,
        lateness="1 minute",
        max_ahead=None,
        trigger="available_now",
        checkpoint=tmp_path / "ck",
        sink=muntin.sinks.parquet(tmp_path / "out"),
        partitions=2,
        buckets=4,
        keeps=[RECENT, LATER],
    )
    again.await_termination(120)
    check(again, local(batches, 3), QUESTIONS)
    assert "entries per row" in again.explain_keeps()
    again.stop()


def test_keeps_join_and_leave_a_run_beside_queries_over_rows(spark: Any, tmp_path: Path) -> None:
    batches = parts(trades(3000, symbols=5, seconds=5400), 6)
    median = "SELECT median(price) AS m FROM trades [RANGE '9 minutes' ALIGNED]"
    seen = "CREATE QUERY seen AS SELECT DISTINCT symbol FROM trades [RANGE '10 minutes']"
    folder = FolderStream(tmp_path / "in")
    with muntin.run(
        {"trades": folder.frame(spark)},
        [QUERY.replace("sum(vol) AS vol", "count(*) AS n"), seen],
        lateness="1 minute",
        max_ahead=None,
        checkpoint=tmp_path / "ck",
        partitions=1,
        buckets=2,
    ) as run:
        for number, batch in enumerate(batches):
            if number == 0:
                # Both read columns that no query reads: Spark's query starts again with them.
                run.keep([RECENT, NAMED])
            if number == 3:
                run.keep(LATER)
                with pytest.raises(muntin.QueryError, match="already a keep named later"):
                    run.keep(LATER)
            folder.put(batch)
            wait_for_batches(run, number + 1)
        deadline = time.monotonic() + PATIENCE
        while run.ask(QUESTIONS[0], timeout="1 minute").batch < len(batches):
            assert time.monotonic() < deadline
        check(run, local(batches, 3), [*QUESTIONS, median])
        run.drop_keep("recent")
        folder.put(batches[-1])
        wait_for_batches(run, 7)
    assert [keep.name for keep in run.keeps()] == ["gram", "shared", "later"]
    with pytest.raises(muntin.QuestionError):
        run.ask(QUESTIONS[0])
    assert run.progress().results["seen"] > 0
    with pytest.raises(muntin.MuntinError, match="has ended"):
        run.keep(RECENT)
