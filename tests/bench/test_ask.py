"""The benchmark of asking, at a size that takes no time."""

from itertools import islice

from muntin_bench.ask.benchmark import Scale, run_at
from muntin_bench.ask.local import LocalScale
from muntin_bench.ask.workload import POINT, SHAPES, WIDE, questions


def test_answers_are_compared_and_every_promise_is_measured() -> None:
    scale = LocalScale(rows=3000, asked_rows=4000, batch=500, repeats=1)
    report = run_at(Scale(scale, None))
    assert len(report.checks) == 5
    assert all(each.value > 0 for each in report.checks)


def test_nine_of_ten_questions_are_of_one_symbol() -> None:
    asked = list(islice(questions(["A", "B"]), 2000))
    assert sum(is_wide for _, is_wide in asked) == 200
    shapes = {sql.partition("[")[0] for sql, _ in asked}
    assert len({*POINT, *WIDE}) == SHAPES == 20
    assert len(shapes) == 9
