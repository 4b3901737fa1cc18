"""Aggregates over joins against the enumeration of all pairs, on random streams and queries."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.oracle.random_joins import SCHEMA, JoinCase, Row, random_case, random_stream, table_of
from tests.oracle.random_joins import shown as comparable

import muntin

CASES = 24


def _rows(tables: list[pa.Table]) -> list[tuple[Any, ...]]:
    return [
        tuple(comparable(value) for value in row.values())
        for table in tables
        for row in table.to_pylist()
    ]


def _check(cases: list[JoinCase], found: list[list[tuple[Any, ...]]], streams: Any) -> None:
    for case, rows in zip(cases, found, strict=True):
        expected = case.answer(streams)
        assert len(rows) == len(set(rows)), case.sql
        assert set(rows) == expected, case.sql


def _streams(rng: Random) -> dict[str, list[Row]]:
    return {f"s{i}": random_stream(rng, rng.choice((0, 6, 14, 14)), 20) for i in range(4)}


@pytest.mark.parametrize("seed", range(6))
def test_bounded_answers_are_those_of_all_pairs(seed: int) -> None:
    rng = Random(seed)
    streams = _streams(rng)
    cases = [random_case(rng, pairs=number % 4 == 3) for number in range(CASES)]
    tables = {name: table_of(rows) for name, rows in streams.items()}
    results = muntin.aggregate(tables, [case.sql for case in cases], time="ts")
    assert {final.way for final in results.row_plan.joined} == {"sides", "pairs"}
    _check(cases, [_rows([results[name]]) for name in results], streams)


@pytest.mark.parametrize("seed", range(3))
def test_streams_give_the_same_whatever_the_batches(seed: int) -> None:
    rng = Random(100 + seed)
    streams = _streams(rng)
    cases = [random_case(rng, pairs=number % 4 == 3) for number in range(8)]
    sql = [case.sql for case in cases]
    stream = muntin.stream(sql, dict.fromkeys(streams, SCHEMA), lateness=50)
    left = {name: list(rows) for name, rows in streams.items() if rows}
    found: dict[str, list[pa.Table]] = {}

    def note(results: muntin.Results) -> None:
        for name in results:
            found.setdefault(name, []).append(results[name])

    while left:
        name = rng.choice(sorted(left))
        count = rng.randint(1, 6)
        note(stream.feed(table_of(left[name][:count]), name))
        left[name] = left[name][count:]
        if not left[name]:
            del left[name]
        if rng.random() < 0.3:
            stream = muntin.stream(
                sql, dict.fromkeys(streams, SCHEMA), lateness=50, snapshot=stream.snapshot()
            )
    for each in rng.sample(sorted(streams), len(streams)):
        note(stream.advance(rng.randint(1, 12), each))
    note(stream.advance(18))
    note(stream.close())
    _check(cases, [_rows(found[name]) for name in found], streams)
