"""Columns that a file does not declare, found out from its files."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from muntin.pipelines import PipelineError, read

UTC_TIME = pa.timestamp("us", "UTC")
QUERY = "SELECT sum(vol) AS v FROM s [RANGE '1 minute' SLIDE '1 minute']"


def stream(path: Path | str, form: str, more: str = "") -> str:
    return f"CREATE STREAM s WITH (format = '{form}', path = '{path}'{more}); {QUERY}"


def test_parquet_in_folders(tmp_path: Path) -> None:
    table = pa.table(
        {
            "ts": pa.array([datetime(2024, 1, 1, tzinfo=UTC)], pa.timestamp("ns", "Europe/Rome")),
            "vol": pa.array([1], pa.uint32()),
            "tags": pa.array([["a"]]),
            "day": ["mon"],
        }
    )
    ds.write_dataset(
        table, tmp_path / "in", format="parquet", partitioning=["day"], partitioning_flavor="hive"
    )
    (tmp_path / "in" / "_SUCCESS").write_text("")
    (source,) = read(stream(tmp_path / "in", "parquet")).streams
    assert not source.declared
    assert source.schema == pa.schema(
        {"ts": UTC_TIME, "vol": pa.int64(), "tags": pa.list_(pa.string()), "day": pa.string()}
    )


def test_a_pattern_and_one_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        table = pa.table({"ts": pa.array([0], pa.timestamp("us")), "vol": [1]})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    for path in ("*.parquet", "a.parquet", "**/b.parquet"):
        (source,) = read(stream(tmp_path / path, "parquet")).streams
        assert source.schema == pa.schema({"ts": pa.timestamp("us"), "vol": pa.int64()})


def test_csv_with_and_without_a_header(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("ts;vol;price;symbol;on;none\n2024-01-01 00:00:00;5;1.5;A;2024-01-01;\n")
    (source,) = read(stream(path, "csv", ", delimiter = ';'")).streams
    assert source.schema == pa.schema(
        {
            "ts": UTC_TIME,
            "vol": pa.int64(),
            "price": pa.float64(),
            "symbol": pa.string(),
            "on": pa.date32(),
            "none": pa.string(),
        }
    )
    path.write_text("2024-01-01 00:00:00,5\n")
    text = stream(path, "csv", ", header = FALSE, time = '_c0'").replace("sum(vol)", "sum(_c1)")
    assert read(text).streams[0].schema.names == ["_c0", "_c1"]


def test_json(tmp_path: Path) -> None:
    path = tmp_path / "in.json"
    path.write_text('{"ts": "2024-01-01T00:00:00Z", "vol": 5, "ok": true}\n')
    (source,) = read(stream(path, "json")).streams
    assert source.schema == pa.schema({"ts": UTC_TIME, "vol": pa.int64(), "ok": pa.bool_()})


@pytest.mark.parametrize("start", ["null", " \n null", "nullx", "[1]", "\ufeffnull"])
def test_json_that_begins_with_no_object(start: str, tmp_path: Path) -> None:
    path = tmp_path / "in.json"
    path.write_text(f'{start}\n{{"ts": "2024-01-01T00:00:00Z", "vol": 5}}\n', "utf-8")
    with pytest.raises(PipelineError, match=r"it begins with .* a line must be an object"):
        read(stream(path, "json"))


def test_tables_are_found_out_too(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("symbol,cp\nA,1.5\n")
    text = f"""CREATE STREAM s WITH (format = 'rate');
    CREATE TABLE c WITH (format = 'csv', path = '{tmp_path}/c.csv', refresh = 'never');
    SELECT max(cpp) AS m FROM s [RANGE '1 minute' SLIDE '1 minute'] JOIN c USING (symbol)"""
    with pytest.raises(PipelineError, match="did you mean cp"):
        read(text)
    pipeline = read(text.replace("cpp", "cp"))
    assert pipeline.schemas() == {"c": pa.schema({"symbol": pa.string(), "cp": pa.float64()})}


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: None, "there are no files at"),
        (lambda path: path.mkdir(), "there are no columns in the files at"),
        (lambda path: path.write_bytes(b"PAR1garbage"), "cannot be read as parquet"),
        (lambda path: path.write_bytes(b""), "cannot be read as parquet"),
    ],
)
def test_nothing_to_find(make: object, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "in"
    make(path)  # type: ignore[operator]
    with pytest.raises(PipelineError, match=reason) as caught:
        read(stream(path, "parquet"))
    (problem,) = caught.value.problems
    assert problem.column == len("CREATE STREAM s WITH (format = 'parquet', path = ") + 1
    assert "declare the columns" in (problem.hint or "")


def test_elsewhere_columns_must_be_declared() -> None:
    with pytest.raises(PipelineError, match="are not looked up"):
        read(stream("s3a://bucket/in", "parquet"))
    declared = stream("s3a://bucket/in", "parquet").replace(
        "CREATE STREAM s", "CREATE STREAM s (ts TIMESTAMP, vol INT)"
    )
    assert read(declared).streams[0].path == "s3a://bucket/in"
