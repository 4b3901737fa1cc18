"""The Parquet sink, step by step."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from muntin import sinks
from muntin.errors import UnknownQueryError
from muntin.sinks import ParquetSink, SinkError
from muntin.testing import assert_same_rows


def numbers(*values: int) -> pa.Table:
    return pa.table({"v": pa.array(values, pa.int64())})


def commit(sink: ParquetSink, batch: int, **results: pa.Table) -> None:
    sink.commit(batch, sink.writer().write(batch, 0, results))


def data(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*/*.parquet")}


def test_rows_are_there_once_they_are_committed(tmp_path: Path) -> None:
    sink = sinks.parquet(tmp_path / "out")
    entries = sink.writer().write(0, 0, {"a": numbers(1, 2), "b": numbers()})
    assert [entry.rows for entry in entries] == [2]
    assert list(sinks.read(tmp_path / "out")) == []
    with pytest.raises(UnknownQueryError, match="known here from its first batch on"):
        sinks.read(tmp_path / "out")["joining"]
    sink.commit(0, entries)
    assert_same_rows(sinks.read(tmp_path / "out")["A"], numbers(1, 2))


def test_the_writer_is_small_and_travels(tmp_path: Path) -> None:
    sink = sinks.parquet(tmp_path / "out")
    packed = pickle.dumps(sink.writer())
    assert len(packed) < 300
    entries = pickle.loads(packed).write(0, "12-3", {"a": numbers(1)})
    sink.commit(0, pickle.loads(pickle.dumps(entries)))
    assert sinks.read(tmp_path / "out")["a"].num_rows == 1


def test_a_repeated_batch_keeps_its_first_files(tmp_path: Path) -> None:
    sink = sinks.parquet(tmp_path / "out")
    commit(sink, 0, a=numbers(1))
    first = data(tmp_path / "out")
    commit(sinks.parquet(tmp_path / "out"), 0, a=numbers(1))
    assert data(tmp_path / "out") == first
    commit(sink, 1, a=numbers(2))
    commit(sink, 0, a=numbers(1))
    assert sorted(sinks.read(tmp_path / "out")["a"]["v"].to_pylist()) == [1, 2]


def test_a_commit_of_the_same_entries_again_changes_nothing(tmp_path: Path) -> None:
    sink = sinks.parquet(tmp_path / "out")
    entries = sink.writer().write(0, 0, {"a": numbers(1)})
    sink.commit(0, entries)
    sink.commit(0, entries)
    assert sinks.read(tmp_path / "out")["a"].num_rows == 1


def test_a_repeated_batch_after_a_compaction(tmp_path: Path) -> None:
    sink = sinks.parquet(tmp_path / "out")
    for batch in range(9):
        commit(sink, batch, a=numbers(batch))
    sink.compact()
    commit(sink, 8, a=numbers(8))
    sink.recover(8)
    assert sorted(sinks.read(tmp_path / "out")["a"]["v"].to_pylist()) == list(range(9))


def test_recovery_removes_what_is_not_committed_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    sink = sinks.parquet(folder)
    commit(sink, 0, a=numbers(1))
    kept = data(folder)
    sink.writer().write(1, 0, {"a": numbers(2), "b": numbers(3)})
    (folder / "a" / "notes.parquet").write_text("a file of the user")
    (folder / "_commits" / ".tmp-dead").write_text("{")
    sinks.parquet(folder).recover(0)
    assert data(folder) == kept | {"notes.parquet"}
    assert [path.name for path in (folder / "_commits").iterdir()] == [f"{0:020d}.json"]


def test_small_files_become_large_ones(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    sink = sinks.parquet(folder, compact_every=8)
    for batch in range(40):
        commit(sink, batch, a=numbers(batch), b=numbers(-batch))
        sink.close()
    sink.compact()
    sink.compact()
    commit(sink, 40, a=numbers(40))
    sink.compact()
    assert len(sinks.read(folder).files("a")) < 10
    assert len(data(folder)) < 40
    assert len(list((folder / "_commits").iterdir())) < 20
    assert sorted(sinks.read(folder)["a"]["v"].to_pylist()) == list(range(41))
    assert sorted(sinks.read(folder)["b"]["v"].to_pylist()) == [-i for i in range(39, -1, -1)]


def test_declared_queries_are_known_without_rows(tmp_path: Path) -> None:
    sink = sinks.parquet(tmp_path / "out")
    sink.declare({"Spikes": numbers().schema})
    output = sinks.read(tmp_path / "out")
    assert output["spikes"] == numbers()
    sink.declare({"SPIKES": numbers().schema, "b": numbers().schema})
    assert list(output) == ["SPIKES", "b"]
    with pytest.raises(UnknownQueryError, match="did you mean SPIKES"):
        output["spike"]


def test_names_that_differ_in_case_are_one_query(tmp_path: Path) -> None:
    sink = sinks.parquet(tmp_path / "out")
    commit(sink, 0, Spikes=numbers(1))
    commit(sink, 1, SPIKES=numbers(2))
    output = sinks.read(tmp_path / "out")
    assert list(output) == ["SPIKES"]
    assert sorted(output["spikes"]["v"].to_pylist()) == [1, 2]
    assert repr(output).endswith("SPIKES: 2 rows")


def test_a_query_may_have_the_name_of_a_folder_of_ours(tmp_path: Path) -> None:
    sink = sinks.parquet(tmp_path / "out")
    commit(sink, 0, _commits=numbers(1))
    sink.recover(0)
    assert sinks.read(tmp_path / "out")["_commits"].num_rows == 1
    with pytest.raises(SinkError, match="is not a valid query name"):
        commit(sink, 1, **{"../a": numbers(1)})


def test_columns_that_come_later_are_null_before(tmp_path: Path) -> None:
    sink = sinks.parquet(tmp_path / "out")
    for batch in range(20):
        table = pa.table({"v": [batch], "w": ["x"]}) if batch >= 10 else numbers(batch)
        commit(sink, batch, a=table)
    sink.compact()
    output = sinks.read(tmp_path / "out")
    assert output["a"]["w"].to_pylist() == [None] * 10 + ["x"] * 10
    assert [schema.names for schema in output.versions("a")] == [["v"], ["v", "w"]]
    assert output.table("a", version=0).column_names == ["v"]
    assert len(output.files("a", version=1)) == 1


def test_columns_whose_type_changed_are_read_by_version(tmp_path: Path) -> None:
    sink = sinks.parquet(tmp_path / "out")
    commit(sink, 0, a=numbers(1))
    commit(sink, 1, a=pa.table({"v": ["x"]}))
    output = sinks.read(tmp_path / "out")
    with pytest.raises(SinkError, match="column v is int64 in one and string in another"):
        output["a"]
    assert output.table("a", version=1)["v"].to_pylist() == ["x"]


def test_types_come_back_as_they_were(tmp_path: Path) -> None:
    far = pa.array([-1, 2**61, None], pa.timestamp("us", "UTC"))
    table = pa.table(
        {
            "window_start": far,
            "x": [0.0, -0.0, float("nan")],
            "d": pa.array([1, None, 3]).cast(pa.decimal128(38, 2)),
            "l": pa.array(["a", None, "c"], pa.large_string()),
            "k": pa.array(["a", "b", "a"]).dictionary_encode(),
            "n": pa.array([1, 2, 3], pa.timestamp("ns")),
        }
    )
    sink = sinks.parquet(tmp_path / "day=1" / "out")
    for batch in range(8):
        commit(sink, batch, a=table)
    assert sinks.read(tmp_path / "day=1" / "out")["a"].schema == table.schema
    sink.compact()
    read = sinks.read(tmp_path / "day=1" / "out")["a"]
    assert read.num_rows == 24
    assert_same_rows(read.slice(0, 3).combine_chunks(), table)


def test_folders_of_others_are_refused(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a\n1\n")
    with pytest.raises(SinkError, match=r"files other than results of Muntin, such as data\.csv"):
        sinks.parquet(tmp_path).writer()
    assert os.listdir(tmp_path) == ["data.csv"]
    with pytest.raises(SinkError, match="holds no results"):
        sinks.read(tmp_path)
    with pytest.raises(SinkError, match="does not exist"):
        sinks.read(tmp_path / "nothing")
    with pytest.raises(SinkError, match="cannot use"):
        sinks.parquet(tmp_path / "data.csv" / "out").writer()


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    sink = sinks.parquet(tmp_path / "out")
    sink.recover(-1, run="one")
    commit(sink, 0, a=numbers(1))
    with pytest.raises(SinkError, match="results of another run"):
        sinks.parquet(tmp_path / "out").recover(-1, run="two")
    sinks.parquet(tmp_path / "out").recover(-1, run="one")
    commit(sink, 1, a=numbers(1))
    with pytest.raises(SinkError, match="up to batch 1, and the checkpoint has only finished none"):
        sinks.parquet(tmp_path / "out").recover(-1)


def test_a_batch_that_is_missing_in_between_is_refused(tmp_path: Path) -> None:
    sink = sinks.parquet(tmp_path / "out")
    commit(sink, 0, a=numbers(1))
    commit(sink, 5, a=numbers(1))
    with pytest.raises(SinkError, match="batch 3 was never committed"):
        commit(sink, 3, a=numbers(1))


def test_a_manifest_that_was_removed_or_changed_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muntin.sinks.files.log._PAUSE", 0)
    sink = sinks.parquet(tmp_path / "out")
    for batch in range(3):
        commit(sink, batch, a=numbers(batch))
    manifest = tmp_path / "out" / "_commits" / f"{1:020d}.json"
    content = manifest.read_bytes()
    manifest.unlink()
    with pytest.raises(SinkError, match="a manifest is missing"):
        sinks.read(tmp_path / "out")["a"]
    manifest.write_bytes(content[:-5])
    with pytest.raises(SinkError, match="is damaged"):
        sinks.read(tmp_path / "out")["a"]
    later = json.loads(content) | {"format": 99}
    manifest.write_text(json.dumps(later))
    with pytest.raises(SinkError, match="has format 99"):
        sinks.read(tmp_path / "out")["a"]


def test_files_that_workers_wrote_elsewhere_are_not_committed(tmp_path: Path) -> None:
    sink = sinks.parquet(tmp_path / "out")
    writer = sink.writer()
    entries = writer.write(0, 0, {"a": numbers(1)})
    for path in (tmp_path / "out").glob("a/*"):
        path.unlink()
    with pytest.raises(SinkError, match="names 1 file not in"):
        sink.commit(0, entries)
    with pytest.raises(SinkError, match="is not a folder on this worker"):
        sinks.ParquetWriter(str(tmp_path / "elsewhere")).write(0, 0, {"a": numbers(1)})


FULL = """
import resource, sys
import pyarrow as pa
from muntin.sinks import SinkError, parquet
sink = parquet(sys.argv[1], compact_every=None)
writer = sink.writer()
for batch in range(8):
    sink.commit(batch, writer.write(batch, 0, {"a": pa.table({"v": [batch]})}))
small = writer.write(8, 0, {"a": pa.table({"v": [8]})})
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
for attempt in (
    lambda: writer.write(9, 0, {"a": pa.table({"v": [1]}), "b": pa.table({"v": [1]})}),
    lambda: sink.commit(8, small),
    sink.compact,
):
    try:
        attempt()
    except SinkError as error:
        print("refused:", error.message)
"""


def test_a_full_disk_is_an_error_and_commits_nothing(tmp_path: Path) -> None:
    """A limit on the size of files stands in for a disk that takes no more bytes."""
    folder = tmp_path / "out"
    command = [sys.executable, "-c", FULL, folder, "64"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("refused: cannot ") == 3, done.stdout
    assert done.stdout.count(": File too large") == 3, done.stdout
    assert sorted(sinks.read(folder)["a"]["v"].to_pylist()) == list(range(8))
    sinks.parquet(folder).recover(7)
    assert len(data(folder)) == 8


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(SinkError, match="Permission denied"):
        sinks.parquet(tmp_path / "out").writer()


def test_plain_readers_see_committed_files(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    sink = sinks.parquet(folder)
    for batch in range(12):
        commit(sink, batch, a=numbers(batch))
        if batch in (8, 9):
            sink.compact()
    sink.writer().write(12, 0, {"a": numbers(99)})
    files = sinks.read(folder).files("a")
    assert sorted(pl.scan_parquet(files).collect()["v"].to_list()) == list(range(12))
    assert sorted(duckdb.read_parquet(files).fetchall()) == [(i,) for i in range(12)]
    page = (Path(__file__).parents[3] / "docs" / "sinks.md").read_text()
    documented = page.partition('COMMITTED = """')[2].partition('"""')[0].replace("spikes", "a")
    found = duckdb.execute(documented, {"manifests": f"{folder}/_commits/*.json"}).fetchall()
    assert sorted(f"{folder}/{path}" for (path,) in found) == sorted(files)
