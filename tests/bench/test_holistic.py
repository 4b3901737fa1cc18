"""The benchmark of aggregates over all values, at a size that takes no time."""

import pytest

from muntin_bench.holistic import extremes
from muntin_bench.holistic.benchmark import PARTS, QUESTIONS, Scale, check, run_at, windows


def test_answers_are_compared_and_every_promise_is_measured():
    parts = [part for part in PARTS if part != "groups"]
    report = run_at(Scale(rows=400, queries=2, asked=1, repeats=1), parts)
    assert len(report.checks) == 17
    assert all(each.value > 0 for each in report.checks)


def test_windows_are_different():
    assert len(set(windows(256, predicates=True))) == 256


def test_answers_that_differ_are_refused():
    with pytest.raises(AssertionError, match="count"):
        check(QUESTIONS[0], [{"window_end": 5, "a": 3}], [(5, 4)])


def test_many_groups_and_many_values(capsys):
    assert extremes.by_group(300, "count(DISTINCT v)") > 0
    for cap in (200, 2000):
        # It compares answers itself: a number, or NULL over the cap.
        extremes.one_group(2000, cap)
    assert len(capsys.readouterr().out.split()) == 4
