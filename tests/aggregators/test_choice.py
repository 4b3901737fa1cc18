"""The choice of a technique: always legal, with a reason, after the thesis's advice."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest

from muntin.aggregates import resolve
from muntin.aggregators import legal, names
from muntin.aggregators.choice import (
    PREFERENCES,
    Algebra,
    Prefer,
    choose_technique,
    is_legal,
    legal_techniques,
    operations,
)
from muntin.errors import AggregateError, MuntinError, WindowError

SUM = Algebra("sum", invertible=True)
MAX = Algebra("max", selective=True)
OWN = Algebra("tally", invertible=True, bounded=False)
OTHER = Algebra("longest_run")
ORDERED = Algebra("concat", commutative=False)


@pytest.mark.parametrize(
    ("algebra", "ranges", "prefer", "wanted"),
    [
        (SUM, [1], "throughput", "panes"),
        (MAX, [2, 1], "latency", "panes"),
        (SUM, [3], "throughput", "running_totals"),
        (SUM, [12, 60, 720], "latency", "running_totals"),
        # Totals of a user's own may hold more and more.
        (OWN, [3], "throughput", "slickdeque_inv"),
        (OWN, [12, 60, 720], "latency", "slickdeque_inv"),
        (MAX, [60], "throughput", "slickdeque_noninv"),
        (MAX, [60, 70], "throughput", "slickdeque_noninv"),
        (MAX, [60], "latency", "daba_lite"),
        (MAX, [60, 70], "latency", "daba_lite"),
        (OTHER, [60], "throughput", "two_stacks_lite"),
        (OTHER, [60], "latency", "daba_lite"),
        (OTHER, [60, 61], "throughput", "flatfit"),
        # Two ranges far apart share little: each has stacks of its own.
        (OTHER, [50, 100], "throughput", "two_stacks_lite"),
        (OTHER, [3, 4, 5, 6], "latency", "bint"),
        (ORDERED, [3, 4], "throughput", "flatfit"),
        (
            Algebra("invertible, in order", invertible=True, commutative=False),
            [60],
            "latency",
            "daba_lite",
        ),
    ],
)
def test_advice(algebra: Algebra, ranges: list[int], prefer: Prefer, wanted: str) -> None:
    choice = choose_technique(algebra, ranges, prefer=prefer)
    assert choice.name == wanted
    assert choice.operations == operations(wanted, ranges)
    assert algebra.name in choice.why or wanted == "panes"


def test_every_choice_is_legal_and_explained() -> None:
    flags = product((False, True), repeat=3)
    for (invertible, selective, commutative), prefer, ranges in product(
        flags, PREFERENCES, ([1], [2], [5], [3, 900], list(range(1, 300)))
    ):
        algebra = Algebra("it", invertible, selective, commutative)
        choice = choose_technique(algebra, ranges, prefer=prefer)
        assert is_legal(choice.name, algebra)
        assert choice.why
        assert choice.operations >= 0


@pytest.mark.parametrize("name", ["sum", "avg", "max", "min", "count", "var_samp", "value_range"])
@pytest.mark.parametrize("ranges", [1, 3])
def test_cards_decide_what_is_legal(name: str, ranges: int) -> None:
    aggregate = resolve(name, [pa.int64()])
    assert legal_techniques(Algebra.of(aggregate), ranges) == legal(aggregate, ranges)
    sizes = [10 * (i + 1) for i in range(ranges)]
    assert choose_technique(aggregate, sizes).name in legal(aggregate)
    assert choose_technique(aggregate, sizes) == choose_technique(aggregate.algebra, sizes)


def test_equal_ranges_count_once() -> None:
    assert choose_technique(OTHER, [60, 60]) == choose_technique(OTHER, [60])


def test_every_technique_has_a_cost() -> None:
    assert all(operations(name, [7]) > 0 for name in names())
    with pytest.raises(AggregateError, match="dabba") as caught:
        operations("dabba", [7])
    assert caught.value.hint == "did you mean daba?"


@pytest.mark.parametrize("ranges", [[], [0], [3, -1]])
def test_windows_span_slices(ranges: list[int]) -> None:
    with pytest.raises(WindowError, match="slices") as caught:
        choose_technique(SUM, ranges)
    assert caught.value.hint


def test_what_is_wrong_is_said_with_a_hint() -> None:
    with pytest.raises(MuntinError, match="latancy") as caught:
        choose_technique(SUM, [3], prefer="latancy")  # type: ignore[arg-type]
    assert caught.value.hint == "did you mean latency?"
    with pytest.raises(AggregateError, match="'sum' is not an aggregate") as refused:
        choose_technique("sum", [3])  # type: ignore[arg-type]
    assert "resolve" in str(refused.value.hint)
