"""Streams in one process: aggregates, questions, and rows with lifetimes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pyarrow as pa

from muntin.api import aggregate, stream
from muntin.expressions import bind_text
from muntin.plan.operators import (
    Column,
    Difference,
    Distinct,
    Exists,
    Join,
    Node,
    RowFinal,
    RowPlan,
    StreamSchema,
    Windowed,
)
from muntin.plan.timeline import Timeline
from muntin.planner import build_plan
from muntin.planner.sharing import Optimizer
from muntin.queries import queries as read_queries
from muntin.warm.plans import WINDOWS, many_queries
from muntin.warm.rows import MINUTE, synthetic_rows


def streams() -> None:
    """Batches, answers when they are due, queries that join and leave, snapshots."""
    from muntin.streams import LiveEngine  # noqa: PLC0415  it brings numba

    rows = synthetic_rows(3000)
    texts = [*many_queries(), *(f"SELECT {call} AS v FROM t {WINDOWS[0]}" for call in STREAMED)]
    asked = list(read_queries(texts))
    plan = build_plan(asked[:-1], rows.schema, "ts")
    engine = LiveEngine(plan, 5 * MINUTE, optimizer=Optimizer("auto"))
    for start in range(0, 2000, 400):
        engine.feed(rows.slice(start, 400))
    engine.add(asked[-1])
    engine.remove(asked[0].name)
    engine.feed(rows.slice(1800, 700))
    engine.snapshot()
    # Batches that bring less than is kept: finals move on.
    for start in range(2500, 3000, 50):
        engine.feed(rows.slice(start, 50))
    engine.close()
    _questions(rows)


def _questions(rows: pa.Table) -> None:
    """What is kept is put together and asked; a first question has a second."""
    calls = "count(*), sum(double), min(double), max(double), sum(bigint), avg(int), max(string)"
    keep = (
        f"CREATE KEEP kept AS SELECT k, {calls} FROM t [RANGE '1 hour' SLIDE '10 seconds'] "
        "GROUP BY k CUT (bigint > 50)"
    )
    last = "CREATE KEEP last AS SELECT * FROM t [PARTITION BY k ROWS 5]"
    asked = stream(many_queries()[0], rows.schema, max_ahead=None, keeps=[keep, last])
    for start in range(0, 1800, 150):
        asked.feed(rows.slice(start, 150))
    bounded = "count(*), sum(double), max(double)"
    shapes = (
        ("[RANGE '9 minutes' ALIGNED]", calls),
        ("[RANGE '125 seconds']", bounded),
        ("[RANGE '65 seconds']", "count(*), sum(bigint), max(double)"),
        ("[ROWS 4]", calls),
    )
    conditions = ("", " WHERE k = 'key1'", " WHERE bigint > 50")
    for (window, some), condition in product(shapes, conditions):
        asked.ask(f"SELECT {some} FROM t {window}{condition}", timeout="1 minute")
        asked.ask(f"SELECT k, {some} FROM t {window}{condition} GROUP BY k", timeout="1 minute")


STREAMED = (
    "count(DISTINCT string)",
    "sum(DISTINCT double)",
    "median(double)",
    "top_k(string, 2)",
    "max_by(string, bigint, 2)",
    "approx_top_k(bigint, 2, 3)",
    "approx_percentile(double, 0.5)",
    "first(string)",
    "max_by(k, double)",
    "stddev_pop(double)",
    "var_samp(int)",
    "sum(decimal)",
    "product(double)",
    "min(string)",
    "bool_or(boolean)",
)


def row_queries() -> None:
    """Joins, absences, distinct rows and differences, of few rows and of many."""
    from muntin.operators import RowEngine  # noqa: PLC0415  it brings numba

    rows = synthetic_rows(20_000, groups=5000)
    timeline = Timeline.of(rows.schema, "place")
    streams = dict.fromkeys("ab", StreamSchema(rows.schema, timeline))

    def window(stream: str, names: Sequence[str]) -> Windowed:
        columns = [Column(f"{stream}_{name}", bind_text(name, rows.schema)) for name in names]
        return Windowed(stream, 40, None, tuple(columns))

    for names in (["g"], ["string", "decimal"], ["boolean", "double"]):
        left, right = (window(stream, names) for stream in "ab")
        places = tuple(range(len(names)))
        keys = (places, places)
        absent = Exists(left, right, keys, negated=True)
        same = bind_text(f"a_{names[0]} <= b_{names[0]}", Join((left, right), keys).schema)
        # Two joins of one key share their rows; the one below EXISTS has its own.
        roots: list[Node] = [
            Join((left, right), keys),
            Join((replace(left, range=60), right), keys),
            Join((absent, right), keys),
            absent,
            replace(absent, residual=same),
            replace(absent, whole=True),
            replace(absent, left=absent, whole=True),
            Distinct(left),
            Distinct(absent),
            *(Difference(left, right, kind) for kind in ("all", "except", "intersect")),
        ]
        finals = [
            RowFinal(f"q{place}", root, timeline, output="final")
            for place, root in enumerate(roots)
        ]
        finals += [
            RowFinal("pieces", Distinct(left), timeline),
            RowFinal("log", absent, timeline, output="changes"),
            RowFinal("ends", absent, timeline, slide=7, range=40),
            RowFinal("came", absent, timeline, slide=7, range=40, show="istream"),
        ]
        plan = RowPlan(streams, tuple(finals))
        engine = RowEngine(plan)
        for begin, end in ((0, 500), (500, 1000), (1000, 20_000)):
            batch = rows.slice(begin, end - begin)
            engine.feed({"a": batch, "b": batch}, {"a": end, "b": end - 3})
            engine = RowEngine.restore(plan, engine.snapshot())
        engine.close()
    some = synthetic_rows()
    computed = "count(*) AS n, avg(a.double) AS v, max(b.string) AS m, last(b.bigint) AS l"
    joined = "FROM a [RANGE 40 SLIDE 7] LEFT JOIN b [RANGE 20] ON a.g = b.g"
    pairs = joined.replace("LEFT ", "")
    texts = [
        f"SELECT {computed} {joined}",
        f"SELECT a.string, {computed} {joined} GROUP BY 1",
        f"SELECT sum(a.bigint * b.bigint) AS p {joined}",
        f"SELECT a.string, {computed}, max(a.bigint - b.bigint) AS d {pairs} GROUP BY 1",
    ]
    aggregate({"a": some, "b": some}, texts, time="place")
