"""Row plans in buckets: all buckets together answer as one engine over all rows does."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pytest

from muntin.errors import QueryError
from muntin.operators import RowEngine
from muntin.operators.feeds import FeedSplitter, gathered_feeds, packed, unpacked
from muntin.plan.operators import RowPlan, StreamSchema
from muntin.plan.routes import RoutedPlan
from muntin.plan.timeline import Timeline
from muntin.planner.rows import routed, row_plan
from muntin.queries import RowQuery, all_queries
from muntin.testing import row_oracle as oracle
from operators.random_plans import STREAMS, batches, finals, grown, run, stream, table

BUCKETS = 3
COLUMNS = pa.schema({"ts": pa.int64(), "id": pa.int64(), "other": pa.int64(), "v": pa.float64()})
TWO = {name: StreamSchema(COLUMNS, Timeline("ts", pa.int64())) for name in ("a", "b")}


def parcels(plan: RoutedPlan, batch: Mapping[str, pa.Table]) -> list[dict[str, bytes]]:
    """The rows of each bucket, as they would travel."""
    found: list[dict[str, bytes]] = [{} for _ in range(BUCKETS)]
    for name, rows in batch.items():
        for feed in plan.of_stream(name):
            splitter = FeedSplitter(feed, BUCKETS)
            splitter.take(rows)
            for bucket, data in splitter.packets().items():
                found[bucket][feed.name] = data
    return found


def run_in_buckets(
    plan: RowPlan, given: Iterator[tuple[dict[str, pa.Table], dict[str, int]]]
) -> tuple[dict[str, pa.Table], RoutedPlan]:
    """All results of a plan that is run bucket by bucket."""
    spread = routed(plan)
    engines = [RowEngine(spread.plan) for _ in range(BUCKETS)]
    found: dict[str, list[pa.Table]] = {final.name: [] for final in plan.finals}
    seen: dict[str, int] = {}
    for batch, watermarks in given:
        for name, rows in batch.items():
            seen[name] = max(seen.get(name, 0), *rows["ts"].to_pylist(), 0)
        marks = {
            feed.clock: watermarks[feed.stream]
            for feed in spread.feeds.values()
            if feed.stream in watermarks
        }
        for engine, parcel in zip(engines, parcels(spread, batch), strict=True):
            for name, rows in engine.feed(gathered_feeds([parcel]), marks).items():
                found[name].append(rows)
    for engine in engines:
        engine.see(
            {feed.clock: seen[feed.stream] for feed in spread.feeds.values() if feed.stream in seen}
        )
        for name, rows in engine.close().items():
            found[name].append(rows)
    return {name: pa.concat_tables(each) for name, each in found.items()}, spread


@pytest.mark.parametrize("seed", range(8))
def test_buckets_answer_as_one_engine_does(seed: int) -> None:
    rng = random.Random(seed)
    roots = {f"q{i}": grown(rng, rng.randrange(1, 5)) for i in range(2)}
    shown = [final for name, root in roots.items() for final in finals(rng, root, name)]
    plan = RowPlan(STREAMS, tuple(shown))
    rows = {name: stream(rng, rng.choice([6, 14, 14]), 30) for name in STREAMS}
    found, _ = run_in_buckets(plan, batches(rng, rows, rng.choice([0, 3, 8])))
    whole = run(plan, iter([({name: table(each) for name, each in rows.items()}, {})]))
    for final in shown:
        leads = len(final.schema) - len(final.root.schema)
        assert Counter(oracle.shown(found[final.name], leads)) == Counter(
            oracle.shown(whole[final.name], leads)
        ), final.name


def spread_of(sql: str) -> RoutedPlan:
    """The plan of one query over the streams a and b."""
    queries = [each for each in all_queries(sql) if isinstance(each, RowQuery)]
    return routed(row_plan(queries, TWO))


@pytest.mark.parametrize(
    ("sql", "spread"),
    [
        ("SELECT a.v FROM a [RANGE 5] JOIN b [RANGE 5] ON a.id = b.other", ("id = other",)),
        ("SELECT DISTINCT id, other FROM a [RANGE 5]", ("id", "other")),
        ("SELECT DISTINCT id % 2 AS half FROM a [RANGE 5]", ("id % 2",)),
        ("SELECT v FROM a [RANGE 5] WHERE v > 1", ("ts",)),
        ("SELECT id FROM a [RANGE 5] EXCEPT SELECT other FROM b [RANGE 3]", ("id = other",)),
        ("SELECT id FROM a [RANGE 5] UNION ALL SELECT id FROM b [RANGE 5]", ("ts",)),
        ("SELECT DISTINCT a.id FROM a [RANGE 5] JOIN b [RANGE 5] ON a.id = b.id", ("id",)),
        # What DISTINCT compares is not what the join compares.
        ("SELECT DISTINCT a.v FROM a [RANGE 5] JOIN b [RANGE 5] ON a.id = b.id", ()),
        ("SELECT v FROM a [RANGE 5] WHERE EXISTS (SELECT 1 FROM b [RANGE 2] WHERE b.v > 3)", ()),
        ("SELECT v FROM a [RANGE 5] WHERE id NOT IN (SELECT id FROM b [RANGE 2])", ()),
        ("SELECT v FROM a [RANGE 5] WHERE id IN (SELECT id FROM b [RANGE 2])", ("id",)),
        ("SELECT Istream(id, v) FROM a [RANGE 5]", ("id", "v")),
    ],
)
def test_a_query_is_spread_by_what_all_its_keys_have_in_common(
    sql: str, spread: tuple[str, ...]
) -> None:
    assert spread_of(sql).spread["q1"] == spread


def test_a_row_is_sent_once_for_each_key_whoever_needs_it() -> None:
    plan = spread_of(
        """SELECT a.v FROM a [RANGE 5] JOIN b [RANGE 5] ON a.id = b.id WHERE a.v > 1;
        SELECT a.ts AS t FROM a [RANGE 9] JOIN b [RANGE 7] ON a.id = b.id WHERE a.v > 7;
        SELECT x.v, y.v AS w FROM a [RANGE 5] x JOIN a [RANGE 5] y ON x.id = y.other;"""
    )
    assert sorted(plan.feeds) == ["a by id", "a by other", "b by id"]
    # The self-join takes all rows of a by id, whatever v is.
    assert plan.feeds["a by id"].where == ()
    assert plan.feeds["a by id"].columns == ("ts", "id", "v")
    assert plan.feeds["b by id"].columns == ("ts", "id")


def test_rows_that_nobody_wants_are_not_sent_but_those_that_fail_are() -> None:
    plan = spread_of("SELECT v FROM a [RANGE 5] WHERE 10 div id > 2")
    rows = pa.table(
        {"ts": [1, 2, 3, 4], "id": [1, 0, 9, None], "other": [1] * 4, "v": [0.5] * 4}, COLUMNS
    )
    sent = gathered_feeds(parcels(plan, {"a": rows}))["a by ts"]
    assert sorted(sent["ts"].to_pylist()) == [1, 2]


def test_streams_whose_hot_keys_may_be_split_are_sent_for_their_queries_alone() -> None:
    plan = spread_of(
        """CREATE QUERY one WITH (skew = 'replicate') AS
          SELECT a.v, b.v AS w FROM a [RANGE 5] JOIN b [RANGE 7] ON a.id = b.other;
        CREATE QUERY two WITH (skew = 'replicate') AS
          SELECT a.v, b.v AS w FROM a [RANGE 9] JOIN b [RANGE 2] ON a.id = b.other;
        CREATE QUERY three WITH (skew = 'replicate') AS
          SELECT v FROM a [RANGE 4] WHERE EXISTS (SELECT 1 FROM b [RANGE 3] WHERE b.other = a.id);
        CREATE QUERY four AS SELECT a.v, b.v AS w FROM a [RANGE 5] JOIN b [RANGE 7] ON a.id = b.id;
        """
    )
    both, first = plan.groups
    assert both.name == "a by id and b by other"
    assert (both.lasting, both.free) == ((9, 7), (0, 1))
    # Who has a partner is for the left row alone to say.
    assert (first.lasting, first.free) == ((4, 3), (0,))
    assert not {*both.clocks} & {*first.clocks}
    assert {"a by id", "b by id"} < {*plan.feeds}
    assert set(plan.labels.values()) == {"a by id", "b by other"}
    assert plan.spread["one"] == ("id = other, hot keys split by replicating their smaller side",)


def test_what_no_first_stream_decides_alone_is_not_replicated() -> None:
    for sql in (
        "SELECT DISTINCT id FROM a [RANGE 5]",
        "SELECT a.v, b.v AS w FROM a [RANGE 5] LEFT JOIN b [RANGE 5] ON a.id = b.id",
        "SELECT v FROM a [RANGE 5] WHERE id NOT IN (SELECT id FROM b [RANGE 2])",
    ):
        with pytest.raises(QueryError, match="skew = 'replicate' works only with"):
            spread_of(f"CREATE QUERY q1 WITH (skew = 'replicate') AS {sql}")
    with pytest.raises(QueryError, match="there is no skew 'salt'"):
        spread_of("CREATE QUERY q1 WITH (skew = 'salt') AS SELECT id FROM a [RANGE 5]")


def test_explain_says_what_rows_are_spread_by() -> None:
    joined = spread_of("SELECT a.v FROM a [RANGE 5] JOIN b [RANGE 5] ON a.id = b.id")
    assert "spread over buckets by id" in joined.explain()
    alone = spread_of("SELECT v FROM a [RANGE 5] WHERE EXISTS (SELECT 1 FROM b [RANGE 2])")
    assert "in one bucket" in alone.explain()


@pytest.mark.parametrize(
    ("values", "width"),
    [
        ([7, -3, None, 7], 2),
        ([1_700_000_000_000_000, 1_700_000_000_065_535], 2),
        ([0, 65_536], 4),
        ([-(2**31), 2**31 - 1], 4),
        ([0, 2**32], 8),
        ([-(2**63), None, 2**63 - 1], 8),
        ([None, None], 8),
        ([], 8),
    ],
)
@pytest.mark.parametrize("kind", [pa.int64(), pa.timestamp("us", "UTC"), pa.timestamp("ns")])
def test_packets_hold_numbers_and_times_in_as_few_bytes_as_they_need(
    kind: pa.DataType, values: list[int | None], width: int
) -> None:
    column = pa.array(values, pa.int64()).view(kind)
    others = {"s": pa.array(["x"] * len(values)), "v": pa.array([0.5] * len(values))}
    schema = pa.schema({"t": kind, "s": pa.string(), "v": pa.float64()}, metadata={"of": "us"})
    rows = pa.RecordBatch.from_arrays([column, *others.values()], schema=schema)
    for part in (rows, rows.slice(1)):
        found = unpacked([packed(part)])
        assert found.schema.equals(schema, check_metadata=True)
        assert found.equals(pa.Table.from_batches([part]))
        found.validate(full=True)
    with pa.ipc.open_stream(pa.py_buffer(packed(rows))) as reader:
        assert reader.schema.field("t").type.bit_width == 8 * width
