"""Random plans over random streams against recomputation at every instant."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from muntin.operators import RowEngine
from muntin.operators.state import int_map, keys
from muntin.plan.operators import RowFinal, RowPlan, leaves
from muntin.testing import row_oracle as oracle
from operators.random_plans import STREAMS, batches, finals, grown, lasting, run, stream, table


def check_restored(final: RowFinal, lives: list[Any], found: Counter[Any], horizon: int) -> None:
    """Each lifetime is at the window ends that see it, or once at the first after its begin."""
    expected: Counter[Any] = Counter()
    for (begin, end), values in lives:
        first = begin + final.slide - (begin - final.phase) % final.slide
        last = horizon if end is None else min(end, horizon)
        for time in [*range(first, last + 1, final.slide)] or [first]:
            expected[(time - final.range, time), values] += 1
    for bag in (expected, found):
        for times, values in [*bag]:
            if times[1] > horizon:
                del bag[times, values]
    assert found == expected, final.name


def check(seed: int, plans: int = 2) -> None:
    """Some random queries, all in one plan, over one random stream."""
    rng = random.Random(seed)
    roots = {f"q{i}": grown(rng, rng.randrange(1, 5)) for i in range(plans)}
    shown = [final for name, root in roots.items() for final in finals(rng, root, name)]
    plan = RowPlan(STREAMS, tuple(shown))
    rows = {name: stream(rng, rng.choice([0, 6, 14, 14]), 30) for name in STREAMS}
    tables = {name: table(each) for name, each in rows.items()}
    found = run(plan, batches(rng, rows, rng.choice([0, 3, 8])), rng)
    whole = run(plan, iter([(tables, {})]))
    for name, root in roots.items():
        expected = oracle.answers(plan, root, tables)
        for kind in ("rows", "final"):
            oracle.check_lifetimes(expected, found[f"{name}_{kind}"])
            assert Counter(oracle.shown(found[f"{name}_{kind}"], 2)) == Counter(
                oracle.shown(whole[f"{name}_{kind}"], 2)
            )
        log = found[f"{name}_changes"]
        oracle.check_lifetimes(expected, oracle.replayed(log))
        assert Counter(oracle.shown(log, 4)) == Counter(oracle.shown(whole[f"{name}_changes"], 4))
        horizon = max((each.begin for each in expected), default=0)
        for final in shown:
            if final.name in (f"{name}_slide", f"{name}_in"):
                ends = [t for t in range(-20, horizon + 1) if (t - final.phase) % final.slide == 0]
                got = Counter(
                    (end, values) for (_, end), values in oracle.shown(found[final.name], 2)
                )
            elif final.name == f"{name}_restore":
                lives = oracle.shown(found[f"{name}_final"], 2)
                got = Counter(oracle.shown(found[final.name], 2))
                check_restored(final, lives, got, horizon)
                continue
            elif final.name == f"{name}_out":
                ends = list(range(-1, horizon + 1))
                got = Counter((at, values) for (at,), values in oracle.shown(found[final.name], 1))
            else:
                continue
            got = Counter({key: count for key, count in got.items() if key[0] <= horizon})
            assert got == oracle.windows(final, expected, ends), final.name


@pytest.mark.parametrize("seed", range(24))
def test_answers_are_right_at_every_instant(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", range(12))
def test_answers_stay_right_when_rows_and_keys_move(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Room is given up wherever some is free, not only after a large batch.
    monkeypatch.setattr(keys, "_LARGE", 0)
    monkeypatch.setattr(keys, "_SPARE", 1)
    monkeypatch.setattr(int_map, "_LARGE", 0)
    monkeypatch.setattr(int_map, "_SPARE", 8)
    if seed % 2:
        real = keys.hash_columns
        monkeypatch.setattr(keys, "hash_columns", lambda *given: (real(*given)[0] % 3, False))
    check(4000 + seed)


@pytest.mark.parametrize("seed", range(12))
def test_queries_that_join_begin_with_their_first_whole_instant(seed: int) -> None:
    rng = random.Random(2000 + seed)
    first, root = (lasting(rng) for _ in range(2))
    early, late = finals(rng, first, "early"), finals(rng, root, "late")
    plan = RowPlan(STREAMS, (*early, *late))
    rows = {name: stream(rng, 20, 40) for name in STREAMS}
    given = list(batches(rng, rows, 3))
    before = given[: len(given) // 2]
    engine = RowEngine(RowPlan(STREAMS, tuple(early)))
    found: dict[str, list[pa.Table]] = {final.name: [] for final in plan.finals}
    for number, (batch, watermarks) in enumerate(given):
        if number == len(before):
            engine.adopt(plan)
            engine = RowEngine.restore(plan, engine.snapshot())
        for name, each in engine.feed(batch, watermarks).items():
            found[name].append(each)
    since = engine.since("late_rows")
    for name, each in engine.close().items():
        found[name].append(each)
    shown = {name: pa.concat_tables(parts) for name, parts in found.items()}
    read = {leaf.stream for leaf in leaves(root)}
    seen = [time for batch, _ in before for name, each in batch.items() if name in read
            for time in each["ts"].to_pylist()]  # fmt: skip
    usual = max(seen) + max(leaf.range or 0 for leaf in leaves(root)) if seen else None
    assert since is None or (usual is not None and since <= usual)

    tables = {name: table(each) for name, each in rows.items()}
    oracle.check_lifetimes(oracle.answers(plan, first, tables), shown["early_final"])
    whole = oracle.answers(plan, root, tables)
    cut = [
        replace(each, begin=each.begin if since is None else max(each.begin, since))
        for each in whole
        if each.end is None or since is None or each.end > since
    ]
    oracle.check_lifetimes(cut, shown["late_rows"])
    oracle.check_lifetimes(cut, shown["late_final"])
    oracle.check_lifetimes(cut, oracle.replayed(shown["late_changes"]))
    slides = next(final for final in late if final.name == "late_slide")
    horizon = max((each.begin for each in whole), default=0)
    ends = [t for t in range(-20 if since is None else since + 1, horizon + 1)
            if (t - slides.phase) % slides.slide == 0]  # fmt: skip
    got = Counter((end, values) for (_, end), values in oracle.shown(shown["late_slide"], 2))
    got = Counter({key: count for key, count in got.items() if key[0] <= horizon})
    assert got == oracle.windows(slides, whole, ends)


@pytest.mark.parametrize("seed", range(8))
def test_keys_that_all_hash_together(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or in every second case, some keys with some others."""
    real = keys.hash_columns

    def collide(columns: keys.Columns, count: int) -> tuple[keys.Ints, bool]:
        return real(columns, count)[0] % (1 + seed % 2 * 3), False

    monkeypatch.setattr(keys, "hash_columns", collide)
    check(seed + 1000)
