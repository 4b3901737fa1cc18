"""Partials split into buckets and sent as bytes give the same answers."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal

import pyarrow as pa
import pytest

import muntin
from muntin.engine.rows.stage_a import StageA
from muntin.engine.state import State
from muntin.engine.wire import buckets_of, from_bytes, split, to_bytes
from muntin.errors import DataError
from muntin.plan import STRATEGIES
from muntin.planner import build_plan
from muntin.planner.placement.homes import with_homes
from muntin.queries import queries as parse
from muntin.testing import assert_same_rows
from oracle.random_queries import queries
from oracle.random_streams import stream


@pytest.mark.parametrize("seed", range(40))
def test_buckets_answer_what_one_engine_answers(seed: int) -> None:
    rng = random.Random(9000 + seed)
    table = stream(rng)
    sql = ";\n".join(query.sql for query in queries(rng, most=15))
    expected = muntin.aggregate(table, sql, time="ts")
    strategy = rng.choice(["cells", "cells", *STRATEGIES])
    plan = build_plan(parse(sql), table.schema, "ts", strategy=strategy)
    buckets = rng.choice([1, 2, 5, 16])
    codec = rng.choice([None, "lz4", "zstd"])
    plan = with_homes(plan, buckets) if rng.random() < 0.5 else plan
    states = [State(plan) for _ in range(buckets)]
    stage_a = StageA(plan)
    for batch in table.to_batches(max_chunksize=rng.choice([7, 40])):
        output = stage_a(pa.Table.from_batches([batch]))
        for bucket, some in split(plan, output.partials, buckets).items():
            states[bucket].take(from_bytes(plan, to_bytes(some, codec)), None)
    answers = [state.close().tables for state in states]
    for name in expected:
        parts = [answer[name] for answer in answers]
        assert_same_rows(pa.concat_tables(parts), expected[name])


def test_equal_keys_share_a_bucket_whatever_the_representation() -> None:
    nan, other_nan = float("nan"), -float("nan")
    doubles = pa.array([nan, other_nan, 0.0, -0.0, None, None])
    found = buckets_of([doubles], 6, 1 << 30)
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert found[4] == found[5]
    assert len(set(found.tolist())) == 3


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, None], pa.int8()),
        pa.array([True, False, None]),
        pa.array(["", "a", None], pa.large_string()),
        pa.array([b"", b"a", None]),
        pa.array([dt.date(2020, 1, 1), dt.date(2020, 1, 2), None]),
        pa.array([dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2), None]),
        pa.array([Decimal("1.10"), Decimal("1.20"), None]),
        pa.array([1.5, 2.5, None], pa.float32()),
    ],
)
def test_every_type_of_key_is_spread(values: pa.Array) -> None:
    found = buckets_of([values], 3, 1 << 30)
    assert len(set(found.tolist())) == 3
    assert buckets_of([values], 3, 1 << 30).tolist() == found.tolist()


def test_other_bytes_are_refused() -> None:
    plan = build_plan(
        parse("SELECT count(*) FROM s [RANGE 5 SLIDE 5]"), pa.schema({"ts": pa.int64()}), "ts"
    )
    with pytest.raises(DataError, match="not partials"):
        from_bytes(plan, b"nonsense")
