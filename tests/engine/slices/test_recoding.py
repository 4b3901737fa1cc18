"""Slices that were kept for some predicates, read by others."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from engine.rows.scopes import planned, table
from muntin.engine.rows.stage_a import StageA
from muntin.engine.slices.recoding import moved_codes, recoded
from muntin.engine.slices.store import BEGINNING, SliceStore
from muntin.plan import SharedPlan
from muntin.plan.selection import Cells

ROWS = table(12, 200)
SINCE = 40
WINDOWED = "CREATE QUERY {} AS SELECT count(*) AS n, sum(w) AS s {{window}} WHERE {}"


def plan_of(*predicates: str, **options: Any) -> SharedPlan:
    return planned(
        *(WINDOWED.format(f"q{n}", where) for n, where in enumerate(predicates)), **options
    )


def kept_by(plan: SharedPlan) -> SliceStore:
    store = SliceStore(plan.partials[0])
    store.add(StageA(plan)(ROWS).partials[0])
    return store


def counted(plan: SharedPlan, store: SliceStore) -> dict[str, Counter[int]]:
    """Rows by query and slice, as the entries of the store tell them."""
    batch = store.table().as_batch()
    counts = batch.columns[0].to_arrow()["count"].to_numpy()
    selection = plan.partials[0].selection
    if isinstance(selection, Cells):
        codes = np.zeros(batch.starts.size, np.int64) if batch.codes is None else batch.codes
        truth = selection.shape.truth(selection.shape.ranks_of(codes), codes.size)
    else:
        assert batch.signatures is not None
        assert batch.codes is not None
        truth = np.unpackbits(batch.signatures, axis=1, bitorder="little")[batch.codes]
    found: dict[str, Counter[int]] = {}
    for final in plan.finals:
        held = truth[:, final.member].astype(bool)
        query = found.setdefault(str(final.query.where), Counter())
        for start, count in zip(batch.starts[held].tolist(), counts[held].tolist(), strict=True):
            query[start] += count
    return found


BEFORE = ("v > 2", "v > 5 AND w < 4", "w < 6")


@pytest.mark.parametrize(
    "after",
    [
        (*BEFORE, "v > 3"),
        (*BEFORE, "v > 3 AND v + w < 9"),
        ("w < 6", "v > 2"),
        ("v > 2", "w = 5", "v > 5 AND w < 4"),
        ("v + w < 9", *BEFORE),
    ],
)
@pytest.mark.parametrize("options", [{}, {"strategy": "fragments"}])
def test_predicates_that_stay_read_the_same_rows(after: tuple[str, ...], options: Any) -> None:
    old, new = plan_of(*BEFORE, **options), plan_of(*after, **options)
    store = kept_by(old)
    moved = recoded(store, new.partials[0], SINCE)
    before, found = counted(old, store), counted(new, moved)
    stay = set(before) & set(found)
    assert stay
    for predicate in stay:
        assert found[predicate] == before[predicate]
    covered = dict(zip((str(f.query.where) for f in new.finals), new.finals, strict=True))
    for predicate, final in covered.items():
        told = moved.covered[final.member]
        if predicate in stay:
            assert told == BEGINNING
        elif told == BEGINNING:
            # One that can be told from what was kept must then be right.
            wanted = counted(new, kept_by(new))[predicate]
            assert +found[predicate] == +wanted
        else:
            assert told == SINCE


def test_a_predicate_of_the_same_cuts_is_known_from_the_start() -> None:
    old, new = plan_of("v > 2", "v > 5"), plan_of("v > 2", "v > 5", "v > 2 AND v <= 5")
    moved = recoded(kept_by(old), new.partials[0], SINCE)
    assert set(moved.covered) == {BEGINNING}
    assert counted(new, moved) == counted(new, kept_by(new))


def test_an_accumulator_that_joins_is_complete_from_then_on() -> None:
    old = planned("CREATE QUERY q AS SELECT count(*) AS n {window}")
    new = planned("CREATE QUERY q AS SELECT count(*) AS n, max(v) AS m {window}")
    moved = recoded(kept_by(old), new.partials[0], SINCE)
    known = dict(zip(map(str, new.partials[0].accumulators), moved.complete, strict=True))
    assert known["count(*)"] == BEGINNING
    assert known["max(v)"] == SINCE
    assert moved.table().columns[0].to_arrow() == kept_by(old).table().columns[0].to_arrow()


def test_codes_keep_the_least_value_of_their_cell() -> None:
    plans = plan_of("v > 2", "v > 5"), plan_of("v > 2", "v > 3", "v > 5")
    old, new = (plan.partials[0].selection for plan in plans)
    assert isinstance(old, Cells)
    assert isinstance(new, Cells)
    codes = np.arange(old.shape.size)
    moved = moved_codes(codes, old.shape, new.shape)
    assert np.unique(moved).size == codes.size
    (before,), (after,) = old.shape.ranks_of(codes), new.shape.ranks_of(moved)
    ranks = dict(zip(before.tolist(), after.tolist(), strict=True))
    assert [ranks[rank] for rank in range(3)] == [0, 1, 3]
