"""What peers are asked is seeded, and the same for all of them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import muntin
from muntin_bench.peers.data import bids, keyed, trades
from muntin_bench.peers.questions import FULL, QUICK, TINY, predicates, questions, windows


@pytest.mark.parametrize(
    "make", [lambda: bids(500, 20), lambda: keyed(500, 7), lambda: trades(500, 9)]
)
def test_rows_are_seeded_in_order_and_on_whole_milliseconds(make) -> None:
    data = make()
    rows = data.make()
    assert rows.equals(make().make())
    assert rows.num_rows == data.rows == 500
    ticks = rows.column("ts").cast(pa.int64())
    assert ticks.to_pylist() == sorted(ticks.to_pylist())
    assert all(tick % 1000 == 0 for tick in ticks.to_pylist())


def test_half_of_the_bids_are_for_a_hot_auction() -> None:
    auctions = bids(20_000, 20).make().column("auction").to_pylist()
    hot = sum(auction % 100 == 0 for auction in auctions)
    assert 0.45 < hot / len(auctions) < 0.6
    assert min(auctions) >= 0


def test_windows_are_all_different_and_whole_multiples() -> None:
    asked = windows(1024)
    assert len({(query.range, query.slide) for query in asked}) == 1024
    assert all(query.range % query.slide == 0 for query in asked)
    assert asked[:16] == windows(16)
    assert windows(16, seed=1) != windows(16)


def test_predicates_are_all_different() -> None:
    asked = predicates(64)
    assert len({query.where for query in asked}) == 64
    assert any(query.range % query.slide for query in asked)


@pytest.mark.parametrize("scale", [FULL, QUICK, TINY])
def test_questions_grow(scale) -> None:
    found = questions(scale)
    assert [question.name for question in found] == [
        "slide",
        "windows",
        "predicates",
        "groups",
        "hot_items",
        *(f"nexmark_{number}" for number in (15, 16, 17, 19)),
    ]
    for question in found:
        works = [size.work for size in question.sizes]
        assert works == sorted(works)


def test_muntin_answers_every_question() -> None:
    for question in questions(TINY):
        size = question.sizes[-1]
        text = ";".join(query.sql for query in size.queries)
        results = muntin.aggregate(size.data.make(), text, time="ts")
        assert all(results[query.name].num_rows for query in size.queries)
