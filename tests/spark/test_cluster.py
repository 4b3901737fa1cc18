"""A standalone cluster answers what the local engine answers, also when its processes die."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import muntin
from muntin import sinks
from muntin.spark import ship
from muntin.spark.environment.java import find_java
from muntin.testing import assert_same_rows, trades
from spark.chaos_driver import QUERIES
from spark.cluster import interpreter_without_muntin, started_cluster
from spark.cluster_driver import STRUCK
from spark.cluster_processes import end_session
from spark.folder_stream import FolderStream, expected, parts

BATCHES = parts(trades(3000, seed=61, seconds=4000), 4)
TESTS = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What a driver has left in its folder, with the folders of its executors beside it."""
    if find_java() is None or not Path("/proc/self/stat").exists():
        pytest.skip("needs Java and /proc")
    folder = tmp_path_factory.mktemp("driver")
    stream = FolderStream(folder / "in")
    for batch in BATCHES:
        stream.put(batch)
    # So that all kernels are compiled when they are shipped.
    expected(BATCHES, [QUERIES] * len(BATCHES))
    with started_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        hidden = interpreter_without_muntin(cluster.folder)
        drive(folder, cluster.master, str(hidden))
        yield folder


def drive(folder: Path, *arguments: str) -> None:
    script = TESTS / "spark" / "cluster_driver.py"
    log = folder / "log"
    paths = [str(TESTS), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    with (
        log.open("w") as file,
        subprocess.Popen(
            [sys.executable, str(script), str(folder), *arguments],
            stdout=file,
            stderr=file,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            start_new_session=True,
        ) as process,
    ):
        try:
            status = process.wait(timeout=240)
        finally:
            end_session(process.pid)
    assert status == 0, log.read_text()[-4000:]


@pytest.mark.parametrize("way", ["installed", "shipped"])
@pytest.mark.parametrize("kind", ["frame", "files"])
def test_bounded_answers_are_those_of_the_local_engine(driven: Path, way: str, kind: str) -> None:
    answers = muntin.aggregate(pa.concat_tables(BATCHES), QUERIES, time="ts")
    for name in ("turnover", "vwap"):
        found = pq.read_table(driven / way / f"{kind}-{name}.parquet")
        assert_same_rows(found, answers[name])


def test_a_stream_shows_nothing_of_processes_that_died(driven: Path) -> None:
    assert all((driven / name).exists() for name in STRUCK)
    output = sinks.read(driven / "out")
    answers = expected(BATCHES, [QUERIES] * len(BATCHES))
    assert answers["turnover"].num_rows > 5
    for name, table in answers.items():
        assert_same_rows(output[name], table)


def test_workers_have_the_code_in_either_way(driven: Path) -> None:
    told = json.loads((driven / "workers.json").read_text())
    for worker in told["installed"]:
        assert worker["package"] == muntin.__file__
    for worker in told["shipped"]:
        assert Path(worker["folder"], "muntin-code") in Path(worker["package"]).parents
    assert len({worker["folder"] for worker in told["shipped"]}) == 2


def test_workers_compile_nothing_that_was_shipped(driven: Path) -> None:
    for worker in json.loads((driven / "workers.json").read_text())["shipped"]:
        given = {path.name for path in Path(worker["folder"], worker["given"]).glob("*.nbc")}
        own = {path.name for path in Path(worker["folder"], worker["kernels"]).rglob("*.nbc")}
        assert len(given) > 10
        assert not own & given


class Context:
    """What shipping sees of Spark's context."""

    def __init__(self, master: str) -> None:
        self.master, self.archives = master, list[str]()
        self.environment = {"PYTHONPATH": "theirs"}

    def addArchive(self, path: str) -> None:
        self.archives.append(path)

    def ship(self, *, code: bool) -> list[str]:
        ship(SimpleNamespace(sparkContext=self), code=code)  # type: ignore[arg-type]
        return [path.rpartition("#")[2] for path in self.archives]


def test_code_and_kernels_are_shipped_once_and_before_what_is_there() -> None:
    context = Context("spark://host:7077")
    assert context.ship(code=False) == ["muntin-given-kernels"]
    assert context.environment["PYTHONPATH"] == "theirs"
    for _ in range(2):
        assert context.ship(code=True) == ["muntin-given-kernels", "muntin-code"]
    assert context.environment["PYTHONPATH"] == f"muntin-code{os.pathsep}theirs"
    with zipfile.ZipFile(context.archives[-1].rpartition("#")[0]) as archive:
        names = set(archive.namelist())
    assert {"muntin/__init__.py", "muntin/spark/log4j2.properties"} <= names
    assert not any("__pycache__" in name for name in names)


def test_nothing_is_shipped_on_one_machine() -> None:
    assert Context("local[2]").ship(code=True) == []


def test_the_other_interpreter_lacks_muntin(tmp_path: Path) -> None:
    code = "import importlib.util as u; print(u.find_spec('muntin'), u.find_spec('pyarrow').name)"
    python = interpreter_without_muntin(tmp_path)
    done = subprocess.run([python, "-c", code], env={}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["None", "pyarrow"]
