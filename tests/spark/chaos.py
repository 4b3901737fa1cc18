"""Kills a stream's driver again and again, and checks that its output shows nothing of it.

Run it with ``python tests/spark/chaos.py SEEDS``; `test_faults` runs a few seeds.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

TESTS = Path(__file__).parent.parent
BATCHES = 10


def prepare(folder: Path, seed: int) -> None:
    from muntin.testing import trades
    from spark.folder_stream import FolderStream, parts

    stream = FolderStream(folder / "in")
    for part in parts(trades(4000, seed=seed, seconds=4000), BATCHES):
        stream.put(part)


def drive(folder: Path, point: str, count: int) -> int:
    """Run the driver until it ends or dies; how it ended."""
    driver = TESTS / "spark" / "chaos_driver.py"
    paths = [str(TESTS), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    log = (folder / "log").open("a")
    with (
        log,
        subprocess.Popen(
            [sys.executable, str(driver), str(folder), point, str(count)],
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        ) as process,
    ):
        try:
            status = process.wait(timeout=240)
        finally:
            # Its JVM ends by itself when it notices; the next one need not wait for that.
            end_group(process.pid)
    return status


def end_group(number: int) -> None:
    try:
        os.killpg(number, signal.SIGKILL)
    except ProcessLookupError:
        return


def check(folder: Path) -> None:
    """The output is that of the local engine, given the queries that each batch had."""
    from muntin import sinks
    from muntin.testing import assert_same_rows
    from spark.chaos_driver import LATENESS
    from spark.folder_stream import expected, query_sets

    batches = [pq.read_table(path) for path in sorted((folder / "in").glob("*.parquet"))]
    sets = query_sets(folder / "ck", BATCHES)
    output = sinks.read(folder / "out")
    answers = expected(batches, sets, lateness=LATENESS)
    assert {"turnover", "vwap", "extra_1", "extra_2", "extra_3"} <= set(answers)
    assert "extra_1" not in {query.name for query in sets[-1]}
    for name, table in answers.items():
        assert_same_rows(output[name], table)


def torment(folder: Path, seed: int, kills: int) -> list[str]:
    """Kill a driver so many times at random moments, let it end, and check what it wrote."""
    from spark.chaos_driver import POINTS

    rng = random.Random(seed)
    prepare(folder, seed)
    story = []
    for _ in range(kills):
        point = rng.choice([*POINTS, "later", "later", "later"])
        count = rng.randrange(900) if point == "later" else rng.choice([1, 2, 2, 3])
        status = drive(folder, point, count)
        story.append(f"{point} {count}: {status}")
        if status not in (0, -signal.SIGKILL):
            raise AssertionError(f"{story}\n{(folder / 'log').read_text()[-4000:]}")
    status = drive(folder, "never", 0)
    assert status == 0, f"{story}\n{(folder / 'log').read_text()[-4000:]}"
    check(folder)
    return story


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    for number in range(int(sys.argv[1])):
        with tempfile.TemporaryDirectory(prefix="muntin-chaos-") as name:
            told = torment(Path(name), number, kills=4)
        print(f"seed {number}: {'; '.join(told)}", flush=True)
