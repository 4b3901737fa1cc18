"""The benchmark of planning, at a size that takes no time."""

from muntin.queries import queries
from muntin_bench.planning import workloads
from muntin_bench.planning.benchmark import FULL, Load, Scale, run_at


def test_it_reports_every_target() -> None:
    loads = tuple(Load(each.name, each.text, 8, each.limit) for each in FULL.loads)
    report = run_at(Scale(loads, running=3, limit=0.2, repeats=1, starts=FULL.starts[:1]))
    planned, cold = report.sections
    assert [row[0] for row in planned.rows] == [f"8 {load.name}" for load in loads]
    assert [row[0] for row in cold.rows] == ["one query in a fresh process"]
    assert len(report.checks) == len(loads) + 2 + 1
    assert all(check.value > 0 for check in report.checks)


def test_queries_of_a_workload_all_differ() -> None:
    for text in (workloads.thresholds, workloads.combinations, workloads.unlike):
        bodies = {each.sql().partition(" AS ")[2] for each in queries(text(200))}
        assert len(bodies) == 200, text.__name__
    assert len({each.window for each in queries(workloads.windows(300))}) == 300
