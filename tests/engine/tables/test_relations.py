"""Joins with tables: every join equals DuckDB's own, and what comes out is what was asked for."""

from collections.abc import Iterable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from muntin.engine.tables.loops import check_long
from muntin.engine.tables.relations import Joined, Joiner
from muntin.errors import DataError
from muntin.plan.relations import Relation, relate
from muntin.queries import queries

NAN = float("nan")


def relation_of(joins: str, stream: pa.Table, tables: dict[str, pa.Table]) -> Relation:
    text = f"SELECT count(*) AS n FROM s [RANGE 5 SLIDE 5] {joins}"
    (query,) = queries(text)
    schemas = {name: table.schema for name, table in tables.items()}
    return relate(query, stream.schema, schemas)[0]


def joined(joins: str, stream: pa.Table, *columns: str, **tables: pa.Table) -> Joined:
    relation = relation_of(joins, stream, tables)
    return Joiner(relation, tables, columns or relation.schema.names)(stream)


def sorted_rows(table: pa.Table) -> list[tuple[str, ...]]:
    return sorted(tuple(map(repr, row.values())) for row in table.to_pylist())


def check_against_duckdb(joins: str, stream: pa.Table, **tables: pa.Table) -> Joined:
    """The joiner's rows are DuckDB's, and say which row of the input they come from."""
    stream = stream.append_column("at", pa.array(np.arange(stream.num_rows)))
    result = joined(joins, stream, **tables)
    connection = duckdb.connect()
    for name, table in {"s": stream, **tables}.items():
        connection.register(name, table)
    expected = connection.sql(f"SELECT * FROM s {joins}").to_arrow_table()
    assert sorted_rows(result.batch) == sorted_rows(
        expected.rename_columns(result.batch.column_names)
    )
    rows = np.arange(stream.num_rows) if result.rows is None else result.rows
    assert result.batch.column("at").to_pylist() == rows.tolist()
    assert (np.diff(rows) >= 0).all()
    return result


def column(rng: np.random.Generator, kind: str, rows: int, domain: int) -> pa.Array:
    """Random values of a kind, a tenth of them NULL."""
    numbers = rng.integers(0, domain, rows)
    values: dict[str, Iterable[Any]] = {
        "int": numbers,
        "sparse": numbers * 10**15 - 5 * 10**16,
        "float": numbers / 4 - 1,
        "short": [f"S{number}" for number in numbers],
        "long": [f"{'prefix' * (number % 3)}{number}" for number in numbers],
        "bool": numbers % 2 == 0,
        "date": numbers.astype("datetime64[D]"),
    }
    return pa.array(values[kind], mask=rng.random(rows) < 0.1)


KINDS = ["int", "sparse", "float", "short", "long", "bool", "date"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN"])
def test_one_key(kind: str, join: str) -> None:
    rng = np.random.default_rng(7)
    for rows, size, domain in [(300, 60, 40), (300, 20, 500), (50, 0, 5), (0, 9, 5), (1, 1, 1)]:
        stream = pa.table({"k": column(rng, kind, rows, domain), "v": rng.random(rows)})
        table = pa.table(
            {
                "k": column(rng, kind, size, domain),
                "w": column(rng, "float", size, 9),
                "b": column(rng, "bool", size, 9),
                "t": column(rng, "long", size, 9),
            }
        )
        check_against_duckdb(f"{join} c ON s.k = c.k", stream, c=table)


@pytest.mark.parametrize("seed", range(12))
def test_chains_over_several_columns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = [str(kind) for kind in rng.choice(KINDS, 3)]

    def table(rows: int) -> pa.Table:
        keys = {f"k{i}": column(rng, kind, rows, 6) for i, kind in enumerate(kinds)}
        return pa.table(keys | {"x": column(rng, "int", rows, 30)})

    stream, tables = table(200), {name: table(int(rng.integers(0, 25))) for name in "abc"}
    first, second, third = rng.choice(["JOIN", "LEFT JOIN"], 3)
    check_against_duckdb(
        f"{first} a ON s.k0 = a.k0 {second} b ON s.k0 = b.k0 AND s.k1 = b.k1"
        f" {third} c ON s.k0 = c.k0 AND a.k1 = c.k1 AND b.k2 = c.k2",
        stream,
        **tables,
    )
    check_against_duckdb(
        f"{first} a ON s.k1 = a.k1 {second} b ON s.k1 = b.k1 {third} c ON b.x + 1 = c.x",
        stream,
        **tables,
    )


def test_unique_keys_that_all_match_copy_nothing() -> None:
    stream = pa.table({"k": ["b", "a", "b"], "v": [1, 2, 3]})
    close = pa.table({"k": ["a", "b"], "w": [1.5, 2.5]})
    index = pa.table({"k": ["c", "b", "a"], "m": [True, False, True]})
    result = joined("JOIN close ON s.k = close.k JOIN i ON s.k = i.k", stream, close=close, i=index)
    assert result.rows is None
    assert result.batch.column("close.w").to_pylist() == [2.5, 1.5, 2.5]
    assert result.batch.column("i.m").to_pylist() == [False, True, False]
    for name in ("k", "v"):
        own, given = result.batch.column(name).chunk(0), stream.column(name).chunk(0)
        addresses = [[b and b.address for b in array.buffers()] for array in (own, given)]
        assert addresses[0] == addresses[1]


def test_only_the_columns_asked_for() -> None:
    stream = pa.table({"k": [1, 2, 1], "v": [1, 2, 3], "z": [0, 0, 0]})
    table = pa.table({"k": [1], "w": ["x"], "y": [5]})
    result = joined("JOIN c ON s.k = c.k", stream, "c.w", "v", c=table)
    assert result.batch.to_pydict() == {"v": [1, 3], "c.w": ["x", "x"]}
    assert result.rows is not None
    assert result.rows.tolist() == [0, 2]
    relation = relation_of("JOIN c ON s.k = c.k", stream, {"c": table})
    empty = Joiner(relation, {"c": table}, [])(stream)
    assert (empty.batch.num_rows, empty.batch.num_columns) == (2, 0)


def test_columns_of_another_table_are_read_for_keys_only() -> None:
    stream = pa.table({"k": [1, 2, 3]})
    first, second = pa.table({"k": [1, 2], "m": [8, 9]}), pa.table({"m": [9, 8], "w": ["i", "h"]})
    joins = "JOIN a ON s.k = a.k LEFT JOIN b ON a.m = b.m"
    result = joined(joins, stream, "k", "b.w", a=first, b=second)
    assert result.batch.to_pydict() == {"k": [1, 2], "b.w": ["h", "i"]}


def test_duplicates_come_in_the_order_of_the_table() -> None:
    stream = pa.table({"k": ["b", "a", "x"]})
    table = pa.table({"k": ["a", "b", "a", "b", "a"], "w": [5, 4, 3, 2, 1]})
    result = joined("LEFT JOIN c ON s.k = c.k", stream, c=table)
    assert result.batch.column("c.w").to_pylist() == [4, 2, 5, 3, 1, None]
    assert result.rows is not None
    assert result.rows.tolist() == [0, 0, 1, 1, 1, 2]


def test_nan_and_zeros_are_equal_to_themselves_and_null_to_nothing() -> None:
    odd_nan = np.array([0x7FF8000000000123], np.int64).view(np.float64)[0]
    for kind in (pa.float64(), pa.float32()):
        stream = pa.table({"k": pa.array([odd_nan, -0.0, None, 0.0, 1.0], kind)})
        table = pa.table({"k": pa.array([0.0, NAN, None], kind), "w": ["zero", "nan", "null"]})
        result = joined("LEFT JOIN c ON s.k = c.k", stream, "c.w", c=table)
        assert result.batch.column("c.w").to_pylist() == ["nan", "zero", None, "zero", None]


def typed(values: list[int | None], kind: pa.DataType) -> pa.Array:
    return pa.nulls(len(values)) if kind == pa.null() else pa.array(values, pa.int8()).cast(kind)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.int8(), pa.int64()),
        (pa.int64(), pa.float64()),
        (pa.uint64(), pa.int32()),
        (pa.decimal128(10, 2), pa.int32()),
        (pa.decimal128(5, 1), pa.decimal128(20, 3)),
        (pa.float32(), pa.decimal128(5, 1)),
        (pa.null(), pa.int32()),
        (pa.null(), pa.null()),
    ],
)
def test_keys_of_different_types(left: pa.DataType, right: pa.DataType) -> None:
    stream = pa.table({"k": typed([1, 2, None, 3], left)})
    table = pa.table({"k": typed([3, 1, None], right), "w": ["three", "one", "null"]})
    result = joined("LEFT JOIN c ON s.k = c.k", stream, "c.w", c=table)
    matches = [None] * 4 if pa.null() in (left, right) else ["one", None, None, "three"]
    assert result.batch.column("c.w").to_pylist() == matches


def test_stored_types_and_chunks() -> None:
    stream = pa.table({"k": pa.chunked_array([["a", "b"], [], ["b"]]).dictionary_encode()})
    table = pa.table(
        {
            "k": pa.array(["b", "c", "a"], pa.large_string()),
            "w": pa.chunked_array([["x"], ["y", "z"]]).dictionary_encode(),
        }
    )
    result = joined("JOIN c ON s.k = c.k", stream, c=table)
    assert result.batch.column("c.w").to_pylist() == ["z", "x", "x"]
    assert result.batch.schema.field("c.w").type == table.schema.field("w").type
    times = pa.array([1_500, 2_000], pa.timestamp("ns"))
    stream = pa.table({"t": pa.array([1, 2, 3], pa.timestamp("us"))})
    result = joined("JOIN c ON s.t = c.t", stream, "t", c=pa.table({"t": times}))
    assert result.rows is not None
    assert result.rows.tolist() == [0, 1]


def test_sliced_columns_and_long_strings() -> None:
    words = [f"{'long' * (i % 5)}-{i % 37}" for i in range(400)]
    stream = pa.table({"k": words}).slice(13, 250)
    table = pa.table({"k": sorted(set(words))}).slice(3, 120)
    check_against_duckdb("JOIN c ON s.k = c.k", stream, c=table)
    check_against_duckdb("LEFT JOIN c ON s.k = c.k", stream, c=table)


def test_strings_at_odd_addresses() -> None:
    words = [f"w{i % 23}" * (1 + i % 3) for i in range(200)]
    ends = np.cumsum([3, *map(len, words)]).astype(np.int32)
    data = pa.py_buffer(b"???" + "".join(words).encode())
    for shift in range(4):
        buffers = [None, pa.py_buffer(ends - shift), data.slice(shift)]
        keys = pa.Array.from_buffers(pa.string(), len(words), buffers)
        table = pa.table({"k": sorted(set(words))[2:]})
        check_against_duckdb("LEFT JOIN c ON s.k = c.k", pa.table({"k": keys}), c=table)


def test_short_strings_at_odd_addresses() -> None:
    words = [None if i % 11 == 5 else f"w{i % 23}" * (i % 3) for i in range(200)]
    words[-1] = "wordwordword"
    ends = np.cumsum([3, *(len(word or "?") for word in words)]).astype(np.int32)
    data = pa.py_buffer(b"???" + "".join(word or "?" for word in words).encode())
    valid = pa.array([word is not None for word in words]).buffers()[1]
    for shift, last in ((0, 0), (1, 0), (2, 1), (3, 1)):
        buffers = [valid, pa.py_buffer(ends - shift), data.slice(shift)]
        keys = pa.Array.from_buffers(pa.string(), len(words) - last, buffers)
        known = sorted({word for word in words if word is not None and len(word) < 7})
        for table in (pa.table({"k": known[2:]}), pa.table({"k": [*known[:5], None]})):
            check_against_duckdb("LEFT JOIN c ON s.k = c.k", pa.table({"k": keys}), c=table)
            check_against_duckdb("JOIN c ON s.k = c.k", pa.table({"k": keys}), c=table)


def test_long_strings_that_share_a_hash_are_told_apart() -> None:
    data, ends = np.frombuffer(b"long enough" * 2 + b"long enougj", np.uint8), np.arange(0, 34, 11)
    codes, keys = np.array([0, 0, 0], np.int32), np.array([-5, -5, -5])
    misses = check_long(codes, keys, ends, data, ends[:2], data[:11], 1)
    assert (codes.tolist(), misses) == ([0, 0, 1], 1)


def test_keys_over_expressions() -> None:
    stream = pa.table({"k": ["ab", "CD", None, "ef"], "n": [1, 0, 2, 4]})
    table = pa.table({"k": ["AB", "CD", "XY"], "w": [1, 2, 3]})
    check_against_duckdb("LEFT JOIN c ON upper(s.k) = c.k", stream, c=table)
    result = joined("LEFT JOIN c ON 4 div n = c.w", stream, "c.k", c=table)
    assert result.batch.column("c.k").to_pylist() == [None, None, "CD", "AB"]
    assert result.errors == 1


def test_keys_that_are_constants() -> None:
    stream = pa.table({"k": ["a", "b", "a"]})
    table = pa.table({"k": ["a", "b", "a"], "kind": [1, 1, 2]})
    check_against_duckdb("LEFT JOIN c ON s.k = c.k AND c.kind = 2", stream, c=table)
    check_against_duckdb("JOIN c ON s.k = c.k AND c.kind = '1'", stream, c=table)


def test_a_table_joined_with_itself() -> None:
    rng = np.random.default_rng(3)
    stream = pa.table({"k": column(rng, "short", 100, 9)})
    table = pa.table({"k": column(rng, "short", 12, 9), "up": column(rng, "short", 12, 9)})
    check_against_duckdb("JOIN c a ON s.k = a.k LEFT JOIN c b ON a.up = b.k", stream, c=table)


def test_the_stream_alone() -> None:
    stream = pa.table({"k": [1, 2], "v": [3, 4]})
    result = Joiner(Relation((), stream.schema), {}, ["v"])(stream)
    assert (result.batch.to_pydict(), result.rows) == ({"v": [3, 4]}, None)


def test_versions_that_do_not_fit_are_refused() -> None:
    stream, table = pa.table({"k": [1]}), pa.table({"k": [1], "w": [1.5]})
    relation = relation_of("JOIN c ON s.k = c.k", stream, {"c": table})
    other = table.set_column(1, "w", pa.array(["x"]))
    for given in ({}, {"c": table.drop_columns("k")}, {"c": other}):
        with pytest.raises(DataError) as caught:
            Joiner(relation, given, relation.schema.names)
        assert caught.value.hint
    less = Joiner(relation, {"c": table.select(["k"])}, relation.schema.names)
    with pytest.raises(DataError, match=r"there is no column c\.w"):
        less(stream)
