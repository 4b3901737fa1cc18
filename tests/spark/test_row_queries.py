"""Queries over rows with lifetimes on Spark: the same rows as in this process, exactly once."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.functions import expr

import muntin
from muntin import sinks
from muntin.api import run
from muntin.errors import DataError
from muntin.spark.streaming.driver.handle import Run
from muntin.testing import row_oracle as oracle
from spark.folder_stream import PATIENCE, FolderStream, wait_for_batches
from spark.test_several_streams import outcome

ORDERS = "ts timestamp, id bigint, buyer string, total double"
PAYMENTS = "paid_at timestamp, order_id bigint, amount double"
TIMES = {"orders": "ts", "payments": "paid_at"}
MINUTE = 60_000_000
PAID = """CREATE QUERY paid AS SELECT o.id, p.amount, p.paid_at
  FROM orders [RANGE '30 minutes'] o JOIN payments [RANGE '20 minutes'] p ON o.id = p.order_id
  WHERE p.amount > 10;"""
UNPAID = """CREATE QUERY unpaid AS SELECT o.id, o.total FROM orders [RANGE '30 minutes'] o
  LEFT ANTI JOIN payments [RANGE '1 hour'] p ON o.id = p.order_id AND p.amount >= o.total;"""
CHANGES = """CREATE QUERY open_orders WITH (output = 'changes') AS
  SELECT o.id, o.total FROM orders [RANGE '30 minutes'] o
  WHERE NOT EXISTS (SELECT 1 FROM payments [RANGE '1 hour'] p WHERE p.order_id = o.id);"""
BUYERS = "CREATE QUERY buyers AS SELECT DISTINCT buyer FROM orders [RANGE '15 minutes'];"
SEEN = """CREATE QUERY seen AS SELECT id FROM orders [RANGE '10 minutes']
  EXCEPT SELECT order_id FROM payments [RANGE '40 minutes'];"""
ANY = """CREATE QUERY quiet AS SELECT o.id FROM orders [RANGE '9 minutes'] o
  WHERE NOT EXISTS (SELECT 1 FROM payments [RANGE '1 minute'] p WHERE p.amount > 90);"""
TURNOVER = """CREATE QUERY turnover AS SELECT sum(amount) AS amount
  FROM payments [RANGE '20 minutes' SLIDE '5 minutes'];"""
NAMED = """CREATE QUERY named AS SELECT b.name, o.id, p.amount FROM orders [RANGE '30 minutes'] o
  JOIN names b ON o.buyer = b.buyer JOIN payments [RANGE '20 minutes'] p ON o.id = p.order_id;"""
NAMES = pa.table({"buyer": ["a", "b", "c"], "name": ["ann", "bob", "cid"]})
ALL = NAMED + PAID + UNPAID + CHANGES + BUYERS + SEEN + ANY + TURNOVER


def orders(rng: random.Random, count: int, minutes: int) -> pa.Table:
    """Orders in order of time but for some seconds."""
    times = sorted(rng.randrange(minutes * MINUTE) for _ in range(count))
    rows = [
        (time - rng.randrange(MINUTE), rng.randrange(count), rng.choice("abcde"), rng.random() * 90)
        for time in times
    ]
    return _table(rows, pa.schema({"ts": pa.timestamp("us", "UTC"), "id": pa.int64(),
                                   "buyer": pa.string(), "total": pa.float64()}))  # fmt: skip


def payments(rng: random.Random, count: int, minutes: int) -> pa.Table:
    """Payments of some of the orders."""
    times = sorted(rng.randrange(minutes * MINUTE) for _ in range(count))
    rows = [
        (time - rng.randrange(MINUTE), rng.choice([None, *range(count)]), rng.random() * 100)
        for time in times
    ]
    return _table(rows, pa.schema({"paid_at": pa.timestamp("us", "UTC"), "order_id": pa.int64(),
                                   "amount": pa.float64()}))  # fmt: skip


def _table(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table(
        [pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)], schema
    )


def cut(table: pa.Table, count: int) -> list[pa.Table]:
    """A table in batches."""
    size = -(-table.num_rows // count)
    return [table.slice(begin, size) for begin in range(0, table.num_rows, size)]


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """A table as a bag of rows."""
    return Counter(tuple(row.values()) for row in table.to_pylist())


class Both:
    """The same batches for Spark and for a stream in this process."""

    def __init__(self, spark: Any, folder: Path, queries: str, lateness: str = "2 minutes") -> None:
        self._spark, self._queries, self._lateness = spark, queries, lateness
        self.folder = folder
        self.first, self.second = (
            FolderStream(folder / "orders", ORDERS),
            FolderStream(folder / "payments", PAYMENTS),
        )
        schemas = {
            "orders": orders(random.Random(0), 1, 2).schema,
            "payments": payments(random.Random(0), 1, 2).schema,
        }
        tables = {"names": NAMES}
        self.local = muntin.stream(queries, schemas, TIMES, lateness=lateness, tables=tables)
        self.found: dict[str, list[pa.Table]] = {}

    def start(self, **others: Any) -> Run:
        streams = {
            "orders": muntin.files(str(self.first.folder), schema=ORDERS, maxFilesPerTrigger=1),
            "payments": self.second.frame(self._spark),
        }
        options = {"checkpoint": self.folder / "ck", "partitions": 2, "buckets": 3} | others
        options["tables"] = {"names": NAMES}
        return run(streams, self._queries, TIMES, lateness=self._lateness, **options)

    def put(self, ordered: pa.Table, paid: pa.Table) -> None:
        """One batch for both; the stream in this process has W move once, as Spark has."""
        self.first.put(ordered)
        self.second.put(paid)
        self._take(_fed_together(self.local, {"orders": ordered, "payments": paid}))

    def _take(self, results: Any) -> None:
        for name, table in results.items():
            self.found.setdefault(name, []).append(table)

    def close(self) -> dict[str, pa.Table]:
        self._take(self.local.close())
        return self.results()

    def results(self) -> dict[str, pa.Table]:
        return {name: pa.concat_tables(parts) for name, parts in self.found.items()}


def _fed_together(stream: Any, batches: dict[str, pa.Table]) -> dict[str, pa.Table]:
    found: dict[str, list[pa.Table]] = {}
    for name, batch in batches.items():
        for query, table in stream.feed(batch, name).items():
            found.setdefault(query, []).append(table)
    return {name: pa.concat_tables(parts) for name, parts in found.items()}


def test_row_queries_beside_aggregates_to_the_end(spark: Any, tmp_path: Path) -> None:
    rng = random.Random(1)
    both = Both(spark, tmp_path, ALL)
    for batch in zip(cut(orders(rng, 120, 180), 4), cut(payments(rng, 90, 180), 4), strict=True):
        both.put(*batch)
    started = both.start(trigger="available_now")
    assert started.await_termination(PATIENCE)
    started.stop(flush=True)
    assert isinstance(started.sink, sinks.MemorySink)
    for name, table in both.close().items():
        assert rows_of(started.sink.table(name)) == rows_of(table), name
        assert table.num_rows > 0, name
    progress = started.progress()
    assert progress.results == {name: len(table) for name, table in both.results().items()}
    assert progress.streams["orders"].rows == 120


def test_a_live_table_is_the_answer_at_the_last_row_after_a_flush(
    spark: Any, tmp_path: Path
) -> None:
    rng = random.Random(4)
    both = Both(spark, tmp_path, PAID + CHANGES)
    for batch in zip(cut(orders(rng, 120, 180), 3), cut(payments(rng, 90, 180), 3), strict=True):
        both.put(*batch)
    sink = sinks.duckdb(tmp_path / "live.duckdb", live=True)
    done = both.start(sink=sink, trigger="available_now")
    assert done.await_termination(PATIENCE)
    done.stop(flush=True)
    found, local = sinks.duckdb(tmp_path / "live.duckdb", live=True), both.close()
    lives = {"paid": local["paid"], "open_orders": oracle.replayed(local["open_orders"])}
    reached = both.local.reached()
    for name, table in lives.items():
        rows = [row for row in table.to_pylist() if row["valid_from"] <= reached[name].as_py()]
        alive = [row for row in rows if row["valid_to"] > reached[name].as_py()]
        assert alive, name
        ids = Counter(row["id"] for row in found.table(name).to_pylist())
        assert ids == Counter(row["id"] for row in alive), name
    latest = max(row["valid_from"] for row in lives["paid"].to_pylist())
    assert reached["paid"].as_py() >= latest


# Groups of one bucket, groups of all, rows without partners, pairs.
JOINED = """
CREATE QUERY by_order AS SELECT o.id, count(*) AS n, sum(p.amount) AS paid
  FROM orders [RANGE '30 minutes' SLIDE '10 minutes'] o
  JOIN payments [RANGE '20 minutes'] p ON o.id = p.order_id GROUP BY o.id;
CREATE QUERY by_buyer AS SELECT o.buyer, sum(p.amount) AS paid, avg(o.total) AS total
  FROM orders [RANGE '30 minutes' SLIDE '10 minutes'] o
  LEFT JOIN payments [RANGE '20 minutes'] p ON o.id = p.order_id GROUP BY o.buyer;
CREATE QUERY over AS SELECT count(*) AS n, max(p.amount - o.total) AS most
  FROM orders [RANGE '30 minutes' SLIDE '10 minutes'] o
  JOIN payments [RANGE '20 minutes'] p ON o.id = p.order_id WHERE p.amount > o.total EMIT EMPTY;
"""


def test_aggregates_over_joins_through_changes_restarts_and_repeats(
    spark: Any, tmp_path: Path
) -> None:
    rng = random.Random(5)
    out = tmp_path / "out"
    batches = list(zip(cut(orders(rng, 240, 240), 5), cut(payments(rng, 200, 240), 5), strict=True))
    both = Both(spark, tmp_path, JOINED + PAID)
    both.put(*batches[0])
    added = JOINED.split(";")[1].replace("by_buyer", "big").replace("30 m", "25 m")
    with both.start(sink=sinks.parquet(out)) as started:
        wait_for_batches(started, 1)
        started.add(added)
        started.remove("by_order")
        both.local.add(added)
        both.local.remove("by_order")
        assert "merged at the end of each batch" in started.row_plan().explain()
    both.put(*batches[1])
    both.put(*batches[2])
    assert both.start(sink=sinks.parquet(out), trigger="available_now").await_termination(PATIENCE)
    before = outcome(tmp_path / "ck", 2)
    for name in ("2", ".2.crc"):
        (tmp_path / "ck" / "spark" / "commits" / name).unlink()
    for batch in batches[3:]:
        both.put(*batch)
    done = both.start(sink=sinks.parquet(out), trigger="available_now")
    assert done.await_termination(PATIENCE)
    assert outcome(tmp_path / "ck", 2) == before
    done.stop(flush=True)
    found = sinks.read(out)
    expected = both.close()
    # Sums are compared by their bits.
    for name in ("by_buyer", "over", "big", "paid"):
        assert rows_of(found[name]) == rows_of(expected[name]), name
        assert expected[name].num_rows > 0, name
    assert "orders by id" in done.progress().hot_keys
    assert done.progress().results["by_buyer"] == expected["by_buyer"].num_rows


SPLIT = (PAID + UNPAID + JOINED).replace(" AS SELECT", " WITH (skew = 'replicate') AS SELECT")


def skewed(table: pa.Table, column: str, share: float, rng: random.Random) -> pa.Table:
    """The table with one value in a share of its rows."""
    values = [7 if rng.random() < share else each for each in table[column].to_pylist()]
    at = table.column_names.index(column)
    return table.set_column(at, column, pa.array(values, pa.int64()))


def test_hot_keys_are_split_and_whole_again(spark: Any, tmp_path: Path) -> None:
    rng = random.Random(8)
    out = tmp_path / "out"
    # Most payments are of one order in the first half, and few in the second.
    early = skewed(payments(rng, 5000, 120), "order_id", 0.8, rng)
    late = payments(rng, 5000, 240).slice(2500)
    paid = cut(early, 6) + cut(late, 6)
    ordered = cut(skewed(orders(rng, 900, 240), "id", 0.05, rng), 12)
    both = Both(spark, tmp_path, SPLIT)
    phases: list[set[str]] = []
    for number in range(12):
        both.put(ordered[number], paid[number])
        if number % 3 != 2:
            continue
        # Started again each time: the records say what is split.
        done = both.start(sink=sinks.parquet(out), trigger="available_now")
        assert done.await_termination(PATIENCE)
        split = done.progress().split_keys
        phases.append({each.phase for held in split.values() for each in held})
        if number == 5:
            assert {(each.key, each.spread) for held in split.values() for each in held} == {
                ("7", "payments")
            }
            assert "hot keys split" in done.row_plan().explain()
    assert "split" in phases[1]
    assert "split" not in phases[3]
    done.stop(flush=True)
    found, expected = sinks.read(out), both.close()
    for name, rows in expected.items():
        assert rows.num_rows > 0, name
        assert rows_of(found[name]) == rows_of(rows), name


def test_hot_keys_of_bounded_frames_are_split(spark: Any) -> None:
    rng = random.Random(9)
    paid = skewed(payments(rng, 2000, 100), "order_id", 0.8, rng)
    data = {"orders": skewed(orders(rng, 300, 100), "id", 0.1, rng), "payments": paid}
    frames = {name: spark.createDataFrame(table) for name, table in data.items()}
    plain, split = (
        muntin.aggregate(frames, sql, time=TIMES)
        for sql in (SPLIT.replace(" WITH (skew = 'replicate')", ""), SPLIT)
    )
    for name in plain:
        assert rows_of(split[name].toArrow()) == rows_of(plain[name].toArrow()), name


def test_bounded_frames_give_the_rows_of_this_process(spark: Any) -> None:
    rng = random.Random(3)
    data = {"orders": orders(rng, 150, 200), "payments": payments(rng, 120, 200)}
    tables = {"names": NAMES}
    asked = ALL + JOINED
    local = muntin.aggregate(data, asked, time=TIMES, tables=tables)
    frames = {name: spark.createDataFrame(table) for name, table in data.items()}
    found = muntin.aggregate(frames, asked, time=TIMES, tables=tables)
    for name in local:
        assert rows_of(found[name].toArrow()) == rows_of(local[name]), name
    assert (found.rows, found.bad_rows) == (local.rows, local.bad_rows)
    with pytest.raises(DataError, match="reads Spark DataFrames and other frames together"):
        muntin.aggregate(data | {"orders": frames["orders"]}, PAID, time=TIMES)
    # The same pairs as Spark's own join of intervals.
    pairs = frames["orders"].join(
        frames["payments"],
        expr(
            "id = order_id AND amount > 10 AND paid_at < ts + INTERVAL 30 MINUTES "
            "AND ts < paid_at + INTERVAL 20 MINUTES"
        ),
    )
    theirs = rows_of(pairs.select("id", "amount", "paid_at").toArrow())
    assert rows_of(found["paid"].select("id", "amount", "paid_at").toArrow()) == theirs


def test_changes_restarts_and_a_batch_that_is_run_again(spark: Any, tmp_path: Path) -> None:
    rng = random.Random(2)
    out = tmp_path / "out"
    batches = list(zip(cut(orders(rng, 200, 240), 6), cut(payments(rng, 150, 240), 6), strict=True))
    both = Both(spark, tmp_path, PAID + UNPAID + TURNOVER)
    both.put(*batches[0])
    with both.start(sink=sinks.parquet(out)) as started:
        wait_for_batches(started, 1)
        # One with a column that no query has read so far, and one that finds rows kept.
        added = BUYERS + PAID.replace("QUERY paid", "QUERY paid_too") + CHANGES
        started.add(added)
        started.remove("unpaid")
        both.local.add(added)
        both.local.remove("unpaid")
        assert "spread over buckets by id = order_id" in started.row_plan().explain()
        assert [final.name for final in started.row_plan().plan.finals] == [
            *("paid", "buyers", "paid_too", "open_orders")
        ]
    # While nobody looks: Spark then has the files of both streams in one batch.
    both.put(*batches[1])
    both.put(*batches[2])
    assert both.start(sink=sinks.parquet(out), trigger="available_now").await_termination(PATIENCE)
    # As if the driver had died before Spark's commit: the batch is run again by its record.
    before = outcome(tmp_path / "ck", 2)
    for name in ("2", ".2.crc"):
        (tmp_path / "ck" / "spark" / "commits" / name).unlink()
    for batch in batches[3:]:
        both.put(*batch)
    done = both.start(sink=sinks.parquet(out), trigger="available_now")
    assert done.await_termination(PATIENCE)
    assert outcome(tmp_path / "ck", 2) == before
    done.stop(flush=True)
    found = sinks.read(out)
    for name, table in both.close().items():
        assert rows_of(found[name]) == rows_of(table), name
        assert table.num_rows > 0, name


MANY = """
CREATE QUERY pairs AS SELECT a.v, b.v AS w FROM a [RANGE 3] JOIN b [RANGE 3] ON a.k = b.k;
CREATE QUERY present AS SELECT a.v FROM a [RANGE 1000000]
  WHERE EXISTS (SELECT 1 FROM b [RANGE 1000000] WHERE b.k = a.k);
CREATE QUERY alone AS SELECT a.v FROM a [RANGE 1000000]
  WHERE NOT EXISTS (SELECT 1 FROM b [RANGE 1000000] WHERE b.k = a.k);
CREATE QUERY keys AS SELECT DISTINCT k FROM a [RANGE 1000000];
"""


def test_a_hundred_thousand_rows_of_one_key_beside_a_silent_stream(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    count = 100_000
    rows = pa.table({"ts": range(count), "k": [1] * count, "v": range(count)})
    streams = {name: FolderStream(tmp_path / name, "ts bigint, k int, v int") for name in "ab"}
    rows = rows.cast(pa.schema({"ts": pa.int64(), "k": pa.int32(), "v": pa.int32()}))
    local = muntin.stream(MANY, dict.fromkeys("ab", rows.schema))
    found: dict[str, list[pa.Table]] = {}
    # The last row of a is further ahead than any window is long.
    ahead = pa.table({"ts": [3_000_000], "k": [1], "v": [0]}).cast(rows.schema)
    first, second = cut(rows, 2)
    fed = [("a", first), ("a", pa.concat_tables([second, ahead])), ("b", rows.slice(1000))]
    frames = {name: each.frame(spark) for name, each in streams.items()}
    options = {"checkpoint": tmp_path / "ck", "partitions": 2, "buckets": 2}
    with run(frames, MANY, sink=sinks.parquet(tmp_path / "out"), **options) as started:
        for number, (name, part) in enumerate(fed, 1):
            for query, table in local.feed(part, name).items():
                found.setdefault(query, []).append(table)
            streams[name].put(part)
            wait_for_batches(started, number)
            held = "stream b has had no row yet and holds the others back"
            assert (held in caplog.text) == (number > 1), caplog.text
        started.stop(flush=True)
    for query, table in local.close().items():
        found[query].append(table)
    output = sinks.read(tmp_path / "out")
    for query, parts in found.items():
        order = [(name, "ascending") for name in output[query].column_names]
        wanted = pa.concat_tables(parts)
        assert wanted.num_rows, query
        assert output[query].sort_by(order).equals(wanted.sort_by(order)), query
    assert output["pairs"].num_rows > 4 * count
