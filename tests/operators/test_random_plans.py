"""Random plans over random streams against recomputation at every instant."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from muntin.operators.state import keys
from muntin.plan.operators import RowPlan
from muntin.testing import row_oracle as oracle
from operators.random_plans import STREAMS, batches, finals, grown, run, stream, table


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


@pytest.mark.parametrize("seed", range(4))
def test_keys_that_all_hash_together(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    real = keys.hash_columns

    def collide(columns: keys.Columns, count: int) -> tuple[keys.Ints, bool]:
        return real(columns, count)[0] * 0, False

    monkeypatch.setattr(keys, "hash_columns", collide)
    check(seed + 1000)
