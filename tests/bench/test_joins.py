"""The benchmark of joins: its sides agree, and its promises are told."""

from muntin_bench.joins.benchmark import Scale, run_at


def test_all_engines_in_this_process_agree() -> None:
    report = run_at(Scale(2_000, (5, 50), 3, 2, 1, spark=False, batch=60))
    assert [row[0] for row in report.sections[0].rows[:5]] == [
        "5, Muntin, one query",
        "5, Muntin, 3 queries",
        "5, DuckDB",
        "5, polars",
        "5, DuckDB, grouped by hand",
    ]
    assert len(report.checks) == 8
    assert [row[0] for row in report.sections[1].rows] == [
        "as many rows as the others",
        "one in fifty of them",
    ]
