"""Kills a stream's processes again and again, and checks that its output shows nothing of it.

Run it with ``python tests/spark/chaos.py SEEDS [FIRST]``; `test_killed_drivers` has a few. One seed
in five runs on a cluster with speculation.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

TESTS = Path(__file__).parent.parent
BATCHES, MANY_BATCHES = 6, 12
PARTITIONS = 2
# One seed in so many runs on a cluster with speculation; its drivers have so many seconds, since
# every batch waits for a task that lags.
SPECULATIVE = 5
PATIENCE = 400
QUESTIONS = (
    (
        "SELECT symbol, count(*) AS n, sum(vol) AS vol, max(price) AS high, median(vol) AS middle"
        " FROM trades [RANGE '7 minutes' ALIGNED] GROUP BY symbol"
    ),
    (
        "SELECT count(DISTINCT vol) AS n FROM trades [RANGE '19 minutes' AS OF WATERMARK]"
        " WHERE vol > 500"
    ),
    "SELECT max(price) AS high, avg(price) AS mean FROM trades [RANGE '15 minutes']",
)


@dataclass(frozen=True)
class Kill:
    """Where something dies: the driver, or a Python worker, whose task Spark may try again.

    ``count`` is the number of times that a point is passed, of batches for what dies in tasks,
    or of milliseconds after the first batch for "later".
    """

    point: str
    count: int = 1
    worker: bool = False
    attempts: int = 1

    @property
    def is_survived(self) -> bool:
        """Whether the driver goes on: Spark tries the task of a killed worker again."""
        return self.worker and self.attempts > 1

    def __str__(self) -> str:
        who = "driver" if not self.worker else f"worker of {self.attempts} attempts"
        return f"{who} {self.point} {self.count}"


NO_KILL = Kill("never")


def prepare(folder: Path, seed: int, batches: int = BATCHES) -> None:
    from muntin.testing import trades
    from spark.folder_stream import FolderStream, parts

    stream = FolderStream(folder / "in")
    for part in parts(trades(3000, seed=seed, seconds=4000), batches):
        stream.put(part)


def drive(folder: Path, kill: Kill, master: str | None = None) -> int:
    """Run the driver until it ends or dies; how it ended."""
    from spark.cluster_processes import end_session

    driver = TESTS / "spark" / "chaos_driver.py"
    paths = [str(TESTS), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    log = (folder / "log").open("a")
    with (
        log,
        subprocess.Popen(
            [
                *(sys.executable, str(driver), str(folder), json.dumps(asdict(kill))),
                *([] if master is None else [master]),
            ],
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        ) as process,
    ):
        try:
            return process.wait(timeout=240 if master is None else PATIENCE)
        finally:
            # Its JVM ends by itself when it notices; the next one need not wait for that.
            end_session(process.pid)


def check(folder: Path) -> None:
    """The output is that of the local engine, given the queries that each batch had."""
    from muntin import sinks
    from muntin.testing import assert_same_rows
    from spark.chaos_driver import EXTRAS, LATENESS
    from spark.folder_stream import batches_read, expected, query_sets

    batches = batches_read(folder / "ck")
    rows = sum(pq.read_metadata(path).num_rows for path in (folder / "in").glob("*.parquet"))
    assert sum(batch.num_rows for batch in batches) == rows, [batch.num_rows for batch in batches]
    sets = query_sets(folder / "ck", len(batches))
    output = sinks.read(folder / "out")
    answers = expected(batches, sets, lateness=LATENESS)
    extras = {f"extra_{number}" for number in range(1, EXTRAS + 1)}
    assert {"turnover", "vwap"} | extras <= set(answers), sorted(answers)
    assert "extra_1" not in {query.name for query in sets[-1]}
    for name, table in answers.items():
        assert_same_rows(output[name], table)
    for name, table in rows_expected(batches).items():
        assert table.num_rows, name
        assert_same_rows(output[name], table)
    check_kept(folder, batches)


def check_kept(folder: Path, batches: Sequence[pa.Table]) -> None:
    """What is kept to be asked is what a stream of this process keeps of the same batches."""
    import muntin
    from muntin.spark.streaming.checkpoint.asks import asking_of
    from spark.chaos_driver import KEEPS, LATENESS

    nothing = "SELECT count(*) AS n FROM trades [RANGE '1 hour' SLIDE '1 hour']"
    lateness = f"{LATENESS} microseconds"
    stream = muntin.stream(nothing, batches[0].schema, lateness=lateness, keeps=KEEPS)
    for batch in batches:
        stream.feed(batch)
    log = asking_of(folder / "ck")
    for question in QUESTIONS:
        found, wanted = (each.ask(question, timeout="1 minute") for each in (log, stream))
        assert found.table.to_pylist() == wanted.table.to_pylist(), question
        assert (found.covers, found.as_of, found.batch, found.rows) == (
            wanted.covers,
            wanted.as_of,
            wanted.batch,
            wanted.rows,
        )


def rows_expected(batches: Sequence[pa.Table]) -> dict[str, pa.Table]:
    """What queries over rows show of some batches, by a stream in this process."""
    import muntin
    from spark.chaos_driver import LATENESS, ROWS

    schemas = {"trades": batches[0].schema}
    lateness = f"{LATENESS} microseconds"
    stream = muntin.stream(ROWS, schemas, {"trades": "ts"}, lateness=lateness)
    found: dict[str, list[pa.Table]] = {}
    for batch in batches:
        for name, table in stream.feed(batch, "trades").items():
            found.setdefault(name, []).append(table)
    return {name: pa.concat_tables(parts) for name, parts in found.items()}


def copies(folder: Path) -> int:
    """How many tasks Spark had two attempts at, in one start of the driver."""
    found = (folder / "lags").glob("*/attempt-*")
    batches = Counter((path.parent.name, path.name.split("-")[1]) for path in found)
    # Each partition has a task in every batch.
    return sum(max(attempts - PARTITIONS, 0) for attempts in batches.values())


def speculate(folder: Path, seed: int, kills: Sequence[Kill], batches: int = BATCHES) -> list[str]:
    """The same on a cluster where a task of each batch lags, and Spark starts a copy of it."""
    from spark.cluster import started_cluster

    for name in ("lags", "cluster"):
        (folder / name).mkdir()
    with started_cluster(folder / "cluster", apart=True) as cluster:
        story = torment(folder, seed, kills, batches, cluster.master)
    assert copies(folder) > 0, story
    return [*story, f"copies: {copies(folder)}"]


def torment(
    folder: Path,
    seed: int,
    kills: Sequence[Kill],
    batches: int = BATCHES,
    master: str | None = None,
) -> list[str]:
    """Run a stream with these kills, one after the other, let it end, and check what it wrote."""
    from spark.chaos_driver import FAILED

    prepare(folder, seed, batches)
    story: list[str] = []
    for kill in [*kills, NO_KILL]:
        status = drive(folder, kill, master)
        story.append(f"{kill}: {status}")
        # A stream may end before its killer comes.
        wanted = {0} if kill == NO_KILL or kill.is_survived else {0, -signal.SIGKILL}
        wanted |= {FAILED} if kill.worker and not kill.is_survived else set()
        if status not in wanted:
            raise AssertionError(f"{story}\n{(folder / 'log').read_text()[-4000:]}")
    check(folder)
    return story


def random_kills(seed: int, count: int) -> list[Kill]:
    """Some kills, with one that the driver survives at the end, since the stream ends with it."""
    from spark.chaos_driver import BLOWS, POINTS

    rng = random.Random(seed)
    found = []
    for _ in range(count):
        kind = rng.choice(["point", "blow", "later", "worker"])
        if kind == "later":
            found.append(Kill("later", rng.randrange(900)))
        elif kind == "point":
            found.append(Kill(rng.choice([*POINTS]), rng.choice([1, 2, 3])))
        else:
            is_worker = kind == "worker"
            attempts = rng.choice([1, 3]) if is_worker else 1
            found.append(Kill(rng.choice(BLOWS), rng.choice([1, 2]), is_worker, attempts))
    survived = [kill for kill in found if kill.is_survived]
    return [kill for kill in found if not kill.is_survived] + survived[:1]


def main(seeds: int, first: int = 0) -> int:
    """Run some seeds; 1 if any of them ended in another output."""
    begun, outcomes = time.monotonic(), Counter[str]()
    bad = []
    for number in range(first, first + seeds):
        start = time.monotonic()
        try:
            with tempfile.TemporaryDirectory(prefix="muntin-chaos-") as name:
                if number % SPECULATIVE == SPECULATIVE - 1:
                    told = speculate(Path(name), number, random_kills(number, 2))
                else:
                    told = torment(Path(name), number, random_kills(number, 4), MANY_BATCHES)
            outcomes.update(line.rpartition(": ")[2] for line in told)
            print(
                f"seed {number}: {'; '.join(told)} ({time.monotonic() - start:.0f} s)", flush=True
            )
        except Exception:
            bad.append(number)
            print(f"seed {number}: DIFFERS\n{traceback.format_exc()}", flush=True)
    print(
        f"{seeds - len(bad)} of {seeds} seeds left no trace in {time.monotonic() - begun:.0f} s; "
        f"drivers killed: {outcomes['-9']}, runs failed: {outcomes['3']}, ended: {outcomes['0']}"
        + (f"; seeds that differ: {bad}" if bad else "")
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    sys.exit(main(*map(int, sys.argv[1:])))
