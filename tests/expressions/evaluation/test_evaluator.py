"""What comes in and out of the evaluator, whatever the batch looks like."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal

import pyarrow as pa
import pytest

from muntin.errors import DataError
from muntin.expressions import BindingError, Evaluator, bind_text


def run(batch: pa.Table | pa.RecordBatch, *texts: str) -> list[tuple[list[object], object]]:
    bounds = [bind_text(text, batch.schema) for text in texts]
    found = []
    for bound, result in zip(bounds, Evaluator(bounds)(batch), strict=True):
        assert isinstance(result.values, pa.Array)
        assert result.values.type == bound.type
        assert len(result.values) == batch.num_rows
        result.values.validate(full=True)
        errors = None if result.errors is None else result.errors.to_pylist()
        found.append((result.values.to_pylist(), errors))
    return found


def values(batch: pa.Table | pa.RecordBatch, text: str) -> list[object]:
    return run(batch, text)[0][0]


BATCH = pa.table({"a": [6, 7, None], "b": [2, 0, 1], "s": ["x", None, "é"]})


def test_errors_are_null_and_marked() -> None:
    [(found, errors)] = run(BATCH, "a / b")
    assert found == [3.0, None, None]
    assert errors == [False, True, False]


def test_no_error_no_mask() -> None:
    assert run(BATCH, "a + b") == [([8, 7, None], None)]


def test_lazy_operators_do_not_fail() -> None:
    guarded = ["b <> 0 and a / b > 1", "b = 0 or a / b > 1", "case when b <> 0 then a / b end"]
    guarded += ["coalesce(b, a / b)", "if(b = 0, 0, a / b)", "a / nullif(b, 0)"]
    assert [errors for _, errors in run(BATCH, *guarded)] == [None] * len(guarded)


def test_null_ends_the_evaluation_of_operands() -> None:
    batch = pa.table({"n": pa.array([None], pa.int64()), "z": [0]})
    assert run(batch, "n + 1 div z") == [([None], None)]
    assert run(batch, "1 div z + n") == [([None], [True])]


def test_constants_are_as_long_as_the_batch() -> None:
    assert run(BATCH, "1 + 1", "'x'", "null", "1 / 0") == [
        ([2, 2, 2], None),
        (["x", "x", "x"], None),
        ([None, None, None], None),
        ([None, None, None], [True, True, True]),
    ]


def test_batch_without_columns_has_rows() -> None:
    batch = pa.record_batch({"a": [1, 2]}).select([])
    assert values(batch, "40 + 2") == [42, 42]


@pytest.mark.parametrize("batch", [BATCH.slice(0, 0), BATCH.schema.empty_table()])
def test_empty_batch(batch: pa.Table) -> None:
    assert run(batch, "a / b", "a", "1", "1 / 0", "upper(s)") == [([], None)] * 5


def test_record_batch_and_slices() -> None:
    batch = BATCH.to_batches()[0].slice(1)
    assert run(batch, "b + 1", "s", "s = 'é'") == [
        ([1, 2], None),
        ([None, "é"], None),
        ([None, True], None),
    ]


def test_no_expressions() -> None:
    assert Evaluator([])(BATCH) == []


def test_plain_column_is_not_copied() -> None:
    [result] = Evaluator([bind_text("B", BATCH.schema)])(BATCH)
    source = BATCH.column("b").chunk(0)
    assert result.values.buffers()[1].address == source.buffers()[1].address


def test_evaluator_pickles() -> None:
    evaluator = pickle.loads(pickle.dumps(Evaluator([bind_text("a div b", BATCH.schema)])))
    assert evaluator(BATCH)[0].values.to_pylist() == [3, None, None]


def test_one_evaluator_many_batches() -> None:
    evaluator = Evaluator([bind_text("a + 1", BATCH.schema)])
    for rows in (3, 1, 0, 2):
        assert evaluator(BATCH.slice(0, rows))[0].values.to_pylist() == [7, 8, None][:rows]


def test_other_columns_do_not_matter() -> None:
    nested = BATCH.append_column("n", pa.array([[1], None, []]))
    assert values(nested, "a + 1") == [7, 8, None]


@pytest.mark.parametrize(
    ("column", "text", "expected"),
    [
        (pa.array(["a", None, "b"]).dictionary_encode(), "upper(x)", ["A", None, "B"]),
        (pa.array(["a", None, "b"]).dictionary_encode(), "x", ["a", None, "b"]),
        (pa.array(["a", None], pa.large_string()), "x", ["a", None]),
        (pa.array(["a", None], pa.string_view()), "x || 'c'", ["ac", None]),
        (pa.array([255, None], pa.uint8()), "x + x", [510, None]),
        (pa.array([2**32 - 1], pa.uint32()), "x + 1", [2**32]),
        (pa.array([2**64 - 1], pa.uint64()), "x + 1", [Decimal(2**64)]),
        (pa.array([2**64 - 1], pa.uint64()), "x", [Decimal(2**64 - 1)]),
        (pa.array([b"ab", None], pa.binary(2)), "length(x)", [2, None]),
        (pa.array([0, 86_400_000], pa.date64()), "day(x)", [1, 2]),
        (pa.array([1, -1, -1000, -1001, None], pa.timestamp("ns")), "unix_micros(x)", None),
        (pa.array([None, None]), "x is null", [True, True]),
        (pa.array([None, None]), "coalesce(x, 1)", [1, 1]),
        (pa.array([None, None]), "x", [None, None]),
    ],
)
def test_stored_types(column: pa.Array, text: str, expected: list[object] | None) -> None:
    expected = [0, -1, -1, -2, None] if expected is None else expected
    assert values(pa.table({"x": column}), text) == expected


def test_timestamps_are_floored_and_keep_their_zone() -> None:
    column = pa.array([-1, 999, 1000], pa.timestamp("ns", "Asia/Tokyo"))
    [result] = Evaluator([bind_text("x", pa.schema([("x", column.type)]))])(pa.table({"x": column}))
    assert result.values.type == pa.timestamp("us", "Asia/Tokyo")
    assert result.values.cast(pa.int64()).to_pylist() == [-1, 0, 1]


def test_hours_are_in_utc_whatever_the_zone() -> None:
    moment = dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC)
    batch = pa.table({"x": pa.array([moment], pa.timestamp("us", "Asia/Tokyo"))})
    assert values(batch, "hour(x)") == [12]
    assert values(batch, "x = '2020-01-01 21:00:00+09:00'") == [True]


def test_timestamp_out_of_range() -> None:
    batch = pa.table({"x": pa.array([2**62], pa.timestamp("s"))})
    with pytest.raises(DataError, match="microseconds"):
        values(batch, "x")


def test_extreme_times_do_not_panic() -> None:
    lowest, highest = -(2**63), 2**63 - 1
    batch = pa.table({"x": pa.array([lowest, highest], pa.timestamp("us"))})
    assert values(batch, "year(x)") == [-290308, 294247]
    assert run(batch, "date_trunc('year', x) is null") == [([None, False], [True, False])]
    days = pa.table({"d": pa.array([-(2**31), 2**31 - 1], pa.date32())})
    assert values(days, "month(d)") == [6, 7]


def test_long_chains_and_wide_expressions() -> None:
    schema = BATCH.schema
    assert values(BATCH, " and ".join(f"a <> {i}" for i in range(100, 1100))) == [True, True, None]
    failing = " or ".join(f"a div b = {i}" for i in range(100, 1100))
    assert run(BATCH, failing) == [([False, None, None], [False, True, False])]
    branches = " ".join(f"when a = {i} then {i} div b" for i in range(300))
    assert run(BATCH, f"case {branches} end") == [([3, None, None], [False, True, False])]
    assert bind_text(f"case {branches} end", schema).key.count("CASE") == 1
    listed = ", ".join(map(str, range(7, 3000)))
    assert values(BATCH, f"a in ({listed})") == [False, True, None]
    assert values(BATCH, " || ".join(["s"] * 200))[0] == "x" * 200


def test_depth_is_limited_with_a_clear_error() -> None:
    assert values(BATCH, "a" + " + 1" * 90) == [96, 97, None]
    assert values(BATCH, "a" + " % 1000" * 90) == [6, 7, None]
    with pytest.raises(BindingError, match="more than 100 levels"):
        bind_text("a" + " + 1" * 200, BATCH.schema)
    with pytest.raises(BindingError, match="too deeply"):
        bind_text("(" * 5000 + "a" + ")" * 5000, BATCH.schema)


def test_deep_expressions_pickle() -> None:
    bound = bind_text("a" + " + 1" * 95, BATCH.schema)
    assert pickle.loads(pickle.dumps(bound)) == bound
