"""The query sets follow the paper's Table 8, and are as selective as its own."""

from __future__ import annotations

import math
from collections import Counter
from itertools import islice

import pytest

from muntin.queries import queries
from muntin_bench.sharing.data import hour
from muntin_bench.sharing.rows import columns_of, satisfied
from muntin_bench.sharing.workloads import NAMES, predicates, workload


@pytest.mark.parametrize("size", [16, 256, 4096])
@pytest.mark.parametrize("name", NAMES)
def test_windows_and_predicates_are_shared_as_the_workload_says(name: str, size: int) -> None:
    work = workload(name, size)
    windows = {(query.range, query.slide) for query in work.queries}
    predicated = {query.predicate for query in work.queries}
    root = math.isqrt(size)
    kinds = {"A": (size, 1), "B": (1, size), "C regular": (root, root)}
    assert (len(windows), len(predicated)) == kinds.get(name, (size, size))
    assert len({(query.range, query.slide, query.predicate) for query in work.queries}) == size
    assert len({query.name for query in work.queries}) == size
    if name == "B":
        assert windows == {(600, 600)}
    else:
        assert all(600 <= size <= 900 and 300 <= slide <= 600 for size, slide in windows)


def test_a_smaller_set_is_part_of_a_larger_one() -> None:
    for name in ("A", "B", "C low sharing"):
        assert workload(name, 256).queries[:16] == workload(name, 16).queries
    small, large = (workload("C regular", size).queries for size in (16, 256))
    assert {query.predicate for query in small} < {query.predicate for query in large}


def test_kinds_of_predicates_are_drawn_independently_and_equally_often() -> None:
    kinds = Counter(
        (p.index, p.member, p.quantity, p.greater) for p in islice(predicates(0), 36 * 400)
    )
    assert len(kinds) == 36
    # Five standard deviations of such a count.
    assert all(abs(count - 400) < 100 for count in kinds.values())
    assert len({(p.index, p.member, p.quantity) for p in islice(predicates(0), 18)}) < 18


def test_constants_lie_in_their_ranges_and_differ_by_seed() -> None:
    for p in islice(predicates(3), 500):
        low, high = {"vol": (10, 1e5), "value": (700, 1e5), "change": (0.003, 0.08)}[p.quantity]
        assert low <= p.constant <= high
    first, other = (workload("C regular", 16, seed).queries for seed in (0, 1))
    assert first != other
    assert first == workload("C regular", 16).queries


def test_a_trade_satisfies_about_as_many_predicates_as_in_the_paper() -> None:
    columns = columns_of(hour(100_000))
    shares = [satisfied(workload("B", 256, seed), columns) / 100_000 for seed in range(5)]
    assert 76 < sum(shares) / 5 < 102


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("grouped", [False, True])
def test_the_text_of_a_workload_is_read_as_it_was_drawn(name: str, grouped: bool) -> None:
    work = workload(name, 16)
    for joined in (True, False):
        for query, drawn in zip(
            queries(work.sql(joined=joined, grouped=grouped)), work.queries, strict=True
        ):
            assert query.name == drawn.name
            assert query.window.range == drawn.range * 1_000_000
            assert query.window.slide == drawn.slide * 1_000_000
            assert bool(query.group_by) == grouped
            if drawn.predicate is not None:
                assert str(drawn.predicate.constant) in str(query)
