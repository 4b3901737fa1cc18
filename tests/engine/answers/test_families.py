"""Families: which queries are answered together, and which partials each of them reads."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from engine.rows.scopes import planned, table
from muntin.aggregates.columns.counts import CountColumn
from muntin.engine.answers.families import Due, Source, families
from muntin.engine.answers.rollup import RolledUp
from muntin.engine.rows.stage_a import StageA
from muntin.engine.slices.partials import merge
from muntin.plan import SharedPlan

QUERIES = (
    "CREATE QUERY a AS SELECT k, sum(v) AS s {window} WHERE v > 2 GROUP BY k",
    "CREATE QUERY b AS SELECT k, sum(v) AS s {window} WHERE v > 5 GROUP BY k",
    "CREATE QUERY c AS SELECT k, max(v) AS s {window} WHERE v > 2 GROUP BY k",
    "CREATE QUERY d AS SELECT k, sum(v) AS s {window} WHERE v > 2 GROUP BY k",
    "CREATE QUERY e AS SELECT k, sum(v) AS s {window} WHERE v > 2 GROUP BY k HAVING sum(v) > 9",
)


def due(plan: SharedPlan, *last: int, gaps: dict[str, int] | None = None) -> Due:
    return Due(np.zeros(len(plan.finals), np.int64), np.array(last), gaps or {})


def test_queries_that_differ_in_window_and_predicate_only_are_together() -> None:
    plan = planned(*QUERIES)
    found = families(plan, due(plan, 3, 4, 5, 6, 7))
    names = [[final.name for final in family.finals] for family in found]
    assert sorted(map(sorted, names)) == [["a", "b", "d"], ["c"], ["e"]]
    together = found[names.index(["a", "b", "d"])]
    assert together.windows.tolist() == [[10, 5, 0, 0, 3], [10, 5, 0, 0, 4], [10, 5, 0, 0, 6]]
    a, b, d = (final.member for final in together.finals)
    assert a == d != b
    assert together.reads == ((a, a), (b, b), (a, a))
    assert together.members == tuple(sorted((a, b)))


def test_those_without_a_window_that_is_due_are_left_out() -> None:
    plan = planned(*QUERIES)
    found = families(plan, due(plan, -1, 0, -1, -1, -1))
    assert [[final.name for final in family.finals] for family in found] == [["b"]]
    assert families(plan, due(plan, *[-1] * 5)) == []


def test_a_gap_to_fill_goes_with_its_query() -> None:
    plan = planned("CREATE QUERY a AS SELECT sum(v) AS s {window} EMIT EMPTY")
    assert families(plan, due(plan, 7, gaps={"a": 2}))[0].gap == 2
    assert families(plan, due(plan, 7))[0].gap is None


def test_each_query_reads_the_entries_of_its_predicate() -> None:
    """Queries of one predicate share a segment; a FILTER reads other entries of the same groups."""
    select = "SELECT k, count(*) AS n, count(*) FILTER (WHERE w > {}) AS f {{window}} WHERE v > {}"
    limits = [(4, 2), (6, 5)]
    plan = planned(
        *(
            f"CREATE QUERY q{n} AS {select.format(*each)} GROUP BY k"
            for n, each in enumerate(limits)
        )
    )
    rows, (node,) = table(9, 150), plan.partials
    kept = merge(node, StageA(plan)(rows).partials)
    (family,) = families(plan, due(plan, 9, 9))
    family = replace(family, finals=(*family.finals, family.finals[0]))
    rolled = RolledUp(kept, node.selection, family.members)
    source = Source(family, rolled, {member: i for i, member in enumerate(family.members)})
    assert source.segments[0].tolist() == source.segments[2].tolist()
    assert source.filters == [0, 1]
    for (above, least), (low, high) in zip(limits, source.segments[:2].tolist(), strict=True):
        wanted: Counter[tuple[str | None, int]] = Counter()
        passing: Counter[tuple[str | None, int]] = Counter()
        for row in rows.to_pylist():
            place = row["k"], row["t"] // 5 * 5
            wanted[place] += row["v"] is not None and row["v"] > least
            if row["v"] is not None and row["v"] > least:
                passing[place] += row["w"] is not None and row["w"] > above
        for number, counts in enumerate((wanted, passing)):
            index = family.lowerings[number].accumulators[0]
            column = source.column(index, number)
            assert isinstance(column, CountColumn)
            keys = [source.keys[0][int(group)].as_py() for group in source.groups[low:high]]
            places = zip(keys, source.starts[low:high].tolist(), strict=True)
            found = dict(zip(places, column.counts[low:high].tolist(), strict=True))
            assert found == {place: counts[place] for place in wanted if wanted[place]}
