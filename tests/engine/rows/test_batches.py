"""What cannot be fed or added is refused in plain words, and changes nothing."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from muntin.errors import DataError
from muntin.planner import build_plan
from muntin.queries import queries
from muntin.streams import LiveEngine

SQL = "CREATE QUERY a AS SELECT sum(v) AS s FROM t [RANGE '2 seconds' SLIDE '2 seconds']"
GOOD = pa.table({"ts": pa.array([0, 1_000_000], pa.timestamp("us")), "v": [1, 2]})


def engine() -> LiveEngine:
    return LiveEngine(build_plan(queries(SQL), GOOD.schema, "ts"))


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        ([{"ts": 1, "v": 2}], "not a list"),
        (GOOD.drop_columns("v"), "no column 'v'"),
        (GOOD.rename_columns(["tz", "v"]), "no column .ts."),
        (GOOD.set_column(0, "ts", pa.array(["noon", "one"])), "'ts' is of type string"),
        (GOOD.set_column(0, "ts", GOOD["ts"].cast(pa.timestamp("ms"))), r"timestamp\[ms\]"),
        (GOOD.set_column(0, "ts", pa.array([1, 2])), "is of type int64"),
    ],
)
def test_what_is_no_batch_is_refused(batch: Any, words: str) -> None:
    running = engine()
    with pytest.raises(DataError, match=words) as refused:
        running.feed(batch)
    assert "Hint: " in str(refused.value)
    running.feed(GOOD)
    assert running.close()["a"]["s"].to_pylist() == [3]
    assert running.progress().rows == 2


def test_a_zone_and_a_record_batch_are_welcome() -> None:
    running = engine()
    running.feed(GOOD.set_column(0, "ts", GOOD["ts"].cast(pa.timestamp("us", "UTC"))))
    running.feed(GOOD.to_batches()[0])
    assert running.close()["a"]["s"].to_pylist() == [6]


def test_only_a_query_can_be_added() -> None:
    running = engine()
    text: Any = SQL.replace("QUERY a", "QUERY b")
    with pytest.raises(DataError, match="not a str") as refused:
        running.add(text)
    assert "muntin.queries" in str(refused.value)
    running.add(queries(text)[0])
    running.feed(GOOD)
    assert sorted(running.close()) == ["a", "b"]
