"""What workers make of files: pieces, ranges of lines, and values that are plainly written."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import muntin
from muntin.errors import DataError
from muntin.spark.files.columns import UnlikeSparkError, as_parsed, as_stored
from muntin.spark.files.parquet import read_parquet
from muntin.spark.files.pieces import Piece, cut, local_path
from muntin.spark.files.text import TextFormat

NUMBERS = pa.schema({"a": pa.int64()})
CSV = TextFormat("csv", ("a",), header=True, separator=",")


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def pieces_of(path: Path, count: int) -> list[Piece]:
    size = path.stat().st_size
    edges = [size * place // count for place in range(count + 1)]
    return [Piece(str(path), edges[i], edges[i + 1], size) for i in range(count)]


def test_every_line_is_in_one_piece(tmp_path: Path) -> None:
    values = [10**k % 9973 * 7 for k in range(60)]
    for ending in ("\n", "\r\n"):
        for last in (ending, ""):
            text = ending.join(["a", *map(str, values)]) + last
            path = written(tmp_path, "x.csv", text.encode())
            for count in (1, 2, 3, 17, 200):
                tables = [t for piece in pieces_of(path, count) for t in CSV.read(piece, NUMBERS)]
                assert pa.concat_tables(tables)["a"].to_pylist() == values


def test_compressed_lines_are_one_piece(tmp_path: Path) -> None:
    path = written(tmp_path, "x.csv.gz", gzip.compress(b"a\n1\n\n2\n"))
    ((piece,),) = cut([str(path)], {}, cores=4)
    (table,) = CSV.read(piece, NUMBERS)
    assert table["a"].to_pylist() == [1, 2]


def test_every_row_group_is_in_one_piece(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": range(1000)}), path, row_group_size=90)
    for count in (1, 2, 5, 40):
        tables = [t for piece in pieces_of(path, count) for t in read_parquet(piece, NUMBERS)]
        assert pa.concat_tables(tables)["a"].to_pylist() == list(range(1000))


def test_pieces_cover_all_files_and_tasks_get_about_as_much(tmp_path: Path) -> None:
    paths = [
        str(written(tmp_path, f"{i}.csv", bytes(size << 10)))
        for i, size in enumerate((3000, 1, 0, 1500, 2))
    ]
    tasks = cut(paths, {}, cores=4)
    loads = [sum(piece.end - piece.start for piece in pieces) for pieces in tasks]
    assert len(tasks) == 4
    assert max(loads) - min(loads) <= 1
    covered = [(piece.path, piece.start, piece.end) for pieces in tasks for piece in pieces]
    assert sum(end - start for _, start, end in covered) == sum(loads) == 4503 << 10
    assert cut([paths[1]], {}, cores=4) == [[Piece(paths[1], 0, 1024, 1024)]]


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b%20c%2541%23.csv", "/a/b c%41#.csv"),
        ("file:/a/b", "/a/b"),
        ("/a/b", "/a/b"),
        ("hdfs://host/a", None),
        ("file://host/a", None),
    ],
)
def test_uris_become_paths(uri: str, path: str | None) -> None:
    assert local_path(uri) == path


@pytest.mark.parametrize(
    ("kind", "texts", "values"),
    [
        (pa.int32(), ["-7", None, "0012"], [-7, None, 12]),
        (pa.float64(), ["1e3", "-0.5", "7"], [1000.0, -0.5, 7.0]),
        (pa.bool_(), ["TRUE", "false"], [True, False]),
        (pa.decimal128(5, 2), ["-1.25", "3"], ["-1.25", "3.00"]),
        (pa.date32(), ["2024-02-29"], ["2024-02-29"]),
        (
            pa.timestamp("us", "UTC"),
            ["2024-01-01T00:00:00.5+01:00", "2024-01-01 00:00:00Z"],
            ["2023-12-31 23:00:00.500000Z", "2024-01-01 00:00:00.000000Z"],
        ),
        (pa.timestamp("us"), ["2024-01-01 00:00:00"], ["2024-01-01 00:00:00.000000"]),
    ],
)
def test_plain_values_are_parsed(kind: pa.DataType, texts: list[Any], values: list[Any]) -> None:
    parsed = as_parsed(pa.chunked_array([texts], pa.string()), kind)
    assert parsed.type == kind
    shown = parsed.cast(pa.string()).to_pylist() if isinstance(values[0], str) else None
    assert (shown or parsed.to_pylist()) == values


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.int64(), " 1"),
        (pa.int64(), "1.0"),
        (pa.int64(), "0x1"),
        (pa.int8(), "300"),
        (pa.float64(), "Infinity"),
        (pa.float64(), "1d"),
        (pa.bool_(), "yes"),
        (pa.date32(), "2024-13-01"),
        (pa.date32(), "2024-1-1"),
        (pa.timestamp("us", "UTC"), "2024-01-01"),
        (pa.timestamp("us"), "2024-01-01 00:00:00Z"),
        (pa.binary(), "a"),
    ],
)
def test_values_on_which_readers_may_differ_are_refused(kind: pa.DataType, text: str) -> None:
    with pytest.raises(UnlikeSparkError):
        as_parsed(pa.chunked_array([[text]], pa.string()), kind)


@pytest.mark.parametrize(
    "lines",
    [b'"1""2"\n', b"1\\,2\n", b'1"2"\n', b'"1"2\n', b'"1\n2"\n', b"1\r2\n", b"1,2\n", b"\xff\n"],
)
def test_lines_on_which_readers_may_differ_are_refused(tmp_path: Path, lines: bytes) -> None:
    text = TextFormat("csv", ("a",), header=False, separator=",")
    path = written(tmp_path, "x.csv", lines)
    with pytest.raises(UnlikeSparkError):
        list(text.read(pieces_of(path, 1)[0], pa.schema({"a": pa.string()})))


def test_stored_columns_widen_only_as_in_spark() -> None:
    narrow = pa.chunked_array([[1, None]], pa.int32())
    assert as_stored(narrow, pa.int64(), instants=False).to_pylist() == [1, None]
    naive = pa.chunked_array([[1]], pa.timestamp("us"))
    zoned = pa.timestamp("us", "UTC")
    assert as_stored(naive, zoned, instants=True).cast(pa.int64()).to_pylist() == [1]
    for column, kind in ((naive, zoned), (narrow, pa.int8()), (narrow, pa.string())):
        with pytest.raises(UnlikeSparkError):
            as_stored(column, kind, instants=False)


def test_formats_and_paths_are_checked_when_described() -> None:
    with pytest.raises(DataError, match="did you mean parquet"):
        muntin.files("x", "parket")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="there are no paths"):
        muntin.files([])
    described = muntin.files([Path("a"), "b"], "csv", sep=";", header=False)
    assert described.paths == ("a", "b")
    options = {"header": "false", "enforceSchema": "false", "inferSchema": "true", "sep": ";"}
    assert dict(described.options) == options
