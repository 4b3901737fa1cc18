"""Code in the documentation that needs Spark runs, all of it in one session."""

from __future__ import annotations

import re
import runpy
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb
import pyarrow.parquet as pq
import pytest

import muntin
from code_blocks import PAGES, ROOT, blocks
from muntin import pipelines
from muntin.spark import SparkWarning
from muntin.testing import assert_same_rows, trades
from spark.folder_stream import PATIENCE

TRADES = 500
# benchmarks.md measures: tests/test_docs.py runs its block over fewer trades.
NEEDING_SPARK = {"README.md", "cluster.md", "command-line.md", "spark.md", "streaming.md"}
FILE = """
CREATE STREAM trades (ts TIMESTAMP, symbol STRING, price DOUBLE, vol BIGINT)
  WITH (format = 'parquet', path = 'trades', time = 'ts');
SELECT count(*) AS n FROM trades [RANGE '1 hour' SLIDE '1 hour'];
"""


@pytest.fixture
def folder(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where pages find what they read by relative paths: the folder `trades`, `trades.sql`."""
    assert spark.range(1).count() == 1
    for name in ("trades", "data/trades"):
        (tmp_path / name).mkdir(parents=True)
        pq.write_table(trades(TRADES), tmp_path / name / "some.parquet")
    (tmp_path / "payments").mkdir()
    taken = trades(TRADES, seed=1).select(["ts", "symbol", "price"])
    paid = taken.rename_columns(["paid_at", "method", "amount"])
    pq.write_table(paid, tmp_path / "payments" / "some.parquet")
    (tmp_path / "trades.sql").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def scope_of(page: str, folder: Path) -> dict[str, Any]:
    """Run the blocks of a page; what they have made."""
    scope: dict[str, Any] = {"path": str(folder / "trades"), "wait": lambda run: wait(run, folder)}
    for block in blocks([ROOT / page], "py"):
        # The JVM of the session is in another folder, and no cluster shares one.
        code = block.code.replace('parquet("trades")', "parquet(path)")
        code = code.replace('parquet("payments")', f'parquet("{folder / "payments"}")')
        code = code.replace("/shared", str(folder))
        # A minute is what a user waits; here it is until rows have met the queries that joined.
        code = re.sub(r"(\w+)\.await_termination\(timeout=60\)", r"wait(\1)", code)
        replace(block, code=code).run(scope)
    return scope


def wait(run: Any, folder: Path) -> None:
    """Let rows come until two batches have ended: the second began with all that has joined."""
    deadline = time.monotonic() + PATIENCE
    for _ in range(2):
        before = batches_of(run)
        # Whole at once, and of a name that no run of the page has read.
        hidden = folder / "trades" / ".hidden"
        pq.write_table(trades(TRADES), hidden)
        hidden.rename(folder / "trades" / f"{uuid4()}.parquet")
        while batches_of(run) == before:
            assert time.monotonic() < deadline, run
            assert not run.await_termination(timeout=0.1)


def batches_of(run: Any) -> int:
    found = run.progress()
    return int((found["trades"] if isinstance(found, dict) else found).batches)


def test_every_page_is_here() -> None:
    pages = {block.page.name for block in blocks(PAGES, "py")}
    assert pages == NEEDING_SPARK | {"benchmarks.md"}


def test_readme(folder: Path) -> None:
    run = scope_of("README.md", folder)["run"]
    assert [query.name for query in run.queries()] == ["spikes"]
    assert "top" in muntin.read("out")["spikes"].column_names


def test_the_sql_file_of_the_readme(folder: Path) -> None:
    (block,) = blocks([ROOT / "README.md"], "sql")
    code = block.code.replace("vol > 50000", "vol > 500")
    with pipelines.run(pipelines.read(code), folder / "ck", once=True) as running:
        running.await_termination()
    with duckdb.connect("answers.duckdb", read_only=True) as connection:
        found = connection.sql("SELECT sum(value) > 0 FROM high_volume").fetchall()
    assert found == [(True,)]


def test_streams(folder: Path) -> None:
    scope = scope_of("docs/streaming.md", folder)
    assert muntin.read("out-of-both").keys() == {"volume", "takings"}
    assert muntin.read("out").keys() == {"high_volume", "spikes"}
    assert scope["run"].progress().late_rows == muntin.read("aside")["late_rows"].num_rows


def test_spark(folder: Path) -> None:
    assert scope_of("docs/spark.md", folder)["results"].rows == TRADES


def test_a_cluster(folder: Path) -> None:
    """On the session there is, in place of the cluster: tests/spark/test_cluster.py starts one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scope = scope_of("docs/cluster.md", folder)
    scope["run"].stop()
    (warning,) = caught
    assert warning.category is SparkWarning
    assert str(warning.message).endswith("not applied: spark.master")
    assert scope["results"].rows == TRADES
    assert scope["run"].progress().queries == 1


def test_the_command_line_in_python(folder: Path) -> None:
    running = scope_of("docs/command-line.md", folder)["running"]
    assert len(running.queries()["trades"]) == 2


def test_card_features(folder: Path) -> None:
    """The part of examples/card_features.py that needs Spark: as from history, to the last bit."""
    cards = runpy.run_path(str(ROOT / "examples" / "card_features.py"))
    data = cards["payments"](rows=1_000)
    found, expected = cards["on_spark"](data, folder), cards["from_history"](data)
    assert found.keys() == expected.keys()
    for name, table in expected.items():
        assert_same_rows(found[name].to_arrow(), table.to_arrow())
