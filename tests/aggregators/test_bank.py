"""Banks answer as recomputation from scratch does, whichever groups advance."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from muntin import aggregators
from muntin.aggregates import ResolvedAggregate, resolve
from muntin.aggregates.columns import by_part
from muntin.aggregators import bank, create, info
from muntin.aggregators.banks.bank import Bank
from muntin.errors import AggregateError, DataError, WindowError

RANGES = (3, 1, 7, 7, 16)
GROUPS = 21
Draw = Callable[[np.random.Generator, int], Any]
SPECIAL = (math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1.7e308, -1.7e308, 1e16, 1.0)


def small(rng: np.random.Generator, step: int) -> int:
    return int(rng.integers(-1000, 1000))


def large_or_null(rng: np.random.Generator, step: int) -> int | None:
    return int(rng.integers(-(2**63), 2**63 - 1)) if rng.random() < 0.9 else None


def normal(rng: np.random.Generator, step: int) -> float:
    return float(rng.normal(100, 20))


def ever_wider(rng: np.random.Generator, step: int) -> float | None:
    return float(rng.normal() * 10.0 ** rng.integers(-3 - step, 3 + step))


def special_later(rng: np.random.Generator, step: int) -> float:
    rare = step > 20 and rng.random() < 0.1
    return SPECIAL[rng.integers(len(SPECIAL))] if rare else float(rng.normal())


def special_or_null(rng: np.random.Generator, step: int) -> float | None:
    return SPECIAL[rng.integers(len(SPECIAL))] if rng.random() < 0.8 else None


def extreme_or_null(rng: np.random.Generator, step: int) -> int | None:
    return [-(2**63), 2**63 - 1, 0, 5, None][rng.integers(5)]


def falling(rng: np.random.Generator, step: int) -> int:
    return -step


def rising(rng: np.random.Generator, step: int) -> int:
    return step


INTEGERS = [(pa.int64(), small), (pa.int64(), large_or_null)]
DOUBLES = [(pa.float64(), draw) for draw in (normal, ever_wider, special_later, special_or_null)]
SUMS = ["sum", "avg", "count", "var_samp", "stddev_pop"]
CASES = [
    *[("slickdeque_inv", name, *case) for name in SUMS for case in [*INTEGERS, *DOUBLES]],
    *[
        ("slickdeque_noninv", name, *case)
        for name in ("min", "max")
        for case in [
            *INTEGERS,
            *DOUBLES,
            (pa.int64(), extreme_or_null),
            (pa.int32(), falling),
            (pa.int32(), rising),
        ]
    ],
]


# Compiling takes seconds a technique; which one is taken makes no difference to the bank.
CASES += [
    ("panes", "sum", pa.int64(), large_or_null),
    ("daba", "max", pa.float64(), special_or_null),
]


def expected(aggregate: ResolvedAggregate, rows: list[Any]) -> Any:
    try:
        return aggregate.algebra.of(rows)
    except OverflowError:
        return None


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (
            math.isnan(a) and math.isnan(b)
        )
    return bool(a == b)


@pytest.mark.parametrize(("technique", "name", "kind", "draw"), CASES)
def test_every_answer_equals_recomputation(
    technique: str, name: str, kind: pa.DataType, draw: Draw
) -> None:
    rng = np.random.default_rng(len(name))
    aggregate = resolve(name, [kind])
    seen: list[list[Any]] = [[] for _ in range(GROUPS)]
    ranges = RANGES if info(technique).several_ranges else RANGES[-1:]
    windows = bank(technique, aggregate, ranges, GROUPS)
    for step in range(50):
        some = rng.permutation(GROUPS)[: rng.integers(0, GROUPS + 1)]
        groups = None if rng.random() < 0.4 else some
        numbers = np.arange(GROUPS) if groups is None else some
        values = [draw(rng, step) for _ in numbers]
        answers = windows.advance(pa.array(values, kind, from_pandas=False), groups).to_pylist()
        for group, value, row in zip(numbers, values, answers, strict=True):
            seen[group].append(value)
            wanted = [expected(aggregate, seen[group][-size:]) for size in ranges]
            assert all(map(same, row, wanted)), (step, group, row, wanted)
        if step == 25:
            snapshot = windows.snapshot()
            windows = bank(technique, aggregate, ranges, 1)
            windows.restore(snapshot)


@pytest.mark.parametrize(
    ("technique", "name", "kind", "draw"),
    [
        ("panes_inv", "sum", pa.int64(), small),
        ("slickdeque_inv", "sum", pa.float64(), ever_wider),
        ("slickdeque_noninv", "max", pa.float64(), normal),
    ],
)
def test_a_bank_equals_one_aggregator_a_group(
    technique: str, name: str, kind: pa.DataType, draw: Draw
) -> None:
    rng = np.random.default_rng(3)
    aggregate = resolve(name, [kind])
    windows = bank(technique, aggregate, [5], 4)
    alone = [create(technique, aggregate, [5]) for _ in range(4)]
    for step in range(40):
        groups = np.flatnonzero(rng.random(4) < 0.6)
        values = [draw(rng, step) for _ in groups]
        answers = windows.advance(values, groups).to_pylist()
        single = [
            alone[group].insert(aggregate.algebra.partial(value))
            for group, value in zip(groups, values, strict=True)
        ]
        assert [tuple(row) for row in answers] == single


@pytest.mark.parametrize(
    ("name", "technique", "draw"),
    [
        ("sum", "slickdeque_inv", ever_wider),
        ("var_pop", "slickdeque_inv", special_later),
        ("max", "slickdeque_noninv", normal),
    ],
)
def test_partials_of_many_rows(name: str, technique: str, draw: Draw) -> None:
    rng = np.random.default_rng(5)
    aggregate = resolve(name, [pa.float64()])
    windows = bank(technique, aggregate, [2, 4], 3)
    history: list[list[list[float]]] = [[], [], []]
    for step in range(30):
        rows = [[draw(rng, step) for _ in range(rng.integers(0, 5))] for _ in range(3)]
        cells = np.repeat(np.arange(3), [len(group) for group in rows])
        parts = [by_part.empty(part, 3) for part in aggregate.parts]
        for column in parts:
            column.update(cells, (pa.array([v for group in rows for v in group], pa.float64()),))
        answers = windows.advance_partials(parts).to_pylist()
        for group in range(3):
            history[group].append(rows[group])
            for answer, size in zip(answers[group], [2, 4], strict=True):
                flat = [v for values in history[group][-size:] for v in values]
                assert same(answer, expected(aggregate, flat)), (step, group)


def test_a_large_value_leaves_nothing_behind() -> None:
    windows = bank("slickdeque_inv", resolve("sum", [pa.float64()]), [3], 2)
    stream = [0.1, 1e300, 0.2, 0.3, 1e-300, 0.4, math.nan, -math.inf, 0.5, 0.6, 0.7]
    held: list[float] = []
    for value in stream:
        held.append(value)
        answer = windows.advance([value, -value]).values[0, 0]
        assert same(float(answer), math.fsum(held[-3:]))


def test_running_totals_may_wrap_around() -> None:
    windows = bank("slickdeque_inv", resolve("sum", [pa.int64()]), [2], 1)
    for _ in range(40):
        assert windows.advance([2**61 - 1]).values[0, 0] in {2**61 - 1, 2**62 - 2}
    answers = windows.advance([2**63 - 1])
    assert answers.to_pylist() == [[None]]
    assert answers.errors is not None
    assert windows.advance([-(2**62)]).to_pylist() == [[2**62 - 1]]


def test_groups_come_and_go() -> None:
    windows = bank("slickdeque_inv", resolve("sum", [pa.int64()]), [4], 3)
    windows.advance([1, 10, 100])
    windows.remove([1])
    assert windows.groups.tolist() == [0, 2]
    assert windows.advance([2, 200]).values.tolist() == [[3], [300]]
    assert windows.add(3).tolist() == [1, 3, 4]
    assert windows.advance([3, 30, 300, 5, 6]).values.tolist() == [[6], [30], [600], [5], [6]]
    assert len(windows) == 5


@pytest.mark.parametrize("technique", ["slickdeque_inv", "slickdeque_noninv", "daba"])
def test_a_reused_number_starts_anew(technique: str) -> None:
    aggregate = resolve("sum" if technique == "slickdeque_inv" else "max", [pa.float64()])
    windows = bank(technique, aggregate, [4], 9)
    windows.advance(np.full(9, 1e9))
    windows.remove([8])
    windows.add(11)
    assert windows.advance([1.0] * 19).values[8:, 0].tolist() == [1.0] * 11


def test_operations_are_those_done() -> None:
    sums = bank("slickdeque_inv", resolve("sum", [pa.int64()]), [2, 3, 3], 10)
    sums.advance(np.ones(10, np.int64))
    assert sums.operations == 10 * (1 + 2)
    values = [6, 5, 0, 1, 3, 4, 2, 7]
    largest = bank("slickdeque_noninv", resolve("max", [pa.int64()]), [3, 5], 2)
    for value in values:
        largest.advance([value, value])
    alone = create("slickdeque_noninv", resolve("max", [pa.int64()]), [3, 5])
    alone.run(values)
    assert largest.operations == 2 * alone.operations
    assert largest.steps == 2 * alone.steps


def test_the_function_is_not_hidden_by_a_module() -> None:
    bank("slickdeque_inv", resolve("sum", [pa.int64()]), [2], 1)
    assert aggregators.bank is bank


def test_what_has_no_bank_is_refused() -> None:
    with pytest.raises(AggregateError, match="has no bank of daba"):
        bank("daba", resolve("sum", [pa.float64()]), [3])
    with pytest.raises(AggregateError, match="needs an inverse"):
        bank("slickdeque_inv", resolve("max", [pa.int64()]), [3])
    with pytest.raises(AggregateError, match="has no bank"):
        bank("slickdeque_noninv", resolve("max", [pa.string()]), [3])
    with pytest.raises(WindowError, match="without ranges"):
        bank("slickdeque_inv", resolve("sum", [pa.int64()]), [])


@pytest.fixture
def windows() -> Bank:
    return bank("slickdeque_inv", resolve("sum", [pa.int64()]), [2], 3)


@pytest.mark.parametrize(
    ("values", "groups", "message"),
    [
        ([1, 2], None, "2 partials for 3 groups"),
        ([1, 2], [0, 3], "no group has number 3"),
        ([1], [-1], "no group has number -1"),
        ([1, 2], [1, 1], "group 1 comes twice"),
    ],
)
def test_wrong_groups_are_refused(
    windows: Bank, values: list[int], groups: list[int] | None, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        windows.advance(values, groups)


def test_a_snapshot_of_something_else_is_refused(windows: Bank) -> None:
    other = bank("slickdeque_inv", resolve("sum", [pa.int64()]), [5], 3)
    with pytest.raises(DataError, match="ranges"):
        windows.restore(other.snapshot())


def test_a_value_without_a_code_is_refused() -> None:
    windows = bank("daba", resolve("max", [pa.int64()]), [2], 1)
    with pytest.raises(DataError, match="no code"):
        windows.advance([-(2**63)])
