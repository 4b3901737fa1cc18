"""The parts of the streaming comparison that need no Spark: rates, files, and who holds one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from muntin_bench.peers import stream as streams
from muntin_bench.peers.stream import Held, StreamScale, queries_of
from muntin_bench.peers.stream_sides import Feed


@pytest.mark.parametrize(
    ("latencies", "held"),
    [((1.0,) * 8, True), ((5.0, 2.0, 1.0, 1.0, 1.0, 1.2, 1.1, 1.3), True), (range(1, 21), False)],
)
def test_a_rate_is_held_if_lag_does_not_grow(latencies, held: bool) -> None:
    assert Held(100, tuple(map(float, latencies))).is_held == held


def test_queries_have_different_windows() -> None:
    asked = queries_of(16)
    assert len({(query.range, query.slide) for query in asked}) == 16
    assert all(query.range % query.slide == 0 for query in asked)


def test_times_go_on_from_file_to_file(tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in")
    feed.put(50, 2)
    feed.put(30, 1)
    first, second = (pq.read_table(path) for path in sorted(feed.folder.glob("*.parquet")))
    assert feed.rows == first.num_rows + second.num_rows == 80
    ticks = pa.concat_tables([first, second]).column("ts").cast(pa.int64()).to_pylist()
    assert ticks == sorted(ticks)
    assert ticks[-1] - ticks[0] < 3_000_000


@pytest.mark.parametrize(
    ("limit", "tried", "best"),
    [
        (200, [100, 150, 225], 150),
        (60, [100, 70, 49], 49),
        (10_000, [100, 150, 225, 338], 338),
        (1, [100, 70, 49, 34], None),
    ],
)
def test_rates_go_up_while_they_are_held_and_down_until(
    monkeypatch: pytest.MonkeyPatch, limit: int, tried: list[int], best: int | None
) -> None:
    def hold(_, rate: int, seconds: int) -> Held:
        growth = 0.0 if rate <= limit else 1.0
        return Held(rate, tuple(1 + growth * second for second in range(seconds)))

    monkeypatch.setattr(streams, "_hold", hold)
    found, rates = streams._highest(None, 100, StreamScale(), "someone")
    assert (found, [each.rate for each in rates]) == (best, tried)
