"""The store of one set of partials: merged or in logs, it holds the same."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.rows.scopes import planned, table
from muntin.engine.rows.stage_a import StageA
from muntin.engine.slices.partials import PartialBatch, merge, nothing
from muntin.engine.slices.store import BEGINNING, END, REMEMBERED, SliceStore, pays_to_move
from muntin.plan.nodes import Partials

GROUPED = "SELECT v, w, count(*) AS n, max(v) AS m {{window}} {} GROUP BY v, w"
PLANS = {
    "groups": [GROUPED.format("")],
    "cells": [GROUPED.format("WHERE v > 3"), GROUPED.format("WHERE v > 5")],
    "one": ["SELECT count(*) AS n {window}"],
}


def node_and_batches(kind: str, seed: int) -> tuple[Partials, list[PartialBatch]]:
    named = [f"CREATE QUERY q{n} AS {select}" for n, select in enumerate(PLANS[kind])]
    plan = planned(*named)
    rows, stage = table(seed, 300), StageA(plan)
    size = random.Random(seed).choice([7, 20, 60])
    return plan.partials[0], [
        stage(rows.slice(at, size)).partials[0] for at in range(0, rows.num_rows, size)
    ]


def content(node: Partials, batches: list[PartialBatch]) -> Any:
    """Counts by slice, group and code."""
    whole = merge(node, batches or [nothing(node)])
    batch = whole.as_batch()
    keys = zip(*(key.to_pylist() for key in batch.keys), strict=True) if batch.keys else None
    codes = [0] * batch.starts.size if batch.codes is None else batch.codes.tolist()
    places = zip(batch.starts.tolist(), keys or codes, codes, strict=True)
    return dict(zip(places, batch.columns[0].to_arrow()["count"].to_pylist(), strict=True))


@pytest.mark.parametrize("kind", PLANS)
@pytest.mark.parametrize("moves", [True, False])
def test_it_holds_what_came_since_what_was_forgotten(kind: str, moves: bool) -> None:
    node, batches = node_and_batches(kind, 4)
    store, moved, frontier = SliceStore(node), 0, BEGINNING
    if moves:
        store.keep_log()
    for number, batch in enumerate(batches):
        store.add(batch)
        frontier = int(batch.starts.min()) if batch.starts.size else frontier
        store.seal(frontier, may_move=moves)
        store.evict(frontier - 10)
        moved += store.moving is not None
        kept = [each.between(frontier - 10, END) for each in batches[: number + 1]]
        assert content(node, [store.table().as_batch()]) == content(node, kept)
        assert content(node, [store.changed(frontier)]) == content(
            node, [each.between(frontier, END) for each in kept]
        )
        assert store.entries == len(content(node, kept))
        assert store.holds_rows
        assert store.evicted == frontier - 10
    assert bool(moved) == moves
    store.seal(END, may_move=moves)
    store.evict(END)
    assert (store.size, store.entries, store.groups, store.slices) == (0, 0, 0, 0)
    assert not store.holds_rows


def test_finals_move_on_where_news_are_few() -> None:
    assert pays_to_move(20, 21)
    assert not pays_to_move(20, 20)
    assert not pays_to_move(0, 16)
    node, batches = node_and_batches("groups", 6)
    store = SliceStore(node)
    for batch in batches[:-1]:
        store.add(batch)
    store.seal(5)
    assert store.moving is None
    store.table()
    store.add(batches[-1])
    store.seal(10)
    assert store.moving is not None
    assert store.frontier == 10
    # More than all that is kept: it is merged, and answered from the whole.
    for batch in [*batches, *batches]:
        store.add(replace(batch, starts=batch.starts + 100))
    store.seal(15)
    assert store.moving is None
    assert store.frontier == BEGINNING


def test_parts_stay_apart_until_something_is_whole() -> None:
    node, batches = node_and_batches("groups", 8)
    store = SliceStore(node)
    for number, batch in enumerate(batches):
        store.add(replace(batch, part=number % 2))
    parts = store.parts()
    assert parts is not None
    assert [len({each.part for each in part}) for part in parts] == [1, 1]
    store.add(batches[0])
    assert store.parts() is None


def test_marks_are_the_lowest_tick_since_and_are_few() -> None:
    node, batches = node_and_batches("groups", 9)
    store, low = SliceStore(node), END
    store.mark(b"first", 3)
    for batch in batches[3:]:
        store.add(batch)
        low = min(low, int(batch.starts.min()))
        assert store.marks[b"first"] == (3, low)
    store.mark(b"second", 1)
    assert store.marks[b"second"] == (1, END)
    assert store.carried(node).marks is store.marks
    whole = store.table()
    assert not store.replaced(node, whole, [], [], []).marks
    for number in range(REMEMBERED):
        store.mark(str(number).encode(), 0)
    assert len(store.marks) == REMEMBERED
    assert b"first" not in store.marks


def test_a_sealed_slice_takes_nothing_more() -> None:
    """What comes below the frontier goes to the first slice that is open."""
    node, batches = node_and_batches("one", 5)
    store = SliceStore(node)
    for batch in batches:
        store.add(batch)
    store.keep_log()
    store.seal(20)
    before = content(node, [store.table().as_batch().between(BEGINNING, 20)])
    late = batches[0]
    total = sum(content(node, [store.changed(20)]).values())
    store.mark(b"now", 0)
    store.add(late)
    assert content(node, [store.table().as_batch().between(BEGINNING, 20)]) == before
    came = int(np.sum(late.columns[0].to_arrow()["count"].to_numpy()))
    assert sum(content(node, [store.changed(20)]).values()) == total + came
    assert store.marks[b"now"] == (0, 20)
