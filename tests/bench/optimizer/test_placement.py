"""The benchmark of placement: all combinations, shares that add up, tables that are whole."""

from __future__ import annotations

import pytest

from muntin.planner.placement.optimizers import METHODS
from muntin_bench.optimizer import placement as bench
from muntin_bench.optimizer.outcomes import IMPROVED, Combination, Outcome

SMALL = [
    Combination(20, 2, 10, 8, 0, 5, "normal"),
    Combination(20, 3, 1, 8, 1, 5, "prime"),
]


def test_table_8_has_256_combinations() -> None:
    every = bench.table_8()
    assert len(set(every)) == 256
    assert {each.nodes for each in every} == {4, 8, 16, 32}


def test_a_seed_gives_the_same_costs() -> None:
    once, again = (
        [
            {name: (one.total, one.maximum) for name, one in each.items()}
            for each in bench.outcomes(SMALL, seed=4)
        ]
        for _ in range(2)
    )
    assert once == again
    assert list(once[0]) == [*METHODS, *IMPROVED]


def test_best_is_shared_by_equals() -> None:
    found = [
        {"WG_TN": Outcome(1.0, 4.0, 0.1), "WG_I": Outcome(1.0, 2.0, 0.2)},
        {"WG_TN": Outcome(1.0, 1.0, 0.3), "WG_I": Outcome(1.5, 2.0, 0.2)},
    ]
    assert bench.wins(found, "total") == {"WG_TN": 1.0, "WG_I": 0.5}
    table = bench.best_shares("t", found)
    assert table.rows == (
        ("WG_TN", "100%", "-", "90%, 0.2%", "50%", "100.0%", "17%, 48%"),
        ("WG_I", "50%", "50.0%", "5%, 9%", "50%", "100.0%", "80%, 3%"),
    )
    assert bench.wins_by_nodes("t", SMALL, found).rows == (
        ("WG_TN", "0%", "100%"),
        ("WG_I", "100%", "0%"),
    )
    assert bench.plan_quality("t", found).rows[1] == ("WG_I", "50.0% ± 50.0%", "50.0% ± 50.0%")
    assert bench.runtimes("t", found).rows[0] == ("WG_TN", "0.200", "2.83")


def test_sections_and_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "table_8", lambda: SMALL)
    sections, checks = bench.placement_sections(quick=1)
    assert "1 of the 2 combinations" in sections[0].title
    assert all(len(row) == len(table.columns) for table in sections for row in table.rows)
    assert [len(table.rows) for table in sections] == [13, 13, 15, 15, 13, 15, 15]
    assert [check.limit for check in checks] == [0.9, 0.8]
    assert all(0 <= check.value <= 1 for check in checks)
