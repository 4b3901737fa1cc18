"""Values of queries without groups, spread over buckets by their hash: the answers of one bucket.

No Spark is needed here, but for the last test: buckets are called as its tasks call them.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engine.live import one, shaken
from engine.members import NEVER, Member, collect
from engine.rich_queries import NUMBERS, SCHEMA, condition
from muntin import sinks
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.holistic.runs import RunColumn
from muntin.aggregates.columns.holistic.shares import spread_values
from muntin.api import run
from muntin.engine.answers import moving, stage_b
from muntin.errors import DataError
from muntin.expressions.zones import UTC
from muntin.plan import SharedPlan, Timeline
from muntin.plan.relations import Relation
from muntin.plan.shares import plan_in
from muntin.planner import Draft, Moment, Replanner
from muntin.planner.continuity import dated
from muntin.planner.sharing import Optimizer, OptimizerName
from muntin.queries import Query
from muntin.spark.streaming.tasks import head
from muntin.testing import assert_same_rows, trades
from spark.bucket_workers import BUCKETS, PLANS, Cluster, text
from spark.folder_stream import FolderStream, expected, parts, wait_for_batches

SPREAD = [
    *("count(DISTINCT v)", "count(DISTINCT p)", "count(DISTINCT s)", "count(DISTINCT d)"),
    *("count(DISTINCT f)", "count(DISTINCT v) * 2 + count(*)", "sum(DISTINCT m)"),
    *("sum(DISTINCT p)", "sum(DISTINCT v)", "avg(DISTINCT q)", "avg(DISTINCT m)", "mode(s)"),
    *("mode(p)", "top_k(s, 2)", "top_k(v, 3)", "top_k(p, 2)", "frequent(v, 0.3)"),
    "frequent(s, 0.15)",
]
PLAIN = [
    *("count(*)", "sum(p)", "max(s)", "median(p)", "percentile(v, array(0.1, 0.75))", "min(v)"),
    *("collect_set(s)", "collect_list(v)", "approx_count_distinct(s)"),
]


@pytest.fixture(autouse=True)
def few_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bases, and pieces that are put together, come after a few batches already."""
    PLANS.clear()
    for name, value in {"_LEAST": 600, "_FEWEST": 2, "_FAN_OUT": 3, "_RECENT": 1}.items():
        monkeypatch.setattr(head, name, value)


def drawn(rng: random.Random, name: str) -> str:
    """A random query, most often without groups, over values that are spread and others."""
    calls = rng.sample(SPREAD, rng.choice([0, 1, 2, 3])) + rng.sample(PLAIN, rng.choice([0, 1, 2]))
    calls = calls or ["sum(v)"]
    numbers = rng.sample(NUMBERS, 2)
    shown = []
    for place, call in enumerate(calls):
        filtered = rng.random() < 0.3 and call.endswith(")") and " " not in call.split("(")[0]
        where = f" FILTER (WHERE {condition(rng, numbers, 0)})" if filtered else ""
        shown.append(f"{call}{where} AS a{place}")
    slide = rng.choice([1, 2, 5, 7, 12])
    reach = rng.choice([slide, 2 * slide, slide + 3, 5 * slide, 23])
    sql = f"CREATE QUERY {name} AS SELECT {', '.join(shown)} FROM s [RANGE {reach} SLIDE {slide}]"
    if rng.random() < 0.6:
        sql += f" WHERE {condition(rng, numbers, rng.choice([0, 1]))}"
    if rng.random() < 0.15:
        return f"{sql} GROUP BY s"
    if rng.random() < 0.2:
        return f"{sql} HAVING count(DISTINCT v) > 1"
    return f"{sql} EMIT EMPTY" if rng.random() < 0.2 else sql


class Plans:
    """The plans of a stream on so many buckets; ``spreads`` says whether values are spread.

    An optimizer weighs who shares slices anew wherever a rate is told: queries change trees.
    """

    def __init__(
        self,
        *,
        spreads: bool = True,
        optimizer: OptimizerName | None = None,
        sample: pa.Table | None = None,
    ) -> None:
        known = {} if sample is None else {Relation((), SCHEMA, UTC): sample}
        draft = Draft((), SCHEMA, Timeline.of(SCHEMA, "t"), sample=known)
        reviewer = None if optimizer is None else Optimizer(optimizer)
        self._replanner = Replanner(draft, reviewer, buckets=BUCKETS)
        self._alone = Replanner(draft, reviewer, buckets=BUCKETS if spreads else 1)
        self.now: SharedPlan | None = None
        self.twins = 0

    def of(
        self,
        queries: Sequence[Query],
        watermark: int | None,
        seen: int | None = None,
        rate: float | None = None,
    ) -> SharedPlan:
        """The plan for some queries: that of the state where it will do."""
        if self.now is None:
            self.now = self._alone.plan(queries, {}, Moment())
        elif rate is not None or [final.query for final in self.now.finals] != list(queries):
            moment = Moment(self.now, watermark, rate)
            self.now = dated(self._replanner.plan(queries, {}, moment), seen)
        self.twins += sum(node.twin is not None for node in self.now.partials)
        return self.now


OPTIMIZERS: list[OptimizerName | None] = [None, "auto", "tri_weave", "no_share"]


@pytest.mark.parametrize("seed", range(12))
def test_queries_join_and_leave_and_workers_take_turns(seed: int, tmp_path: Path) -> None:
    rng = random.Random(9100 + seed)
    optimizer = OPTIMIZERS[seed % len(OPTIMIZERS)]
    pool = [drawn(rng, f"q{number}") for number in range(6)]
    table = shaken(rng, 160, 6)
    lateness = rng.choice([6, 12])
    active = [Member(one(sql), -NEVER, {}) for sql in pool[:3]]
    members, waiting = list(active), pool[3:]
    cluster, plans = Cluster(tmp_path, rng, lateness, workers=2), Plans(optimizer=optimizer)
    kept = []
    for batch in table.to_batches(max_chunksize=rng.choice([4, 9])):
        if waiting and rng.random() < 0.2:
            query = one(waiting.pop().removesuffix(" EMIT EMPTY"))
            active.append(Member(query, -NEVER if cluster.seen is None else cluster.seen, {}))
            members.append(active[-1])
        leaving = rng.choice(active) if rng.random() < 0.1 and len(active) > 1 else None
        if leaving is not None and not leaving.query.emit_empty:
            active.remove(leaving)
            leaving.left = -NEVER if cluster.watermark is None else cluster.watermark
        late = -NEVER if cluster.watermark is None else cluster.watermark
        kept.append(pa.Table.from_batches([batch]).filter(pc.greater_equal(batch["t"], late)))
        rate = rng.choice([0.001, 1.0, 1000.0]) if optimizer and rng.random() < 0.2 else None
        asked = [member.query for member in active]
        plan = plans.of(asked, cluster.watermark, cluster.seen, rate)
        assert plan.spreads
        collect(active, cluster.run(plan, batch, cache=rng.choice([0, 64, 64])))
    collect(active, cluster.close())
    for member in members:
        member.check(pa.concat_tables([table.slice(0, 0), *kept]), "t")


def run_both(
    folder: Path,
    sql: Sequence[str],
    table: pa.Table,
    seed: int,
    size: int = 7,
    sample: pa.Table | None = None,
) -> tuple[Cluster, Cluster]:
    """Run the same queries with values spread and in one bucket; their answers are the same."""
    found = []
    for spreads in (True, False):
        rng = random.Random(seed)
        cluster = Cluster(folder / str(spreads), rng, 6, workers=2)
        plan = Plans(spreads=spreads, sample=sample).of([one(each) for each in sql], None)
        assert bool(plan.spread_queries) == spreads
        answers: dict[str, list[str]] = {}
        for rows in [*table.to_batches(max_chunksize=size), None]:
            due = cluster.close() if rows is None else cluster.run(plan, rows)
            for name, lines in text(due).items():
                answers.setdefault(name, []).extend(lines)
        found.append((cluster, {name: sorted(each) for name, each in answers.items()}))
    (spread, one_place), (alone, wanted) = found
    assert one_place == wanted
    assert spread.errors == alone.errors
    assert len(spread.sharing) == BUCKETS
    assert not alone.sharing
    return spread, alone


@pytest.mark.parametrize("on_cap", ["null", "approximate"])
@pytest.mark.parametrize("cap", ["cap_values = 6", "cap_bytes = 40"])
def test_caps_are_judged_by_all_values_of_a_window(on_cap: str, cap: str, tmp_path: Path) -> None:
    """Buckets have fewer values each than the cap; windows have more, and are over it."""
    calls = "count(DISTINCT v) AS n, count(*) AS c"
    if on_cap == "null":
        calls += ", count(DISTINCT s) AS t, sum(DISTINCT p) AS x, top_k(v, 2) AS k, mode(s) AS m"
    head_of = f"CREATE QUERY q WITH ({cap}, on_cap = '{on_cap}') AS SELECT {calls}"
    sql = [f"{head_of} FROM s [RANGE 9 SLIDE 3]"]
    table = shaken(random.Random(3), 200, 6)
    spread, _ = run_both(tmp_path, sql, table, 1)
    assert bool(spread.errors["q"]) == (on_cap == "null")


def test_a_window_over_its_cap_ends_the_run(tmp_path: Path) -> None:
    sql = "CREATE QUERY q WITH (cap_values = 4, on_cap = 'fail') AS SELECT count(DISTINCT v) AS n"
    plan = Plans().of([one(f"{sql} FROM s [RANGE 20 SLIDE 10]")], None)
    rows = pa.table({"t": [*range(10)], "v": [*range(10)]}).to_batches()[0]
    nulls = [pa.nulls(10, field.type) for field in SCHEMA]
    columns = dict(zip(SCHEMA.names, nulls, strict=True)) | {"t": rows["t"], "v": rows["v"]}
    cluster = Cluster(tmp_path, random.Random(1), 0, workers=1)
    cluster.run(plan, pa.record_batch(columns, schema=SCHEMA))
    with pytest.raises(DataError, match="a window has 10 values of 80 bytes for count_distinct"):
        cluster.close()


def test_gaps_of_any_length_are_filled_at_home_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that comes back after long fills nothing in its own bucket."""
    monkeypatch.setattr(moving, "MAX_FILLED_ROWS", 40)
    monkeypatch.setattr(stage_b, "MAX_FILLED_ROWS", 40)
    sql = "CREATE QUERY q AS SELECT count(DISTINCT v) AS n, sum(v) AS s FROM s [RANGE 2 SLIDE 1]"
    # One value every 30 ticks, another one only at both ends.
    times = [0, *range(0, 300, 30), 300]
    values = [5, *([8] * (len(times) - 2)), 5]
    nulls = {field.name: pa.nulls(len(times), field.type) for field in SCHEMA}
    rows = pa.table(nulls | {"t": times, "v": values}, schema=SCHEMA)
    run_both(tmp_path, [f"{sql} EMIT EMPTY"], rows, 2, size=1)


def test_what_began_in_one_bucket_stays_there(tmp_path: Path) -> None:
    """A stream whose plans do not spread goes on without, whoever joins it."""
    rng = random.Random(4)
    cluster, plans = Cluster(tmp_path, rng, 6, workers=2), Plans(spreads=False)
    members = [Member(one(drawn_distinct("a", 9)), -NEVER, {})]
    table = shaken(rng, 120, 6)
    kept = []
    for number, batch in enumerate(table.to_batches(max_chunksize=10)):
        if number == 5:
            members.append(Member(one(drawn_distinct("b", 14)), cluster.seen or 0, {}))
        late = -NEVER if cluster.watermark is None else cluster.watermark
        kept.append(pa.Table.from_batches([batch]).filter(pc.greater_equal(batch["t"], late)))
        plan = plans.of([member.query for member in members], cluster.watermark)
        assert not plan.spreads
        collect(members, cluster.run(plan, batch))
    collect(members, cluster.close())
    assert not cluster.sharing
    for member in members:
        member.check(pa.concat_tables([table.slice(0, 0), *kept]), "t")


def test_groups_that_are_rolled_up_keep_their_values_with_them(tmp_path: Path) -> None:
    """Values of groups lie where the groups are, and those of all rows where their hash says."""
    sql = [
        f"CREATE QUERY {name} AS SELECT count(DISTINCT v) AS n, top_k(v, 2) AS k, median(v) AS m, "
        f"sum(p) AS x FROM s [RANGE 12 SLIDE 4] {by}"
        for name, by in (("fine", "GROUP BY s"), ("all_rows", ""))
    ]
    # Few values of few groups, at few times: that pays.
    rows = {field.name: pa.nulls(600, field.type) for field in SCHEMA}
    chance = random.Random(5)
    rows |= {"t": sorted(chance.randrange(20) for _ in range(600))}
    rows |= {"v": chance.choices(range(9), k=600), "s": chance.choices("ab", k=600)}
    table = pa.table(rows, schema=SCHEMA)
    plan = Plans(sample=table).of([one(each) for each in sql], None)
    fine, whole = plan.partials
    assert whole.finer == 0
    assert not any(each.is_spread for each in fine.accumulators)
    spread = {str(each) for each in whole.accumulators if each.is_spread}
    assert spread == {"set(v) by hash", "runs(v) by hash"}
    run_both(tmp_path, sql, table, 6, 50, table)


def test_plans_of_versions_that_did_not_spread_are_read_as_such() -> None:
    plan = Plans().of([one(drawn_distinct("a", 9))], None)
    for each in (plan, *plan.partials[0].accumulators):
        vars(each).pop("spreads", None)
        vars(each).pop("is_spread", None)
    old = pickle.loads(pickle.dumps(plan))
    assert not old.spreads
    assert not old.spread_queries
    assert plan_in(old, 1, BUCKETS) is old


def drawn_distinct(name: str, reach: int) -> str:
    """A query over different values."""
    return (
        f"CREATE QUERY {name} AS SELECT count(DISTINCT v) AS n, top_k(s, 2) AS k FROM s "
        f"[RANGE {reach} SLIDE 3]"
    )


def test_explain_says_where_values_lie() -> None:
    sql = "SELECT count(DISTINCT v) AS n, median(v) AS m, mode(s) AS k FROM s [RANGE 9 SLIDE 3]"
    told = Plans().of([one(sql)], None).explain()
    assert (
        "values of set(v), runs(s), set(s) lie in all buckets, by their hash: counts and sums are "
        "added up and the best of all are chosen on the driver" in told
    )
    assert "values of runs(v) lie in bucket 0: answers need all values of a window" in told
    assert "in all buckets" not in Plans(spreads=False).of([one(sql)], None).explain()


@pytest.mark.parametrize("kind", ["set", "runs"])
@pytest.mark.parametrize(
    "values",
    [
        pa.array([3, 1, 3, None, 2, 7, 7, 9]),
        pa.array([0.0, -0.0, float("nan"), float("-nan"), None, 1.5, -1.5, float("inf")]),
        pa.array(["b", "a", "", None, "é", "b", "longer than most", "a"]),
        pa.array([Decimal("1.10"), None, *[Decimal(n) for n in range(6)]], pa.decimal128(30, 2)),
        pa.array([True, False, None, True, True, False, True, True]),
        pa.array([2**63 + 5, 2**63 + 5, 7, None, 0, 1, 2, 3], pa.uint64()),
    ],
    ids=str,
)
def test_a_value_is_in_one_place_with_all_its_occurrences(kind: str, values: pa.Array) -> None:
    """Whatever codes a task gives to values, and in whichever order it sees them."""
    part = Part(kind, (values.type,))
    cells = np.array([0, 1, 0, 1, 2, 2, 0, 2])
    whole, again = RunColumn.empty(part, 4), RunColumn.empty(part, 4)
    whole.update(cells, (values,))
    order = np.arange(8)[::-1].copy()
    again.update(cells[order], (values.take(pa.array(order)),))
    places = spread_values(whole, 5)
    for one_place, other in zip(places, spread_values(again, 5), strict=True):
        assert str(one_place.to_arrow().to_pydict()) == str(other.to_arrow().to_pydict())
    found = RunColumn.empty(part, 4)
    for each in places:
        found.merge(np.arange(4), each)
    assert str(found.to_arrow().to_pydict()) == str(whole.to_arrow().to_pydict())
    held = [str(value) for each in places
            for value in {*map(str, each.to_arrow()["value"].flatten().to_pylist())}]  # fmt: skip
    assert len(held) == len(set(held)), "no value is in two places"


QUERIES = """CREATE QUERY kinds AS SELECT count(DISTINCT symbol) AS n, sum(DISTINCT vol) AS once,
    avg(DISTINCT price) AS a, top_k(vol, 3) AS top, mode(symbol) AS m, median(price) AS mid
  FROM trades [RANGE '15 minutes' SLIDE '5 minutes'] WHERE vol > 300
  HAVING count(DISTINCT symbol) > 1;
CREATE QUERY filled AS SELECT count(DISTINCT vol) FILTER (WHERE price > 53.9) AS n,
    frequent(exchange, 0.2) AS often, count(*) AS c
  FROM trades [RANGE '30 seconds' SLIDE '15 seconds'] WHERE symbol = 'D' EMIT EMPTY;
CREATE QUERY capped WITH (cap_values = 40, on_cap = 'approximate') AS
  SELECT count(DISTINCT vol) AS n FROM trades [RANGE '10 minutes' SLIDE '5 minutes'];
CREATE QUERY plain AS SELECT sum(vol) AS s FROM trades [RANGE '10 minutes' SLIDE '5 minutes'];"""
LATE = """CREATE QUERY late AS SELECT count(DISTINCT price) AS n, max(vol) AS v
  FROM trades [RANGE '10 minutes' SLIDE '5 minutes'] WHERE vol > 100"""


def test_a_run_restarts_and_takes_newcomers(spark: Any, tmp_path: Path) -> None:
    stream = FolderStream(tmp_path / "in")
    batches = parts(trades(2400, seed=22, seconds=6000), 6)
    options = {"checkpoint": tmp_path / "ck", "lateness": "1 minute"}
    options["sink"] = sinks.parquet(tmp_path / "out")
    sets: list[Any] = []

    def step(started: Any) -> None:
        sets.append(started.queries())
        stream.put(batches[len(sets) - 1])
        wait_for_batches(started, len(sets))

    with run(stream.frame(spark), QUERIES, partitions=2, buckets=4, **options) as started:
        step(started)
        step(started)
        assert started.plan().spread_queries == {"kinds", "filled", "capped"}
        assert "lie in all buckets, by their hash" in started.plan().explain()
        started.add(LATE)
        step(started)
    with run(stream.frame(spark), QUERIES, **options) as started:
        step(started)
        started.remove("capped")
        step(started)
        step(started)
        started.stop(flush=True)
    output = sinks.read(tmp_path / "out")
    answers = expected(batches, sets, lateness=60_000_000, close=True)
    assert len(answers) == 5
    assert not pc.all(answers["capped"]["n_exact"]).as_py()
    for name, table in answers.items():
        assert table.num_rows
        assert_same_rows(output[name].cast(table.schema), table)
