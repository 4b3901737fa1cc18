"""The numbering of entries, against dictionaries."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from engine.rows.scopes import cut_of, planned, scope_of, table
from muntin.engine.rows.entries import (
    ascending,
    distinct_in_order,
    find_entries,
    number_cells,
    number_neighbours,
    number_rare_cells,
    number_runs,
)
from muntin.engine.rows.selection import Selector


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize(
    ("selects", "options"),
    [
        (["SELECT sum(v) {window}"], {}),
        (["SELECT sum(v) {window} WHERE 1 = 0"], {}),
        (["SELECT k, sum(v) {window} GROUP BY k"], {}),
        (["SELECT sum(v) {window} WHERE v > 3", "SELECT sum(v) {window} WHERE v > 5"], {}),
        (["SELECT k, sum(v) {window} WHERE v > 3 GROUP BY k"] * 2, {"strategy": "fragments"}),
        (
            [f"SELECT k, sum(v) {{window}} WHERE v > {n} AND w < {n} GROUP BY k" for n in range(5)],
            {},
        ),
        ([f"SELECT sum(v) {{window}} WHERE v > {n}" for n in range(5)], {"strategy": "shards"}),
    ],
)
def test_every_row_has_the_entry_of_its_slice_group_and_code(
    selects: list[str], options: dict[str, Any], in_order: bool
) -> None:
    named = [f"CREATE QUERY q{n} AS {select}" for n, select in enumerate(selects)]
    plan, rows = planned(*named, **options), table(3, 200, in_order=in_order)
    scope, cut = scope_of(plan, rows), cut_of(rows)
    for node in plan.partials:
        selector = Selector(node.selection)
        entries = find_entries(node, selector, cut, scope)
        selected = selector.codes(scope)
        where = selector.where(scope) if selected is None else None
        groups = scope.groups(node.grouping).codes
        seen = set()
        for row, entry in enumerate(entries.ids.tolist()):
            code = None if selected is None else int(selected.codes[row])
            if code == -1 or (where is not None and not where[row]):
                assert entry == -1
                continue
            assert entries.slices[entry] == cut.slices[row]
            assert entries.groups[entry] == groups[row]
            assert code is None or (entries.codes is not None and entries.codes[entry] == code)
            seen.add(entry)
        triples = zip(
            entries.slices.tolist(),
            entries.groups.tolist(),
            [0] * entries.slices.size if entries.codes is None else entries.codes.tolist(),
            strict=True,
        )
        assert len(set(triples)) == entries.slices.size
        assert seen == set(range(entries.slices.size))


@pytest.mark.parametrize("seed", range(5))
def test_cells_of_rows_slice_by_slice(seed: int) -> None:
    rng = random.Random(seed)
    size = rng.choice([1, 7, 8, 9, 40])
    slices = sorted(rng.randrange(6) for _ in range(60))
    codes = [rng.randrange(-1, size) for _ in slices]
    ids, owners, found = number_cells(np.array(slices), np.array(codes), size)
    pairs = sorted({(s, c) for s, c in zip(slices, codes, strict=True) if c >= 0})
    assert list(zip(owners.tolist(), found.tolist(), strict=True)) == pairs
    wanted = [-1 if c < 0 else pairs.index((s, c)) for s, c in zip(slices, codes, strict=True)]
    assert ids.tolist() == wanted
    ids, owners, found = number_rare_cells(np.array(slices), np.array(codes), size)
    listed = list(zip(owners.tolist(), found.tolist(), strict=True))
    assert listed == sorted(listed, key=lambda each: each[0])
    assert sorted(listed) == pairs
    wanted = [-1 if c < 0 else listed.index((s, c)) for s, c in zip(slices, codes, strict=True)]
    assert ids.tolist() == wanted


def test_rows_out_of_order_or_without_a_slice_are_left_to_others() -> None:
    codes = np.zeros(3, np.int64)
    for slices in ([1, 0, 0], [-1, 0, 1]):
        assert number_cells(np.array(slices), codes, 1)[0].size == 0
        assert number_rare_cells(np.array(slices), codes, 1)[0].size == 0
    assert number_runs(np.array([3, 2]))[0].size == 0
    ids, starts = number_runs(np.array([-5, -5, 0, 7, 7]))
    assert (ids.tolist(), starts.tolist()) == ([0, 0, 1, 2, 2], [-5, 0, 7])


@pytest.mark.parametrize("coded", [True, False])
def test_entries_in_order_and_different_ones(coded: bool) -> None:
    rng = random.Random(6)
    for _ in range(50):
        size = rng.randrange(8)
        triples = [tuple(rng.randrange(2) for _ in range(3)) for _ in range(size)]
        if rng.random() < 0.5:
            triples.sort()
        kept = triples if coded else [(*each[:2], 0) for each in triples]
        groups, starts, codes = np.array(kept, np.int64).reshape(-1, 3).T.copy()
        codes = codes if coded else np.empty(0, np.int64)
        rises = all(one < other for one, other in pairwise(kept))
        assert ascending(groups, starts, codes) == rises
        order = np.array(sorted(range(size), key=kept.__getitem__), np.int64)
        numbers, firsts = distinct_in_order(order, groups, starts, codes)
        distinct = sorted(set(kept))
        assert [distinct[number] for number in numbers] == kept
        assert [kept[first] for first in firsts] == distinct


def test_neighbours() -> None:
    numbers, begins = number_neighbours(np.array([1, 1, 1, 2, 2]), np.array([4, 4, 5, 5, 5]))
    assert (numbers.tolist(), begins.tolist()) == ([0, 0, 1, 2, 2], [0, 2, 3])
