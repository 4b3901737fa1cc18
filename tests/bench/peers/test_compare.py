"""Answers that differ are refused, whatever differs in them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.errors import MuntinError
from muntin_bench.peers.compare import (
    AnswersDifferError,
    check_hottest,
    check_recomputed,
    check_same,
    hottest,
)
from muntin_bench.peers.questions import COUNT, SECOND, Spec

QUERY = Spec("q", 2 * SECOND, SECOND, groups=("key",))
STARTS = [-1, 0, 1, 2]
ROWS = pa.table(
    {
        "ts": pa.array([200_000, 1_500_000, 2_500_000], pa.timestamp("us", "UTC")),
        "key": [7, 7, 7],
        "amount": [0.1, 0.2, 0.3],
    }
)


def right() -> pa.Table:
    return pa.table(
        {
            "window_start": [start * SECOND for start in STARTS],
            "key": [7] * 4,
            "n": [1, 2, 2, 1],
            "total": [0.1, 0.1 + 0.2, 0.5, 0.3],
        }
    )


def planted(column: str, row: int, value: float) -> pa.Table:
    values = right().column(column).to_pylist()
    values[row] = value
    return right().set_column(right().column_names.index(column), column, pa.array(values))


def test_the_order_of_rows_and_rounding_do_not_matter() -> None:
    other = planted("total", 1, 0.3).take([3, 1, 0, 2])
    assert check_same("someone", {"q": other}, {"q": right()}, [QUERY]) == 4


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (planted("n", 2, 3), "n is 3, not 2"),
        (planted("total", 3, 0.3000001), "total is 0.3000001, not 0.3"),
        (planted("key", 0, 8), "key is 8, not 7"),
        (planted("window_start", 3, 3 * SECOND), "window_start is 3000000, not 2000000"),
        (right().slice(1), "has 3 rows, not 4"),
    ],
)
def test_a_planted_difference_is_found(table: pa.Table, words: str) -> None:
    with pytest.raises(AnswersDifferError, match=words):
        check_same("someone", {"q": table}, {"q": right()}, [QUERY])


def test_a_missing_answer_is_found() -> None:
    with pytest.raises(MuntinError, match="someone differ: query q has no answer"):
        check_same("someone", {}, {"q": right()}, [QUERY])


def test_answers_are_recomputed_from_rows() -> None:
    assert check_recomputed("muntin", {"q": right()}, ROWS, [QUERY]) == 4


@pytest.mark.parametrize(
    "table",
    [
        planted("n", 0, 2),
        planted("total", 3, 0.4),
        planted("key", 3, 8),
        # The first window starts before the first row.
        right().slice(2),
    ],
)
def test_a_difference_from_the_rows_is_found(table: pa.Table) -> None:
    with pytest.raises(AnswersDifferError):
        check_recomputed("muntin", {"q": table}, ROWS, [QUERY])


def test_the_hottest_of_each_window() -> None:
    counts = pa.table(
        {"window_start": [0, 0, 0, 2, 2], "auction": [5, 6, 7, 5, 8], "n": [3, 9, 9, 1, 4]}
    )
    assert hottest(counts).rows() == [(0, 6, 9), (0, 7, 9), (2, 8, 4)]
    query = Spec("q", 2, 2, groups=("auction",), aggregates=(COUNT,))
    check_hottest("someone", {"q": counts}, {"q": counts}, query)
    with pytest.raises(AnswersDifferError, match="other hottest auctions"):
        check_hottest("someone", {"q": counts.slice(2)}, {"q": counts}, query)
