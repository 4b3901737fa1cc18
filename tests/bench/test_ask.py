"""The benchmark of asking, at a size that takes no time."""

from muntin_bench.ask.benchmark import Scale, run_at


def test_answers_are_compared_and_every_promise_is_measured() -> None:
    report = run_at(Scale(rows=3000, batch=500, repeats=1))
    assert len(report.checks) == 3
    assert all(each.value > 0 for each in report.checks)
