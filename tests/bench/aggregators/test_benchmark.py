"""The benchmark of techniques: what it times is checked, what it prints is whole."""

from __future__ import annotations

import dataclasses

import pytest

from muntin.aggregators.aggregator import Aggregator
from muntin_bench.aggregators import benchmark, promises
from muntin_bench.aggregators.latency import latencies, timed_steps
from muntin_bench.aggregators.rates import Rate, rates
from muntin_bench.aggregators.work import Workload, check_answers, full, workloads

TECHNIQUES = {"sum": ("panes", "slickdeque_inv"), "max": ("panes", "slickdeque_noninv")}


@pytest.fixture(scope="module")
def works() -> dict[str, Workload]:
    made = workloads(size=1 << 14)
    return {
        name: dataclasses.replace(made[name], techniques=techniques)
        for name, techniques in TECHNIQUES.items()
    }


def test_answers_are_compared_before_anything_is_timed(works: dict[str, Workload]) -> None:
    assert check_answers(works, (1, 5)) == 2 * 2 * (53 + 65)


def test_a_wrong_answer_fails_loudly(
    works: dict[str, Workload], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = Aggregator.run
    monkeypatch.setattr(Aggregator, "run", lambda self, values: right(self, values) + 1)
    with pytest.raises(AssertionError, match="panes of sum, window 3, step 0"):
        check_answers(works, (3,))


@pytest.mark.parametrize("name", TECHNIQUES)
def test_panes_filled_by_hand_answer_as_if_slid(works: dict[str, Workload], name: str) -> None:
    window = 1 << 13
    by_hand, slid = (full(works[name], technique, window) for technique in TECHNIQUES[name])
    values = works[name].take(0, window)
    assert by_hand.run(values)[-1].tolist() == slid.run(values)[-1].tolist()


@pytest.mark.parametrize("name", TECHNIQUES)
def test_rates_count_operations_and_bytes(works: dict[str, Workload], name: str) -> None:
    found = {rate.technique: rate for rate in rates(works[name], [16], budget=0.001)}
    assert found["panes"].operations == 15
    assert all(rate.per_second > 0 and rate.bytes_per_partial >= 8 for rate in found.values())


@pytest.mark.parametrize("name", TECHNIQUES)
def test_single_steps_are_timed(works: dict[str, Workload], name: str) -> None:
    for latency in latencies(works[name], [4], budget=0.001):
        assert latency.steps > 0
        assert list(latency.nanoseconds) == sorted(latency.nanoseconds)


@pytest.mark.parametrize("name", TECHNIQUES)
def test_what_is_timed_slides_in_the_values_of_the_stream(
    works: dict[str, Workload], name: str
) -> None:
    for technique in works[name].techniques:
        stepped, run = full(works[name], technique, 8), full(works[name], technique, 8)
        assert len(timed_steps(stepped, works[name], 100, 8)) == 8
        run.run(works[name].take(100, 8))
        values = works[name].take(200, 7)
        assert stepped.run(values).tolist() == run.run(values).tolist()


def test_many_ranges_compare_flatfit_with_flatfat(works: dict[str, Workload]) -> None:
    section = promises.many_ranges(works["sum"], (2,), answers=64)
    assert section.rows[0][0] == "ranges 1 to 2"
    assert section.timed[0][0].side == "flatfat, ranges 1 to 2"


def test_tables_have_a_row_a_technique() -> None:
    found = [Rate("panes", window, 10, 0.5, window - 1.0, 8.0) for window in (1, 4)]
    speed, slower, operations, _, steps = benchmark.rate_tables("sum", found)
    assert speed.columns == ("window", "2^0", "2^2")
    assert slower.rows == (("panes", "1.00×", "1.00×"),)
    assert operations.rows == (("panes", "0", "3"),)
    assert steps.rows == (("panes", "10", "10"),)


def test_tables_of_many_windows_are_cut_to_fit_a_terminal() -> None:
    found = [Rate("panes", 1 << power, 10, 0.5, 1.0, 8.0) for power in range(0, 23, 2)]
    first, second, *_ = benchmark.rate_tables("sum", found)
    assert first.title == second.title == "sum, million steps per second, median"
    assert (first.columns[1], second.columns[1]) == ("2^0", "2^12")
    assert len(first.columns) == len(second.columns) == 7
