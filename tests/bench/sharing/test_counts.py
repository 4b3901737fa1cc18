"""Operations are counted for several seeds, and held against the paper's."""

from __future__ import annotations

import pytest

from muntin_bench.sharing.counts import PAPERS, Counts, count, spread
from muntin_bench.sharing.data import Market, hour
from muntin_bench.sharing.engine import Prepared, prepare
from muntin_bench.sharing.paper import REPORTED, analysis, counts_beside_paper
from muntin_bench.sharing.rows import columns_of, satisfied
from muntin_bench.sharing.workloads import NAMES, workload

SEEDS = (0, 3)


@pytest.fixture(scope="module")
def market() -> Market:
    return hour(4000, symbols=40)


@pytest.fixture(scope="module")
def counts(market: Market) -> list[Counts]:
    return list(count(market, 16, SEEDS))


def test_every_workload_is_counted_for_every_seed(counts: list[Counts]) -> None:
    assert [(each.workload, each.seed) for each in counts] == [
        (name, seed) for name in NAMES for seed in SEEDS
    ]


def test_counts_are_those_of_the_runs(market: Market, counts: list[Counts]) -> None:
    for each in counts:
        work = workload(each.workload, 16, each.seed)
        _, cells = prepare(market, work).run()
        assert each.cells == cells.aggregations
        assert each.unshared == satisfied(work, columns_of(market))
        assert each.fewer == (each.unshared / each.shared, each.unshared / each.cells)


def test_panes_take_more_final_aggregations_than_pairs(counts: list[Counts]) -> None:
    for each in counts:
        if each.workload == "A":
            assert each.paned > each.paired > 0
            assert each.shared - each.paired == each.trades


def test_promises_are_held_against_the_worst_seed() -> None:
    counts = [
        Counts(name, seed, 10, 1000, 100, cells)
        for name in NAMES
        for seed, cells in enumerate((5, 20, 10))
    ]
    sections, checks = counts_beside_paper(counts, 16)
    assert [check.value for check in checks] == [50.0] * 4
    assert [check.met for check in checks] == [False, True, True, True]
    assert sections[0].rows[0] == (
        "A, slices",
        "112",
        "10.0 (10.0 to 10.0)",
        "116.7 (50.0 to 200.0)",
    )


def test_the_analysis_shows_means_and_ranges(counts: list[Counts]) -> None:
    rows = {name: here for name, _, here in analysis(counts, 16).rows}
    found = [each.fragments[1] for each in counts if each.workload == "B"]
    assert rows["B, fragments in the hour"] == spread(found)
    assert rows["A, partial aggregations of shared pairs"].startswith("4,000 ")


def test_different_answers_are_not_counted(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Prepared.run

    def wrong(self: Prepared) -> object:
        results, progress = right(self)
        if self.plan.strategy == PAPERS["A"]:
            results["q0001"] = results["q0001"].slice(1)
        return results, progress

    monkeypatch.setattr(Prepared, "run", wrong)
    with pytest.raises(AssertionError, match="A, seed 0: q0001"):
        list(count(market, 4, (0,)))


def test_the_papers_figures_are_its_ratios() -> None:
    ratios = {name: each.unshared / each.shared for name, each in REPORTED.items()}
    expected = {"A": 112, "B": 14.9, "C regular": 29.7, "C low sharing": 1.85}
    assert ratios == pytest.approx(expected, rel=5e-3)
