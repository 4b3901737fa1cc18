"""Results that a sink has lost: refused, or accepted as lost, whatever keeps them."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pytest

from muntin import sinks
from muntin.errors import MuntinError
from muntin.pipelines.fan_out import FanOutSink, Takes
from muntin.sinks import SinkError
from muntin.spark.streaming.checkpoint.audit import Delivery
from muntin.testing import assert_same_rows
from sinks.postgres_process import PostgresProcess, running_postgres

Make = Callable[[], sinks.Sink[Any]]
RUN = "the run"


def numbers(*values: int) -> pa.Table:
    return pa.table({"v": pa.array(values, pa.int64())})


def deliver(delivery: Delivery, batch: int, **results: pa.Table) -> None:
    delivery.commit(batch, delivery.sink.writer().write(batch, 0, results))


def run_batches(sink: sinks.Sink[Any], batches: range, known: dict[str, int]) -> dict[str, int]:
    """Run some batches, of which every third has no results; what the outcome of the last says."""
    with closing(sink):
        delivery = Delivery(sink, dict(known))
        delivery.resume(batches.start - 1, RUN, accepts_gaps=False)
        for batch in batches:
            deliver(delivery, batch, **({"a": numbers(batch)} if batch % 3 else {}))
        return dict(delivery.batches)


def resume(make: Make, last: int, known: dict[str, int], *, accepts_gaps: bool = False) -> None:
    with closing(make()) as sink:
        Delivery(sink, dict(known)).resume(last, RUN, accepts_gaps=accepts_gaps)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresProcess]:
    with running_postgres() as server:
        yield server


class Kept:
    """A place that keeps results, and what can happen to it."""

    def __init__(self, kind: str, folder: Path, server: PostgresProcess) -> None:
        self.kind, self.folder, self.server = kind, folder, server
        self.path = folder / ("out" if kind == "parquet" else "out.duckdb")
        self.schema = f"s_{folder.name.replace('-', '_').lower()}"

    def make(self) -> sinks.Sink[Any]:
        if self.kind == "parquet":
            return sinks.parquet(self.path, compact_every=4)
        if self.kind == "duckdb":
            return sinks.duckdb(self.path)
        return sinks.postgres(self.server.url(), schema=self.schema)

    def values(self) -> list[int]:
        if self.kind == "parquet":
            return sorted(sinks.read(self.path)["a"]["v"].to_pylist())
        if self.kind == "duckdb":
            return sorted(sinks.duckdb(self.path).table("a")["v"].to_pylist())
        return sorted(value for (value,) in self.execute(f"SELECT v FROM {self.schema}.a"))

    def lose_last(self) -> None:
        """Lose the results of the last batch."""
        if self.kind == "parquet":
            last = max((self.path / "_commits").glob("*.json")).name.partition(".")[0]
            for manifest in (self.path / "_commits").glob(f"{last}.*"):
                manifest.unlink()
            return
        schema = "main" if self.kind == "duckdb" else self.schema
        for table, column in (("a", "v"), ("_muntin_batches", "batch")):
            last = f"(SELECT max({column}) FROM {schema}.{table})"
            self.execute(f"DELETE FROM {schema}.{table} WHERE {column} = {last}")

    def lose_all(self) -> None:
        if self.kind == "parquet":
            shutil.rmtree(self.path)
        elif self.kind == "duckdb":
            self.path.unlink()
        else:
            self.execute(f"DROP SCHEMA {self.schema} CASCADE")

    def retain(self) -> None:
        """Delete old results on purpose."""
        if self.kind == "parquet":
            min((self.path / "a").glob("*.parquet")).unlink()
        else:
            table = "a" if self.kind == "duckdb" else f"{self.schema}.a"
            self.execute(f"DELETE FROM {table} WHERE v < 5")

    def is_there(self) -> bool:
        if self.kind != "postgres":
            return self.path.exists()
        found = self.execute("SELECT to_regnamespace(%s)", [self.schema])
        return found[0][0] is not None

    def execute(self, sql: str, values: Any = None) -> list[Any]:
        if self.kind == "duckdb":
            with duckdb.connect(str(self.path)) as connection:
                return connection.execute(sql).fetchall()
        with psycopg.connect(self.server.url(), autocommit=True) as connection:
            cursor = connection.execute(sql, values)
            return cursor.fetchall() if cursor.description else []


@pytest.fixture(params=["parquet", "duckdb", "postgres"])
def kept(request: pytest.FixtureRequest, tmp_path: Path, server: PostgresProcess) -> Kept:
    return Kept(request.param, tmp_path, server)


def test_a_sink_goes_on_where_the_checkpoint_does(kept: Kept) -> None:
    known = run_batches(kept.make(), range(7), {})
    # Batch 6 had nothing to deliver.
    assert set(known.values()) == {5}
    resume(kept.make, 6, known)
    # The checkpoint forgot the last batches, as after a crash; one of them, and no more.
    resume(kept.make, 4, {**known, **dict.fromkeys(known, 4)})
    with pytest.raises(SinkError, match="holds results up to batch 5, and the checkpoint"):
        resume(kept.make, 3, dict.fromkeys(known, 2))
    run_batches(kept.make(), range(7, 10), known)
    assert kept.values() == [1, 2, 4, 5, 7, 8]


def test_lost_results_are_refused_or_accepted_once(
    kept: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    known = run_batches(kept.make(), range(6), {})
    kept.lose_last()
    for _ in range(2):
        with pytest.raises(
            SinkError, match=r"results of batch 5 are missing from .*batch 4"
        ) as error:
            resume(kept.make, 5, known)
    assert all(
        choice in str(error.value.hint) for choice in ("restore", "start afresh", "on_gap='accept'")
    )
    with caplog.at_level(logging.WARNING):
        resume(kept.make, 5, known, accepts_gaps=True)
    assert "continues without them" in caplog.text
    known = run_batches(kept.make(), range(6, 9), known)
    assert kept.values() == [1, 2, 4, 7, 8]
    # A batch that is repeated after the gap is still there once.
    run_batches(kept.make(), range(8, 9), known)
    assert kept.values() == [1, 2, 4, 7, 8]


def test_a_refused_start_changes_nothing(kept: Kept) -> None:
    known = run_batches(kept.make(), range(6), {})
    kept.lose_all()
    with pytest.raises(SinkError, match=r"results up to batch 5 are missing from .*none of this"):
        resume(kept.make, 5, known)
    # Somebody may be about to restore it.
    assert not kept.is_there()
    resume(kept.make, 5, known, accepts_gaps=True)
    resume(kept.make, 5, known)
    run_batches(kept.make(), range(6, 9), known)
    assert kept.values() == [7, 8]


def test_results_that_were_deleted_on_purpose_are_no_gap(kept: Kept) -> None:
    known = run_batches(kept.make(), range(3), {})
    kept.retain()
    # Compactions of the folder go on too.
    known = run_batches(kept.make(), range(3, 9), known)
    resume(kept.make, 8, known)
    if kept.kind == "parquet":
        with pytest.raises(SinkError, match="holds committed results of a, and is not there"):
            kept.values()
        left = sinks.read(kept.path, on_missing="skip")
        assert sorted(left["a"]["v"].to_pylist()) == [2, 4, 5, 7, 8]
        assert all(map(os.path.exists, left.files("a")))
        with pytest.raises(SinkError, match="on_missing must be fail or skip, not 'ignore'"):
            sinks.read(kept.path, on_missing="ignore")  # type: ignore[arg-type]


def test_nothing_is_removed_before_a_gap_is_refused(tmp_path: Path) -> None:
    make = lambda: sinks.parquet(tmp_path / "out")  # noqa: E731
    known = run_batches(make(), range(6), {})
    manifest = max((tmp_path / "out" / "_commits").iterdir())
    content = manifest.read_bytes()
    manifest.unlink()
    with pytest.raises(SinkError, match="missing"):
        resume(make, 5, known)
    manifest.write_bytes(content)
    resume(make, 5, known)
    assert sorted(sinks.read(tmp_path / "out")["a"]["v"].to_pylist()) == [1, 2, 4, 5]


def test_a_hole_between_manifests_can_be_accepted(tmp_path: Path) -> None:
    make = lambda: sinks.parquet(tmp_path / "out")  # noqa: E731
    known = run_batches(make(), range(6), {})
    sorted((tmp_path / "out" / "_commits").iterdir())[1].unlink()
    with pytest.raises(SinkError, match=r"results of batches 2 to 5 are missing"):
        resume(make, 5, known)
    resume(make, 5, known, accepts_gaps=True)
    known = run_batches(make(), range(6, 8), known)
    assert sorted(sinks.read(tmp_path / "out")["a"]["v"].to_pylist()) == [1, 4, 5, 7]


def test_sinks_that_keep_nothing_have_no_gaps() -> None:
    exempt = [sinks.memory(), sinks.console(), sinks.callback(print)]
    for sink in exempt:
        delivery = Delivery(sink, {"": 7, "out": 7})
        delivery.resume(7, RUN, accepts_gaps=False)
        # What comes to another place from here on is missing from the one before.
        assert delivery.batches == {"": 7}


def test_a_place_that_was_passed_over_is_behind(tmp_path: Path) -> None:
    make = lambda: sinks.parquet(tmp_path / "out")  # noqa: E731
    known = run_batches(make(), range(3), {})
    known = run_batches(sinks.memory(), range(3, 6), known)
    with pytest.raises(SinkError, match="results of batches 3 to 5 are missing"):
        resume(make, 5, known)
    # The folder may move, as long as nothing is missing from it.
    known = run_batches(sinks.parquet(tmp_path / "other"), range(1, 3), {})
    (tmp_path / "other").rename(tmp_path / "moved")
    resume(lambda: sinks.parquet(tmp_path / "moved"), 2, known)


def test_each_of_several_sinks_is_held_to_its_own_batches(tmp_path: Path) -> None:
    def make() -> FanOutSink:
        places = [(Takes.only([name]), sinks.parquet(tmp_path / name)) for name in ("a", "b")]
        return FanOutSink([*places, (Takes.all(), sinks.memory())])

    delivery = Delivery(make())
    delivery.resume(-1, RUN, accepts_gaps=False)
    deliver(delivery, 0, a=numbers(0), b=numbers(0))
    deliver(delivery, 1, a=numbers(1))
    known = delivery.batches
    resume(make, 1, known)
    shutil.rmtree(tmp_path / "b")
    with pytest.raises(SinkError, match=r"results up to batch 0 are missing from .*/b, which"):
        resume(make, 1, known)
    resume(make, 1, known, accepts_gaps=True)
    resume(make, 1, known)
    assert sinks.read(tmp_path / "a")["a"].num_rows == 2


def damages(content: bytes, older: bytes) -> Iterator[tuple[str, bytes | None]]:
    """What may become of a file: some of it, something else, an older one, nothing."""
    yield "deleted", None
    yield "emptied", b""
    yield "truncated", content[: len(content) // 3]
    for share in (0.05, 0.9):
        place = int((len(content) - 1) * share)
        yield (
            f"altered at {share}",
            content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :],
        )
    yield "swapped", older


def test_damage_to_any_file_changes_no_result_silently(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    sink = sinks.parquet(folder)
    delivery = Delivery(sink)
    delivery.resume(-1, RUN, accepts_gaps=False)
    tables = [numbers(*range(batch, 2 * batch + 1)) for batch in range(11)]
    sink.declare({"a": numbers().schema})
    for batch, table in enumerate(tables):
        deliver(delivery, batch, a=table)
        if batch == 7:
            sink.compact()
    sink.close()
    wanted = pa.concat_tables(tables)
    whole = tmp_path / "whole"
    shutil.copytree(folder, whole)
    refused = 0
    names = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    for place, name in enumerate(names):
        older = names[place - 1] if names[place - 1].suffix == name.suffix else names[place + 1]
        for damage, content in damages((whole / name).read_bytes(), (whole / older).read_bytes()):
            shutil.rmtree(folder)
            shutil.copytree(whole, folder)
            (folder / name).unlink()
            if content is not None:
                (folder / name).write_bytes(content)
            try:
                resume(lambda: sinks.parquet(folder), 10, delivery.batches)
                found = sinks.read(folder)["a"]
            except MuntinError:
                refused += 1
                continue
            try:
                assert_same_rows(found, wanted)
            except AssertionError as error:
                raise AssertionError(f"{name} {damage}") from error
    # What a compaction has replaced is of no account; the rest is.
    assert refused > 2 * len(names)


def test_damage_to_a_duckdb_file_changes_no_result_silently(tmp_path: Path) -> None:
    make = lambda: sinks.duckdb(tmp_path / "out.duckdb")  # noqa: E731
    known = run_batches(make(), range(3), {})
    older = (tmp_path / "out.duckdb").read_bytes()
    known = run_batches(make(), range(3, 6), known)
    content = (tmp_path / "out.duckdb").read_bytes()
    outcomes = []
    for damage, changed in damages(content, older):
        (tmp_path / "out.duckdb").unlink(missing_ok=True)
        if changed is not None:
            (tmp_path / "out.duckdb").write_bytes(changed)
        try:
            resume(make, 5, known)
            found = sorted(make().table("a")["v"].to_pylist())  # type: ignore[attr-defined]
        except MuntinError as error:
            outcomes.append((damage, error.message))
        else:
            outcomes.append((damage, "the same"))
            assert found == [1, 2, 4, 5], damage
    refused = {damage for damage, outcome in outcomes if outcome != "the same"}
    assert {"deleted", "emptied", "swapped", "truncated"} <= refused, outcomes
