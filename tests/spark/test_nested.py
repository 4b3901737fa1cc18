"""Parts of nested columns are Spark's: each expression, and queries over a DataFrame."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa

import muntin
from expressions.conformance import Answer, differences, plain
from muntin import pipelines
from muntin.expressions import Evaluator, bind_text
from muntin.testing import assert_same_rows
from spark.live_expressions import evaluated

INNER = pa.struct([("d", pa.date32()), ("xs", pa.list_(pa.int64()))])
ROWS = pa.table(
    {
        "ts": pa.array([0, 10**6, 2 * 10**6, 9 * 10**6], pa.timestamp("us", "UTC")),
        "l": pa.array(
            [
                {"a": 1, "B": "x", "n": {"d": dt.date(2020, 2, 29), "xs": [1, 2]}},
                None,
                {"a": None, "B": "y", "n": None},
                {"a": 4, "B": "x", "n": {"d": None, "xs": []}},
            ],
            pa.struct([("a", pa.int32()), ("B", pa.string()), ("n", INNER)]),
        ),
        "arr": pa.array([[1, 2, 3], [], None, [None]], pa.list_(pa.int64())),
        "deep": pa.array([[{"x": 1.5}], [None], [], None]),
        "v": [1, 2, 3, 4],
    }
)
TEXTS = (
    *("l['a'] + 1", "L['A']", "l['b']", "year(l['n']['d'])", "l['n']['xs'][1]", "l['n'].xs[0]"),
    *("arr[0]", "arr[2]", "arr[-1]", "element_at(arr, 1)", "element_at(arr, -1)"),
    *("element_at(arr, 0)", "try_element_at(arr, 3)", "get(arr, 1)", "get(arr, -1)"),
    *("size(arr)", "array_size(arr)", "cardinality(deep)", "size(l['n'].xs) + 1", "size(arr) > 1"),
    *("coalesce(get(arr, 1), v)", "deep[0].x", "deep[0]['x'] * 2", "v > 1 or arr[0] > 0"),
    *("arr[0] > 0 or v > 1", "arr[0] + l['a']", "l['a'] + arr[0]", "arr[0] is null"),
)
QUERIES = """
CREATE QUERY groups AS SELECT l.b, sum(l.a) AS s, max(deep[0].x) AS x
  FROM t [RANGE '5 seconds' SLIDE '5 seconds'] GROUP BY l.b;
CREATE QUERY elements AS SELECT sum(arr[0]) AS s, count(element_at(arr, -1)) AS n
  FROM t [RANGE '5 seconds' SLIDE '5 seconds'] WHERE get(arr, 0) = 1 OR t.l.a > 0;
"""


def test_parts_are_what_spark_says(spark: Any) -> None:
    theirs = evaluated(spark, ROWS, list(TEXTS))
    bounds = [bind_text(text, ROWS.schema) for text in TEXTS]
    wrong = {}
    for text, bound, one in zip(TEXTS, bounds, Evaluator(bounds)(ROWS), strict=True):
        errors = [] if one.errors is None else one.errors.to_pylist()
        failed = [row for row, error in enumerate(errors) if error]
        lines = differences(Answer(str(bound.type), plain(one.values), failed), theirs[text])
        if lines:
            wrong[text] = lines
    assert not wrong


def test_queries_over_a_dataframe(spark: Any) -> None:
    ours = muntin.aggregate(ROWS, QUERIES, time="ts")
    theirs = muntin.aggregate(spark.createDataFrame(ROWS), QUERIES, time="ts")
    for name in ("groups", "elements"):
        assert_same_rows(theirs.table(name), ours.table(name))
    assert theirs.errors == ours.errors


def test_a_stream_that_a_file_declares(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    frame = spark.createDataFrame(ROWS)
    frame.coalesce(1).write.mode("overwrite").json(str(tmp_path / "in"))
    text = f"""
        CREATE STREAM s (ts TIMESTAMP, l STRUCT<a: INT, B: STRING,
            n: STRUCT<d: DATE, xs: ARRAY<BIGINT>>>, arr ARRAY<BIGINT>)
          WITH (format = 'json', path = '{tmp_path}/in', time = 'ts');
        CREATE SINK kept WITH (format = 'memory');
        CREATE QUERY parts AS SELECT l.B AS b, sum(l.a) AS a, max(get(arr, 0)) AS m
          FROM s [RANGE '4 seconds' SLIDE '2 seconds'] GROUP BY l.B"""
    pipeline = pipelines.read(text)
    running = pipelines.run(pipeline, tmp_path / "ck", once=True, session=spark)
    assert running.await_termination(120)
    running.stop()
    ours = muntin.aggregate(ROWS, list(pipeline.queries["s"]), time="ts")
    assert_same_rows(running.sinks["s"]["kept"]["parts"], ours["parts"])
