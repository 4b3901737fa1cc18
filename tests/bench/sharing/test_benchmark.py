"""The sharing benchmark, on little data: answers are compared, operations are the paper's."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console

from muntin.plan.nodes import Strategy
from muntin_bench.report import Report
from muntin_bench.sharing.benchmark import Scale, run_at
from muntin_bench.sharing.data import Market, hour
from muntin_bench.sharing.engine import (
    STRATEGIES,
    Prepared,
    check_equal,
    check_rows,
    plain_pass,
    prepare,
)
from muntin_bench.sharing.grid import grid
from muntin_bench.sharing.growth import Turns, check_groups
from muntin_bench.sharing.memory import kept
from muntin_bench.sharing.rows import columns_of, satisfied
from muntin_bench.sharing.workloads import NAMES, workload

TINY = Scale(2000, 20, (4, 9), (4, 9), 16, (0, 1), None, 2, 0.5, 3000, (1, 4), 2, (1, 50))


@pytest.fixture(scope="module")
def market() -> Market:
    return hour(4000, symbols=40)


@pytest.fixture(scope="module")
def report() -> Report:
    return run_at(TINY)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", NAMES)
def test_every_strategy_answers_as_the_rows_say(
    market: Market, name: str, strategy: Strategy
) -> None:
    work = workload(name, 16)
    results, _ = prepare(market, work, strategy).run()
    assert check_rows(results, work, columns_of(market)) > 20


def test_groups_are_answered_as_their_rows_say(market: Market) -> None:
    work = workload("C regular", 16)
    results, _ = prepare(market, work, grouped=True).run()
    assert check_groups(results, work, market, columns_of(market)) > 20


@pytest.mark.parametrize("name", NAMES)
def test_unshared_aggregates_a_row_once_for_each_query_it_satisfies(
    market: Market, name: str
) -> None:
    work = workload(name, 16)
    _, progress = prepare(market, work, "unshared").run()
    assert progress.partial_aggregations == satisfied(work, columns_of(market))


def test_shared_slices_aggregate_every_row_once(market: Market) -> None:
    _, progress = prepare(market, workload("A", 16), "slices").run()
    assert progress.partial_aggregations == market.trades.num_rows


@pytest.mark.parametrize(("name", "strategy"), [("B", "fragments"), ("C regular", "shards")])
def test_shared_fragments_aggregate_a_row_once_at_most(
    market: Market, name: str, strategy: Strategy
) -> None:
    _, progress = prepare(market, workload(name, 16), strategy).run()
    assert 0 < progress.partial_aggregations <= market.trades.num_rows


def test_a_wrong_sum_fails_loudly(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Prepared.run

    def wrong(self: Prepared) -> object:
        results, progress = right(self)
        first = next(iter(results))
        values = results[first].column("value").to_pylist()
        values[0] += 1e-9 * values[0]
        results[first] = results[first].set_column(2, "value", pa.array(values))
        return results, progress

    monkeypatch.setattr(Prepared, "run", wrong)
    with pytest.raises(AssertionError, match="A, q0000: sums"):
        list(grid(market, (16,), (16,), 1, 0.0))


def test_strategies_that_differ_fail_loudly() -> None:
    one, other = (pa.table({"value": [value]}) for value in (1.0, 1.0000001))
    check_equal({"q": one}, {"q": one}, "same")
    with pytest.raises(AssertionError, match="shards: q is"):
        check_equal({"q": one}, {"q": other}, "shards")


def test_the_plain_pass_sums_the_value_of_all_trades(market: Market) -> None:
    assert plain_pass(market) == pytest.approx(float(columns_of(market)["value"].sum()))


def test_sets_of_queries_take_turns(market: Market) -> None:
    prepared = [prepare(market, workload("B", 4, seed)) for seed in (0, 1)]
    turns = Turns(prepared)
    found = [turns()[0] for _ in range(3)]
    check_equal(found[0], found[2], "first")
    check_equal(found[1], prepared[1].run()[0], "second")
    assert not found[0]["q0000"].equals(found[1]["q0000"])


def test_state_grows_with_the_groups() -> None:
    text = "SELECT k, sum(v) FROM s [RANGE '600 seconds' SLIDE '300 seconds'] GROUP BY k"
    few, many = kept(text, 100), kept(text, 10_000)
    assert (few.groups, many.groups) == (100, 10_000)
    assert 50 * few.state_bytes < many.state_bytes < 200 * few.state_bytes


def test_the_report_is_whole(report: Report, tmp_path: Path) -> None:
    titles = [section.title for section in report.sections]
    for name in NAMES:
        assert sum(title.startswith(f"{name}, ") for title in titles) == 3
    assert "how queries are drawn" in titles
    assert (report.seeds, report.uses) == ((0, 1), ("duckdb",))
    timed = {section.title for section in report.sections if section.timed}
    assert {f"{name}, milliseconds (range)" for name in NAMES} < timed
    promises = [check.promise for check in report.checks]
    assert len(promises) == len(set(promises)) == 4 + 7 + 3 + 1 + 3
    console = Console(record=True, width=160)
    report.show(console)
    text = console.export_text()
    assert "C low sharing, shards" in text
    written = report.save(tmp_path)
    names = {path.name for path in written}
    assert {f"sharing-figure-{number}.png" for number in (13, 14, 15, 16)} < names
