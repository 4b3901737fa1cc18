"""Queries that join late take what other queries keep, and are right from then on."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import muntin
from muntin.operators import RowEngine
from muntin.plan.operators import Join, RowFinal, RowPlan, StreamSchema, leaves
from muntin.testing import row_oracle as oracle
from operators import random_plans
from operators.random_plans import TIME, batches, leaf, renamed

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("s", pa.string()), ("v", pa.int64())])
COLUMNS = dict.fromkeys("ab", SCHEMA)
RANGES = (3, 5, 8, 13, 20)
KEYS = (
    ("a.k = b.k", "WHERE a.k = b.k"),
    ("a.s = b.s", "WHERE a.s = b.s"),
    ("a.k = b.k AND a.s = b.s", "WHERE a.k = b.k AND a.s = b.s"),
)
LATENESS = 3


def rows(rng: random.Random, count: int, span: int) -> list[tuple[Any, ...]]:
    return [
        (
            rng.randrange(span),
            rng.choice((None, 1, 1, 2, 3)),
            rng.choice((None, "x", "x", "y")),
            rng.randrange(6),
        )
        for _ in range(count)
    ]


def table(found: list[tuple[Any, ...]]) -> pa.Table:
    columns = list(zip(*found, strict=True)) or [()] * 4
    return pa.table([list(each) for each in columns], schema=SCHEMA)


def query(rng: random.Random, slide: str = "") -> str:
    """A query over rows of both streams, of those that keep rows and of those that take them."""
    on, where = KEYS[rng.choice((0, 0, 0, 1, 2))]
    first, second = (f"[RANGE {rng.choice(RANGES)}{slide}]" for _ in "ab")
    limit = rng.choice(("", "", " AND a.v > 1", " AND b.v > 1", " AND a.ts % 3 = 0"))
    both = rng.choice(("", "", " AND a.v <= b.v"))
    shown = rng.choice(("a.k, a.v, b.v AS w", "a.k, a.v, b.v AS w, a.ts AS born", "a.s, a.v"))
    kind = rng.choice(("join", "join", "join", "absent", "present", "left", "distinct", "except"))
    pairs = f"FROM a {first} JOIN b {second} ON {on}{both} WHERE TRUE{limit}"
    if kind == "join":
        return f"SELECT {shown} {pairs}"
    if kind == "distinct":
        return f"SELECT DISTINCT a.k {pairs}" if rng.random() < 0.7 else (
            f"SELECT DISTINCT k FROM a {first}"
        )  # fmt: skip
    if kind == "left":
        return f"SELECT a.k, a.v, b.v AS w FROM a {first} LEFT JOIN b {second} ON {on}{both}"
    if kind == "except":
        return f"SELECT k FROM a {first} EXCEPT ALL SELECT k FROM b {second}"
    told = "NOT EXISTS" if kind == "absent" else "EXISTS"
    return f"SELECT a.k, a.s, a.v FROM a {first} WHERE {told} (SELECT 1 FROM b {second} {where})"


def created(rng: random.Random, name: str) -> list[str]:
    """The query in all forms that show its rows."""
    state = rng.getstate()
    plain = query(rng)
    rng.setstate(state)
    sliding = query(rng, " SLIDE 4")
    return [
        f"CREATE QUERY {name}_rows AS {plain}",
        f"CREATE QUERY {name}_changes WITH (output = 'changes') AS {plain}",
        f"CREATE QUERY {name}_ends AS {sliding}",
    ]


def check(final: RowFinal, since: int | None, shown: pa.Table, tables: dict[str, pa.Table]) -> None:
    """What a query showed that is whole from an instant on, against all that there was."""
    whole = oracle.answers(RowPlan(STREAMS_OF(tables), (final,)), final.root, tables)
    cut = [
        replace(each, begin=each.begin if since is None else max(each.begin, since))
        for each in whole
        if since is None or each.end is None or each.end > since
    ]
    if final.slide is None:
        oracle.check_lifetimes(cut, oracle.replayed(shown) if final.output == "changes" else shown)
        return
    horizon = max((each.begin for each in whole), default=0)
    first = -40 if since is None else since + 1
    ends = [t for t in range(first, horizon + 1) if (t - final.phase) % final.slide == 0]
    got = Counter((end, values) for (_, end), values in oracle.shown(shown, 2))
    got = Counter({key: count for key, count in got.items() if key[0] <= horizon})
    assert got == oracle.windows(final, whole, ends)


def STREAMS_OF(tables: dict[str, pa.Table]) -> Any:
    return {name: StreamSchema(SCHEMA, TIME) for name in tables}


def run(seed: int) -> tuple[int, int]:
    """Queries that join and leave at random; how many joined late, and how many of them early."""
    rng = random.Random(seed)
    span = 60
    given = {name: rows(rng, rng.choice((10, 40, 80)), span) for name in "ab"}
    tables = {name: table(each) for name, each in given.items()}
    arriving = list(batches(rng, given, LATENESS))
    running = [text for i in range(rng.randrange(1, 4)) for text in created(rng, f"q{i}")]
    stream = muntin.stream(";".join(running), COLUMNS, time="ts", lateness=LATENESS)
    found: dict[str, list[pa.Table]] = {}
    finals: dict[str, RowFinal] = {}
    since: dict[str, int | None] = {}
    seen: dict[str, int] = {}
    usual: dict[str, int] = {}

    def took() -> None:
        for final in stream.row_plan().finals:
            if final.name not in finals:
                finals[final.name] = final
                since[final.name] = stream.progress().since[final.name]
                read = leaves(final.root)
                latest = max((seen.get(leaf.stream, -1) for leaf in read), default=-1)
                if latest >= 0:
                    usual[final.name] = latest + max(leaf.range or 0 for leaf in read)

    took()
    gone: set[str] = set()
    for number, (batch, _) in enumerate(arriving):
        if number and rng.random() < 0.4:
            late = created(rng, f"late{number}")
            chosen = rng.sample(late, rng.randrange(1, 4))
            stream.add(";".join(chosen))
            took()
        if rng.random() < 0.15 and len(stream.queries()) > 1:
            leaving = rng.choice(stream.queries()).name
            stream.remove(leaving)
            gone.add(leaving)
        if rng.random() < 0.3:
            stream = muntin.Stream.restore(stream.snapshot())
        for name, each in batch.items():
            rows_of = table([tuple(row.values()) for row in each.to_pylist()])
            if rows_of.num_rows:
                seen[name] = max(seen.get(name, 0), *rows_of["ts"].to_pylist())
            for query_name, answer in stream.feed(rows_of, name).items():
                found.setdefault(query_name, []).append(answer)
    for query_name, answer in stream.close().items():
        found.setdefault(query_name, []).append(answer)
    for name, final in finals.items():
        if name not in gone:
            check(final, since[name], pa.concat_tables(found[name]), tables)
    late_ones = [name for name in usual if name not in gone]
    for name in late_ones:
        assert since[name] is None or since[name] <= usual[name]
    return len(late_ones), sum(since[name] != usual[name] for name in late_ones)


@pytest.mark.parametrize("seed", range(16))
def test_queries_are_whole_from_their_first_instant_on(seed: int) -> None:
    run(seed)


def test_streams_may_leave_with_the_queries_that_read_them() -> None:
    sides = [leaf(name, 9) for name in "ab"]
    join = Join((sides[0], renamed(sides[1], ["k1", "s1", "v1"])), ((0,), (0,)))
    schemas = {name: StreamSchema(random_plans.SCHEMA, TIME) for name in "abc"}
    engine = RowEngine(
        RowPlan({name: schemas[name] for name in "ab"}, (RowFinal("q", join, TIME),))
    )
    row = random_plans.table([(7, 1.0, "x", 2)])
    engine.feed({"a": row, "b": row}, {"a": 7, "b": 7})
    # As on Spark, where each way to spread a stream is a stream of the engine's.
    engine.see({"c": 7})
    engine.adopt(RowPlan({"c": schemas["c"]}, (RowFinal("q", leaf("c", 9), TIME),)))
    assert engine.since("q") == 7 + 9
    assert engine.feed({"c": row}, {"c": 7})["q"].num_rows == 0
