"""Whatever file of a checkpoint or a sink is damaged: the same results, or a clear refusal."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from muntin import sinks
from muntin.api import run
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.checkpoint.asks import AskLog
from muntin.spark.streaming.checkpoint.audit import Delivery
from muntin.spark.streaming.checkpoint.checkpoint import Checkpoint, load_table
from muntin.spark.streaming.driver.batches import BatchRunner, Limits
from muntin.spark.streaming.problems import CheckpointError, RunError
from muntin.testing import assert_same_rows, trades
from spark.damage import BATCHES, KINDS, Damage, Victim, outcome_of
from spark.folder_stream import FolderStream, expected, parts

COUNTS = """CREATE QUERY counts AS SELECT symbol, count(*) AS n
  FROM trades [RANGE '10 minutes' SLIDE '3 minutes'] GROUP BY symbol;"""
LAST = BATCHES - 2


@pytest.fixture(scope="module")
def victim(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Victim:
    made = Victim(tmp_path_factory.mktemp("victim"), spark)
    made.prepare()
    return made


@pytest.fixture(scope="module")
def wanted(victim: Victim) -> tuple[object, ...]:
    victim.restore()
    victim.go()
    return victim.everything()


def read_all(victim: Victim) -> tuple[object, ...]:
    """All that a start reads of the checkpoint, and that anybody reads of the results."""
    checkpoint = Checkpoint(victim.folder / "ck", Buckets(2, 4))
    try:
        checkpoint.check()
        changes, outcome = checkpoint.changes(), checkpoint.records.before(LAST + 1)
        assert changes is not None
        (stream,) = outcome.streams
        assert stream.state is not None
        plan = checkpoint.plan(stream.state)
        tables = [load_table(checkpoint.table_path(name)) for name in changes.tables.values()]
        for part, known in (("out", outcome.delivered), ("aside", outcome.set_aside)):
            sink = sinks.parquet(victim.folder / part)
            Delivery(sink, dict(known)).resume(LAST, checkpoint.run, accepts_gaps=False)
        names = [final.name for final in plan.finals]
        log = AskLog(checkpoint.root, checkpoint.run)
        kept = log.resume(checkpoint.records, checkpoint.last_committed()), log.declared()
        given = checkpoint.run, checkpoint.buckets, changes, outcome, names, tables
        return *given, kept, *victim.everything()
    finally:
        checkpoint.release()


def is_for_spark(damage: Damage) -> bool:
    """Only Spark can tell; a batch whose commit is gone is run again."""
    return "/state/" in damage.path or (
        damage.kind == "deleted" and damage.path.endswith(f"/commits/{LAST}")
    )


def test_every_damage_to_every_file_is_seen(
    victim: Victim, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A manifest that is not there is looked for again and again: nobody is about to write it.
    monkeypatch.setattr("muntin.sinks.files.log._PAUSE", 0)
    victim.restore()
    sound = read_all(victim)
    found = {}
    for damage in victim.damages():
        if not is_for_spark(damage):
            victim.restore()
            victim.strike(damage)
            told: list[object] = []
            found[damage] = outcome_of(
                lambda told=told: told.append(read_all(victim)), lambda told=told: told[0] == sound
            )
    assert len(found) > 150
    wrong = {
        str(damage): told
        for damage, told in found.items()
        if not told.startswith(("refused", "same"))
    }
    assert not wrong
    # What the next batch starts from is refused whatever happens to it.
    names = [f"{LAST:020d}.outcome.json", f"{LAST:020d}.record.json", "muntin.json", "/changes/"]
    names += [f"/asks/commits/{LAST:020d}.json", "/asks/keeps/", "/asks/data/"]
    ours = [damage for damage in found if any(name in damage.path for name in names)]
    assert {found[damage].split(":")[0] for damage in ours} == {"refused"}
    assert {damage.kind for damage in ours} == {*KINDS}


@pytest.mark.parametrize(
    ("path", "kind", "words"),
    [
        (f"spark/state/0/0/{LAST + 1}.delta", "truncated", "refused"),
        (f"spark/state/0/1/{LAST + 1}.delta", "altered", "refused"),
        (f"spark/commits/{LAST}", "deleted", "same"),
        (f"spark/state/0/1/{LAST + 1}.delta", "swapped", r"refused: the state of bucket \d"),
    ],
)
def test_spark_starts_again_after_damage(
    victim: Victim, wanted: tuple[object, ...], path: str, kind: str, words: str
) -> None:
    victim.restore()
    victim.strike(Damage(f"ck/{path}", kind))
    told = outcome_of(victim.go, lambda: victim.everything() == wanted)
    assert re.match(words, told), told


def test_a_batch_that_is_not_the_same_is_refused(spark: Any, tmp_path: Path) -> None:
    """Spark's notes of the last batch are lost and more files are there; then its file changes."""
    stream = FolderStream(tmp_path / "in")
    batches = parts(trades(3000, seed=3, seconds=5000), 3)

    def go() -> None:
        run(
            stream.frame(spark),
            COUNTS,
            sink=sinks.parquet(tmp_path / "out"),
            checkpoint=tmp_path / "ck",
            trigger="available_now",
            partitions=1,
        ).await_termination(240)

    for batch in batches[:2]:
        stream.put(batch)
    go()
    committed = sinks.read(tmp_path / "out")["counts"]
    logs = tmp_path / "ck" / "spark"
    shutil.copytree(logs / "offsets", tmp_path / "offsets")
    stream.put(batches[2])
    for log in ("offsets", "commits"):
        for name in ("1", ".1.crc"):
            (logs / log / name).unlink()
    for _ in range(2):
        words = r'batch 1 was planned before, up to offset {"logOffset":1} .* has {"logOffset":2}'
        with pytest.raises(CheckpointError, match=words) as raised:
            go()
        assert "start with an empty checkpoint" in str(raised.value.hint)
        assert sinks.read(tmp_path / "out")["counts"] == committed
    shutil.rmtree(logs / "offsets")
    shutil.copytree(tmp_path / "offsets", logs / "offsets")
    file = stream.folder / "00001.parquet"
    shutil.move(file, tmp_path / "kept.parquet")
    stream.count = 1
    stream.put(batches[1].slice(10))
    repeated = r"batch 1 was run before, .* rows so far: 2000, 1990 now"
    with pytest.raises(RunError, match=repeated) as caught:
        go()
    assert "a socket, has only the last choice" in str(caught.value.hint)
    assert sinks.read(tmp_path / "out")["counts"] == committed
    shutil.copy2(tmp_path / "kept.parquet", file)
    go()
    assert_same_rows(
        sinks.read(tmp_path / "out")["counts"], expected(batches, [COUNTS] * 3)["counts"]
    )


def test_a_batch_that_has_begun_is_not_closed_over(victim: Victim) -> None:
    """Its results may be committed: the answers of open windows must not take their place."""
    victim.restore()
    victim.strike(Damage(f"ck/spark/commits/{LAST}", "deleted"))
    checkpoint = Checkpoint(victim.folder / "ck", Buckets(2, 4))
    try:
        runner: Any = BatchRunner(checkpoint, Any, sinks.memory(), None, Limits())
        with pytest.raises(RunError, match=f"batch {LAST} had begun"):
            runner.finish(None, None)
    finally:
        checkpoint.release()


def test_a_checkpoint_of_the_format_before_is_refused(tmp_path: Path) -> None:
    (tmp_path / "muntin.json").write_text('{"format": 1, "run": "r", "status": "open"}')
    with pytest.raises(
        CheckpointError, match=r"has format 1, and Muntin .* reads formats 5 and 6"
    ) as old:
        Checkpoint(tmp_path, Buckets(1, 1))
    assert "start with an empty checkpoint" in str(old.value.hint)


def test_a_crash_before_the_first_batch_leaves_a_checkpoint_to_start_with(tmp_path: Path) -> None:
    Checkpoint(tmp_path, Buckets(1, 4)).release()
    (tmp_path / "muntin.json").unlink()
    for name in ("batches", "plans", "tables", "state"):
        shutil.rmtree(tmp_path / name)
    (tmp_path / ".tmp-0").touch()
    again = Checkpoint(tmp_path, Buckets(1, 4))
    again.check()
    assert again.changes() is None
    again.release()


def test_a_start_that_is_refused_leaves_all_files_of_state(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, Buckets(1, 4))
    offsets = tmp_path / "spark" / "offsets" / "5"
    offsets.parent.mkdir(parents=True)
    offsets.write_text('v1\n{}\n{"logOffset":5}')
    (offsets.parent / "4").write_text('v1\n{}\n{"logOffset":4}')
    (tmp_path / "spark" / "metadata").write_text('{"id":"one"}')
    files = [checkpoint.states.file(batch, 0) for batch in range(6)]
    for path in files:
        path.touch()
    checkpoint.release()
    # As if the commits were gone: no batch seems to be committed.
    again = Checkpoint(tmp_path, Buckets(1, 4))
    with pytest.raises(CheckpointError, match="do not belong together"):
        again.check()
    again.release()
    assert all(path.exists() for path in files)
    shutil.rmtree(tmp_path / "spark")
    fresh = Checkpoint(tmp_path, Buckets(1, 4))
    fresh.check()
    fresh.release()
    assert not any(path.exists() for path in files)
