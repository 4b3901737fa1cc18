"""State in files: whichever workers and attempts there are, the answers of the local engine.

No Spark is needed here: buckets are called as its tasks call them, with what it would hand over.
"""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from engine.rich_queries import rich_queries, rich_stream
from muntin.plan import SharedPlan
from muntin.planner import build_plan
from muntin.queries import queries
from muntin.spark.streaming.problems import CheckpointError
from muntin.spark.streaming.tasks import head
from muntin.spark.streaming.tasks.carrier import StateFolder, StateWriter, Whose
from muntin.streams import LiveEngine
from spark.bucket_workers import PLANS, Cluster, text

# How news are weighed outside of tests.
FEW = [(name, getattr(head, name)) for name in ("_LEAST", "_FEWEST", "_FAN_OUT", "_RECENT")]


@pytest.fixture(autouse=True)
def few_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bases, and pieces that are put together, come after a few batches already."""
    PLANS.clear()
    monkeypatch.setattr(head, "_LEAST", 600)
    monkeypatch.setattr(head, "_FEWEST", 2)
    monkeypatch.setattr(head, "_FAN_OUT", 3)
    monkeypatch.setattr(head, "_RECENT", 1)


@pytest.mark.parametrize("seed", range(8))
def test_workers_take_turns_and_queries_change(seed: int, tmp_path: Path) -> None:
    rng = random.Random(7300 + seed)
    pool = [q for q in rich_queries(rng, most=8) if "ROWS" not in q.sql and "WATTR" not in q.sql]
    asked = [next(iter(queries(q.sql.removesuffix(" EMIT EMPTY")))) for q in pool]
    table = rich_stream(rng, rows=150)
    lateness = rng.choice([0, 5, 30])
    first = build_plan(asked[: 1 + len(asked) // 2], table.schema, "t")
    engine = LiveEngine(first, lateness)
    cluster = Cluster(tmp_path, rng, lateness, workers=2)
    waiting = asked[1 + len(asked) // 2 :]
    for batch in table.to_batches(max_chunksize=rng.choice([3, 6])):
        if waiting and rng.random() < 0.15:
            engine.add(waiting.pop())
        elif len(engine.plan.finals) > 1 and rng.random() < 0.08:
            engine.remove(rng.choice(engine.plan.finals).name)
        plan = engine.plan
        found = cluster.run(plan, batch, cache=rng.choice([0, 64, 64]))
        assert text(found) == text(engine.feed(batch))
    assert text(cluster.close()) == text(engine.close())


QUERY = "CREATE QUERY q AS SELECT g, sum(v) AS s, max(v) AS m, last(v) AS l, count(*) AS n"
SCHEMA = pa.schema({"t": pa.int64(), "g": pa.string(), "v": pa.float64()})


def _second(tick: int, groups: int, rng: random.Random) -> pa.RecordBatch:
    """A row of each group, at one tick."""
    values = [round(rng.uniform(-9, 9), 2) for _ in range(groups)]
    columns = [[tick] * groups, [f"group {number}" for number in range(groups)], values]
    return pa.record_batch(columns, schema=SCHEMA)


# Parts that keep all values, texts among them, and registers.
VALUES = """CREATE QUERY q AS SELECT g, count(DISTINCT v) AS d, median(v) AS m, top_k(g, 2) AS t,
  approx_count_distinct(v) AS a"""


def _plan(reach: int, query: str = QUERY, slide: int = 1) -> SharedPlan:
    sql = f"{query} FROM s [RANGE {reach} SLIDE {slide}] GROUP BY g"
    return build_plan(queries(sql), SCHEMA, "t")


@pytest.mark.parametrize("cache", [0, 64])
def test_stretches_are_put_together_and_forgotten(cache: int, tmp_path: Path) -> None:
    rng = random.Random(11)
    plan = _plan(60)
    engine, cluster = LiveEngine(plan, 0), Cluster(tmp_path, rng, 0, workers=2)
    levels, kept = set(), []
    for tick in range(150):
        # Some groups fall silent for longer than the window, and come back.
        batch = _second(tick, 9 if tick % 90 < 20 else 4, rng)
        assert text(cluster.run(plan, batch, cache=cache)) == text(engine.feed(batch))
        heads = [head.Head.of_bytes(held[3]) for held in cluster.states.values()]
        levels |= {piece.level for each in heads for log in each.stretches for piece in log}
        kept.append(len(cluster.files()))
    assert levels >= {0, 1}
    assert max(kept) < 60
    assert text(cluster.close()) == text(engine.close())


def test_values_are_in_stretches_and_not_in_bases(tmp_path: Path) -> None:
    rng = random.Random(12)
    plan = _plan(24, VALUES, 8)
    engine, cluster = LiveEngine(plan, 0), Cluster(tmp_path, rng, 0, workers=2)
    levels = set()
    for tick in range(40):
        batch = _second(tick, 4, rng)
        found = cluster.run(plan, batch, cache=rng.choice([0, 64]))
        assert text(found) == text(engine.feed(batch))
        heads = [head.Head.of_bytes(held[3]) for held in cluster.states.values()]
        levels |= {piece.level for each in heads for log in each.stretches for piece in log}
    assert 0 in levels
    assert text(cluster.close()) == text(engine.close())


def test_a_batch_writes_its_news_however_much_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in FEW:
        monkeypatch.setattr(head, name, value)
    written = {}
    for reach in (10, 400):
        rng = random.Random(5)
        plan, cluster = _plan(reach), Cluster(tmp_path / str(reach), rng, 0, workers=2)
        filled = pa.Table.from_batches([_second(tick, 20, rng) for tick in range(reach)])
        cluster.run(plan, filled.combine_chunks().to_batches()[0])
        before = set(cluster.folder.iterdir())
        for tick in range(reach, reach + 40):
            cluster.run(plan, _second(tick, 20, rng))
        fresh = set(cluster.folder.iterdir()) - before
        heads = sum(len(held[3]) for held in cluster.states.values())
        written[reach] = sum(path.stat().st_size for path in fresh) + 40 * heads
    assert written[400] < 1.3 * written[10]


@pytest.mark.parametrize("kind", ["missing", "cut off", "altered", "exchanged"])
def test_a_file_that_is_not_as_it_was_is_named_with_bucket_and_batch(
    kind: str, tmp_path: Path
) -> None:
    rng = random.Random(3)
    plan, cluster = _plan(20), Cluster(tmp_path, rng, 0, workers=1)
    for tick in range(30):
        cluster.run(plan, _second(tick, 9, rng))
    path = StateFolder(tmp_path, "run").file(max(cluster.files()), 0)
    content = path.read_bytes()
    path.unlink()
    other = StateFolder(tmp_path, "run").file(min(cluster.files()), 0)
    altered = bytearray(content)
    altered[len(content) // 4] ^= 1
    found = {"cut off": content[:-9], "altered": altered, "exchanged": other.read_bytes()}
    if kind in found:
        path.write_bytes(found[kind])
    with pytest.raises(CheckpointError, match=r"bucket \d, which batch 30 starts from") as error:
        cluster.close()
    assert path.name in error.value.message
    assert error.value.hint


def test_files_are_dropped_once_no_state_names_them(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path, "run")
    for batch in range(6):
        for partition in range(2):
            writer = StateWriter(folder, batch, partition)
            writer.put("0/news", bytes(batch))
            writer.close()
    (tmp_path / f".tmp-{folder.file(7, 0).name}-{'a' * 32}").touch()
    folder.drop({(1, 0), (3, 1)}, upto=3)
    left = {(batch, partition) for batch in range(6) for partition in range(2)
            if folder.file(batch, partition).exists()}  # fmt: skip
    assert left == {(1, 0), (3, 1), (4, 0), (4, 1), (5, 0), (5, 1)}
    folder.drop_after(4)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(folder.file(*each).name for each in left if each[0] < 5)
    assert bytes(folder.get(3, 1, "0/news", Whose(0, 4))) == bytes(3)


def test_an_attempt_that_comes_to_no_end_leaves_no_file(tmp_path: Path) -> None:
    writer = StateWriter(StateFolder(tmp_path, "run"), 0, 0)
    writer.put("0/news", b"news")
    writer.abandon()
    assert not list(tmp_path.iterdir())
