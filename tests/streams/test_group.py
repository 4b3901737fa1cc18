"""Several streams in one process: aggregates and row queries, each stream with its own W."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin.errors import DataError, MuntinError, QueryError, UnknownQueryError
from muntin.streams import StreamGroup

COLUMNS = {
    "orders": {"ts": "int64", "id": "int64", "total": "double"},
    "payments": {"at": "int64", "order_id": "int64", "amount": "double"},
}
TIME = {"orders": "ts", "payments": "at"}
JOIN = (
    "CREATE QUERY paid AS SELECT o.id, p.amount FROM orders [RANGE 10] o"
    " JOIN payments [RANGE 5] p ON o.id = p.order_id"
)
UNPAID = (
    "CREATE QUERY unpaid AS SELECT o.id FROM orders [RANGE 10] o WHERE NOT EXISTS"
    " (SELECT 1 FROM payments [RANGE 5] p WHERE p.order_id = o.id)"
)
TOTAL = "CREATE QUERY total AS SELECT sum(total) AS total FROM orders [RANGE 10 SLIDE 5]"


def orders(*rows: tuple[int, int, float]) -> pa.Table:
    ts, ids, totals = zip(*rows, strict=True)
    return pa.table({"ts": ts, "id": ids, "total": totals})


def payments(*rows: tuple[int, int, float]) -> pa.Table:
    at, ids, amounts = zip(*rows, strict=True)
    return pa.table({"at": at, "order_id": ids, "amount": amounts})


def group(queries: Any, **options: Any) -> StreamGroup:
    return muntin.stream(queries, COLUMNS, TIME, **options)


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


def test_a_pair_comes_with_its_second_row() -> None:
    stream = group(JOIN)
    assert len(stream.feed(orders((1, 7, 5.0)), "orders")["paid"]) == 0
    # order 7    [1 ........ 11)
    # payment       [4 ... 9)
    assert rows(stream.feed(payments((4, 7, 5.0)), "PAYMENTS")["paid"]) == [(4, 9, 7, 5.0)]
    assert len(stream.close()["paid"]) == 0


def test_all_that_runs_is_explained() -> None:
    keep = "CREATE KEEP recent AS SELECT count(*) FROM payments [RANGE 60 SLIDE 5]"
    heads = [each.splitlines() for each in group([JOIN, TOTAL, keep]).explain().split("\n\n")]
    assert [head[0].partition(" AS ")[0] for head in heads] == [
        "stream orders",
        "row queries",
        "CREATE KEEP recent",
    ]
    assert heads[0][1].startswith("SharedPlan  1 query")
    assert heads[1][1].startswith("RowPlan  1 query")


def test_absence_waits_for_the_least_watermark() -> None:
    stream = group(UNPAID)
    assert len(stream.feed(orders((1, 7, 5.0), (40, 8, 6.0)), "orders")["unpaid"]) == 0
    found = stream.feed(payments((4, 7, 5.0), (20, 9, 1.0)), "payments")["unpaid"]
    # order 7    [1 ........ 11), paid [4 .. 9)
    assert rows(found) == [(1, 4, 7), (9, 11, 7)]
    assert rows(stream.close()["unpaid"]) == [(40, 50, 8)]


def test_aggregates_answer_as_on_their_own() -> None:
    random = np.random.default_rng(3)
    sql = [TOTAL, "CREATE QUERY most AS SELECT max(amount) AS most FROM payments [RANGE 8 SLIDE 4]"]
    both = group([*sql, JOIN], lateness={"orders": 6, "payments": 0})
    alone = {
        "orders": muntin.stream(sql[0], COLUMNS["orders"], "ts", lateness=6),
        "payments": muntin.stream(sql[1], COLUMNS["payments"], "at"),
    }
    start = {"orders": 0, "payments": 0}
    for number in range(20):
        name = ("orders", "payments")[number % 2]
        times = start[name] + random.integers(0, 12, 9)
        start[name] += 7
        make = orders if name == "orders" else payments
        batch = make(*((int(t), int(t) % 5, float(t) / 3) for t in times))
        found, expected = both.feed(batch, name), alone[name].feed(batch)
        for each in expected:
            assert found.table(each).equals(expected.table(each))
    for name, stream in alone.items():
        own = stream.progress()
        assert both.progress().streams[name].late_rows == own.late_rows
        assert both.progress().streams[name].watermark == own.watermark
    assert both.progress().streams["payments"].late_rows > 0


def test_late_rows_meet_nobody() -> None:
    stream = group(JOIN)
    stream.feed(orders((1, 7, 5.0), (20, 8, 5.0)), "orders")
    stream.feed(orders((12, 9, 5.0)), "orders")
    assert rows(stream.feed(payments((14, 9, 1.0), (15, 8, 1.0)), "payments")["paid"]) == []
    assert stream.progress().streams["orders"].late_rows == 1
    # Payment 8 at 15 is alive until 20, when order 8 begins.
    assert len(stream.close()["paid"]) == 0


def test_idle_streams_hold_nobody_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0]
    monkeypatch.setattr("muntin.streams.group._now", lambda: now[0])
    stream = group([UNPAID, TOTAL], idle="30 seconds")
    assert len(stream.feed(orders((1, 7, 5.0)), "orders")["unpaid"]) == 0
    now[0] = 29_000_000
    found = stream.feed(orders((50, 8, 5.0)), "orders")
    assert len(found["unpaid"]) == 0
    assert len(found["total"]) == 2
    assert stream.progress().holder == "payments"
    now[0] = 30_000_000
    assert rows(stream.feed(orders((51, 9, 5.0)), "orders")["unpaid"]) == [(1, 11, 7)]
    progress = stream.progress()
    assert progress.streams["payments"].idle
    assert progress.streams["payments"].watermark == 51
    # What comes after all is late like any other row.
    stream.feed(payments((20, 7, 5.0)), "payments")
    assert stream.progress().streams["payments"].late_rows == 1
    # It is a row all the same: the stream is not silent any more, and catches up.
    assert not stream.progress().streams["payments"].idle
    now[0] = 31_000_000
    stream.feed(orders((60, 3, 5.0)), "orders")
    stream.feed(payments((55, 9, 5.0)), "payments")
    assert stream.progress().streams["payments"].late_rows == 1


def test_silence_is_by_stream_and_the_clock_may_move_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0]
    monkeypatch.setattr("muntin.streams.group._now", lambda: now[0])
    schema = pa.schema({"ts": pa.timestamp("us"), "id": pa.int64()})
    text = """CREATE QUERY alone AS SELECT a.id FROM a [RANGE '10 seconds'] WHERE NOT EXISTS
      (SELECT 1 FROM b [RANGE '10 seconds'] WHERE a.id = b.id)"""
    columns = {"a": schema, "b": schema}

    def opened(**options: Any) -> StreamGroup:
        return muntin.stream(text, columns, "ts", **options)

    def fed(stream: StreamGroup, name: str, second: int) -> list[tuple[Any, ...]]:
        table = pa.table([[second * 1_000_000], [second]], schema=schema)
        return [row[2] for row in rows(stream.feed(table, name)["alone"])]

    stream = opened(advance_when_idle={"B": "5 seconds"}, lateness={"b": "1 second"})
    assert (fed(stream, "a", 1), fed(stream, "b", 2)) == ([], [])
    now[0] = 4_000_000
    assert fed(stream, "a", 40) == []
    # 10 seconds after 2, but for the second that rows may be late: the first of a has ended.
    now[0] = 10_000_000
    assert fed(stream, "a", 41) == [1]
    assert stream.progress().streams["b"].watermark == 11_000_000
    idle = opened(idle={"b": "5 seconds"})
    assert (fed(idle, "b", 2), fed(idle, "a", 1)) == ([], [])
    now[0] = 16_000_000
    assert fed(idle, "a", 40) == [1]
    for options, message in (
        ({"idle": {"c": "1 second"}}, "idle is given for a stream 'c', and there is none"),
        ({"lateness": {"c": "1 second"}}, "lateness is given for a stream 'c'"),
        ({"idle": 5}, "idle must be a positive duration, not 5"),
        ({"advance_when_idle": "-1 s"}, "advance_when_idle must be a positive duration"),
    ):
        with pytest.raises(MuntinError, match=message):
            opened(**options)
    with pytest.raises(MuntinError, match="time is given for a stream 'c', and there is none"):
        muntin.stream(text, columns, {"a": "ts", "b": "ts", "c": "ts"})
    plain = {"a": schema, "b": schema, "c": pa.schema({"ts": pa.int64()})}
    with pytest.raises(MuntinError, match="an idle one cannot take the watermark of the other"):
        muntin.stream(text, plain, "ts", idle="1 second")
    with pytest.raises(MuntinError, match="a plain integer, which no clock moves"):
        group(JOIN, advance_when_idle="1 second")


def test_snapshots_alone_are_enough_to_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0]
    monkeypatch.setattr("muntin.streams.group._now", lambda: now[0])
    schema = pa.schema({"ts": pa.timestamp("us"), "id": pa.int64()})
    names = {"names": pa.table({"id": [1, 2], "name": ["one", "two"]})}
    text = """
        CREATE QUERY alone AS SELECT a.id, n.name FROM a [RANGE '10 s'] LEFT JOIN names n
          ON a.id = n.id WHERE NOT EXISTS (SELECT 1 FROM b [RANGE '10 s'] WHERE a.id = b.id);
        CREATE QUERY rated AS SELECT a.id, r.rate FROM a [RANGE '10 s'] JOIN rates r
          ON a.id = r.id WITH (output = 'changes');
        CREATE QUERY many AS SELECT count(*) AS n FROM a [RANGE '10 s' SLIDE '5 s'];
        CREATE KEEP recent AS SELECT count(*) FROM b [RANGE '1 minute' SLIDE '1 s']
    """
    stream = muntin.stream(
        text,
        {"a": schema, "b": schema},
        "ts",
        lateness="1 s",
        idle={"b": "5 s"},
        tables=names,
        relations={"rates": pa.table({"id": [1], "rate": [7]})},
    )

    def fed(each: StreamGroup, name: str, second: int, key: int) -> dict[str, list[Any]]:
        table = pa.table([[second * 1_000_000], [key]], schema=schema)
        return {query: rows(found) for query, found in each.feed(table, name).items()}

    fed(stream, "b", 1, 2)
    fed(stream, "a", 2, 1)
    resumed = muntin.Stream.restore(stream.snapshot(), names)
    assert isinstance(resumed, StreamGroup)
    assert (resumed.queries(), resumed.keeps()) == (stream.queries(), stream.keeps())
    question = "SELECT count(*) AS n FROM b [RANGE '30 s']"
    shown = []
    for second, name, key in ((4, "b", 1), (20, "a", 2), (60, "a", 1)):
        # From 5 seconds on, b holds nobody back.
        now[0] += 3_000_000
        for each in (stream, resumed):
            each.update("rates", insert=pa.table({"id": [2], "rate": [second]}))
        found = fed(stream, name, second, key)
        assert fed(resumed, name, second, key) == found
        assert resumed.ask(question).table == stream.ask(question).table
        shown += found["alone"]
    assert {row[-1] for row in shown} == {"one", "two"}
    assert resumed.close() == stream.close()
    with pytest.raises(MuntinError, match="have names of their own"):
        muntin.Stream.restore(stream_of_rows().snapshot(), name="t")


def stream_of_rows() -> StreamGroup:
    """One stream, whose query shows rows."""
    return muntin.stream("SELECT DISTINCT k FROM t [RANGE 5]", {"ts": "int64", "k": "int64"})


def test_progress_tells_who_holds_the_others_back() -> None:
    stream = group([JOIN, TOTAL], lateness=3)
    stream.feed(orders((100, 7, 5.0)), "orders")
    assert str(stream.progress()).endswith("payments has no row so far and holds the others back")
    stream.feed(payments((40, 7, 5.0)), "payments")
    progress = stream.progress()
    assert (progress.holder, progress.gap) == ("payments", 60)
    assert str(progress) == (
        "orders: 1 row, W 97\npayments: 1 row, W 37\npayments holds the others back, by 60"
    )


def test_times_and_distances_are_told_as_such() -> None:
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "id": pa.int64()})
    text = "SELECT a.id FROM a [RANGE '10 seconds'] JOIN b [NOW] ON a.id = b.id"
    stream = muntin.stream(text, {"a": schema, "b": schema}, "ts")
    for name, second in (("a", 95.5), ("b", 0.0)):
        stream.feed(pa.table([[int(second * 1e6)], [1]], schema=schema), name)
    assert str(stream.progress()) == (
        "a: 1 row, W 1970-01-01 00:01:35\n"
        "b: 1 row, W 1970-01-01 00:00:00\n"
        "b holds the others back, by 96 seconds"
    )


def test_a_snapshot_resumes_identically() -> None:
    batches = [
        ("orders", orders((1, 7, 5.0), (2, 8, 1.0))),
        ("payments", payments((3, 8, 1.0))),
        ("orders", orders((6, 9, 2.0), (5, 10, 2.0))),
        ("payments", payments((9, 9, 2.0), (7, 7, 2.0))),
        ("orders", orders((30, 1, 1.0))),
        ("payments", payments((31, 1, 1.0))),
    ]
    sql = [JOIN, UNPAID, TOTAL]
    whole = group(sql, lateness=2)
    expected = [whole.feed(batch, name) for name, batch in batches]
    last = whole.close()
    for cut in range(1, len(batches)):
        stream = group(sql, lateness=2)
        for name, batch in batches[:cut]:
            stream.feed(batch, name)
        resumed = group(sql, lateness=2, snapshot=stream.snapshot())
        for (name, batch), wanted in zip(batches[cut:], expected[cut:], strict=True):
            found = resumed.feed(batch, name)
            assert all(rows(found.table(each)) == rows(wanted.table(each)) for each in wanted)
        found = resumed.close()
        assert all(rows(found.table(each)) == rows(last.table(each)) for each in last)


def test_a_snapshot_keeps_its_lateness() -> None:
    stream = group([JOIN], lateness={"orders": 2, "payments": 5})
    snapshot = stream.snapshot()
    with pytest.raises(DataError, match="lateness is 2, and was 5 in the snapshot"):
        group([JOIN], lateness=2, snapshot=snapshot)
    group([JOIN], snapshot=snapshot)


def test_queries_join_and_leave() -> None:
    stream = group(JOIN)
    stream.feed(orders((1, 7, 5.0)), "orders")
    stream.feed(payments((2, 1, 5.0)), "payments")
    stream.add([UNPAID, TOTAL])
    assert [query.name for query in stream.queries()] == ["paid", "unpaid", "total"]
    stream.feed(orders((20, 8, 5.0), (40, 9, 5.0)), "orders")
    found = stream.feed(payments((60, 1, 5.0)), "payments")
    # It is whole from the largest time before, plus its longest RANGE.
    assert rows(found["unpaid"]) == [(20, 30, 8)]
    stream.remove("paid")
    assert list(stream.feed(orders((61, 3, 5.0)), "orders")) == ["unpaid", "total"]
    with pytest.raises(UnknownQueryError):
        stream.remove("paid")


def test_what_is_refused_changes_nothing() -> None:
    stream = group(JOIN)
    with pytest.raises(QueryError, match="no column idd"):
        stream.add([TOTAL, "SELECT idd FROM orders [RANGE 5]"])
    with pytest.raises(QueryError, match="no column totl"):
        stream.add([UNPAID, "SELECT sum(totl) FROM orders [RANGE 5 SLIDE 5]"])
    with pytest.raises(QueryError, match="there is no input 'order'"):
        stream.add("SELECT sum(total) FROM order [RANGE 5 SLIDE 5]")
    assert [query.name for query in stream.queries()] == ["paid"]
    with pytest.raises(DataError, match="there is no stream 'order'"):
        stream.feed(orders((1, 7, 5.0)), "order")
    with pytest.raises(DataError, match="the batch does not name a stream"):
        stream.feed(orders((1, 7, 5.0)))
    with pytest.raises(DataError, match="no column 'id'"):
        stream.feed(orders((1, 7, 5.0)).drop_columns(["id"]), "orders")
    assert stream.progress().streams["orders"].rows == 0


def test_advance_moves_one_stream_or_all() -> None:
    stream = group(UNPAID)
    stream.feed(orders((1, 7, 5.0)), "orders")
    assert len(stream.advance(50, "orders")["unpaid"]) == 0
    assert rows(stream.advance(50)["unpaid"]) == [(1, 11, 7)]


def test_snapshots_are_of_their_streams() -> None:
    data = group(JOIN).snapshot()
    with pytest.raises(DataError, match="the snapshot was taken of the streams orders, payments"):
        muntin.stream(
            "SELECT id FROM orders [RANGE 5]", {"orders": COLUMNS["orders"]}, snapshot=data
        )
    with pytest.raises(DataError, match="damaged"):
        group(JOIN, snapshot=data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(DataError, match="not a snapshot of several streams"):
        group(JOIN, snapshot=b"other")
    resumed = group([JOIN, TOTAL], snapshot=data)
    assert [query.name for query in resumed.queries()] == ["paid", "total"]


@pytest.mark.parametrize(
    ("changed", "time", "message"),
    [
        ({"id": "string"}, "ts", "column 'id' is string, and was int64 in the snapshot"),
        ({"id": None}, "ts", "column 'id' is gone"),
        ({"ts": "int32"}, "ts", "column 'ts' is int32, and was int64 in the snapshot"),
        ({"ts2": "int64"}, "ts2", "the time column is 'ts2', and was 'ts' in the snapshot"),
    ],
)
def test_a_snapshot_is_resumed_with_the_columns_it_was_taken_with(
    changed: dict[str, str | None], time: str, message: str
) -> None:
    # Only the row query reads the column id of orders.
    stream = group([JOIN, TOTAL])
    stream.feed(orders((1, 7, 5.0)), "orders")
    snapshot = stream.snapshot()
    given = {name: kind for name, kind in {**COLUMNS["orders"], **changed}.items() if kind}
    columns = {**COLUMNS, "orders": given}
    reading = [TOTAL, "CREATE QUERY seen AS SELECT at FROM payments [RANGE 5]"]
    with pytest.raises(DataError, match=message):
        muntin.stream(reading, columns, {**TIME, "orders": time}, snapshot=snapshot)
    # What nothing reads may come and go.
    wider = {**COLUMNS, "orders": {**COLUMNS["orders"], "more": "int64"}}
    muntin.stream([JOIN, TOTAL], wider, TIME, snapshot=snapshot)


def test_bad_rows_are_counted_or_end_the_streams() -> None:
    bad = pa.table({"ts": pa.array([1, None], pa.int64()), "id": [7, 8], "total": [1.0, 1.0]})
    stream = group(UNPAID)
    stream.feed(bad, "orders")
    assert stream.progress().streams["orders"].bad_rows == 1
    assert rows(stream.close()["unpaid"]) == [(1, 11, 7)]
    stream = group(UNPAID, on_bad_row="fail")
    with pytest.raises(DataError, match="1 row without a usable time"):
        stream.feed(bad, "orders")
    with pytest.raises(DataError, match="the stream has ended"):
        stream.feed(bad, "orders")


def test_failing_values_are_counted_or_end_the_streams() -> None:
    sql = "CREATE QUERY a AS SELECT 1 DIV id AS x FROM orders [RANGE 5]"
    found = group(sql).feed(orders((1, 0, 1.0), (1, 1, 1.0)), "orders")
    assert found.errors == {"a": 1}
    with pytest.raises(DataError, match="1 value failed"):
        group(sql, on_error="fail").feed(orders((1, 0, 1.0)), "orders")


def test_row_queries_over_one_stream_need_no_name() -> None:
    sql = "SELECT id FROM orders [RANGE 5]"
    for schema, options in (
        ({"orders": COLUMNS["orders"]}, {}),
        (COLUMNS["orders"], {}),
        (COLUMNS["orders"], {"name": "orders"}),
    ):
        one = muntin.stream([sql, TOTAL], schema, **options)
        assert rows(one.feed(orders((1, 7, 5.0)))["q1"]) == [(1, 6, 7)]
        again = muntin.stream([sql, TOTAL], schema, **options, snapshot=one.snapshot())
        assert rows(again.feed(orders((12, 8, 6.0)))["total"]) == [(-5, 5, 5.0), (0, 10, 5.0)]
    with pytest.raises(QueryError, match="there is no stream orders"):
        muntin.stream(sql, COLUMNS["orders"], name="trades")
    plain = muntin.stream(TOTAL, COLUMNS["orders"])
    with pytest.raises(QueryError, match="rows with lifetimes") as caught:
        plain.add(sql)
    assert "streams by name" in str(caught.value)
    with pytest.raises(DataError, match="there is one"):
        muntin.stream(TOTAL, COLUMNS["orders"], idle="1 second")
    with pytest.raises(DataError, match="time says nothing of 'payments'"):
        muntin.stream(JOIN, COLUMNS, {"orders": "ts"})


def test_a_failure_half_way_ends_the_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """The aggregates have taken the batch, the operators have not: answers would be lost."""

    def fail(*_: Any) -> None:
        raise MemoryError

    stream = group([JOIN, TOTAL])
    monkeypatch.setattr("muntin.operators.RowEngine.feed", fail)
    with pytest.raises(MemoryError):
        stream.feed(orders((1, 7, 5.0)), "orders")
    monkeypatch.undo()
    with pytest.raises(DataError, match="the streams failed"):
        stream.feed(orders((1, 7, 5.0)), "orders")
    with pytest.raises(DataError, match="the streams failed"):
        stream.snapshot()


def test_rows_are_joined_with_tables_as_they_come() -> None:
    names = pa.table({"id": [7, 8], "name": ["ann", "bob"]})
    named = (
        "CREATE QUERY named AS SELECT o.id, c.name FROM orders [RANGE 10] o"
        " LEFT JOIN customers c ON c.id = o.id"
        " WHERE NOT EXISTS (SELECT 1 FROM payments [RANGE 5] p WHERE p.order_id = o.id)"
    )
    stream = group([named, JOIN], tables={"customers": names})
    stream.feed(orders((1, 7, 5.0)), "orders")
    stream.update_table("customers", pa.table({"id": [7], "name": ["eve"]}))
    resumed = group([named, JOIN], tables={"customers": names}, snapshot=stream.snapshot())
    resumed.update_table("customers", pa.table({"id": [7], "name": ["eve"]}))
    for each in (stream, resumed):
        each.feed(orders((2, 7, 5.0), (3, 9, 1.0)), "orders")
        assert rows(each.close()["named"]) == [
            (1, 11, 7, "ann"),
            (2, 12, 7, "eve"),
            (3, 13, 9, None),
        ]
    other = group(named, tables={"customers": names})
    with pytest.raises(DataError, match=r"no column customers\.id of type int64"):
        other.update_table("customers", pa.table({"id": ["7"], "name": ["eve"]}))
    other.feed(orders((1, 7, 5.0)), "orders")
    assert rows(other.close()["named"]) == [(1, 11, 7, "ann")]


def test_a_warning_names_the_stream_that_holds_the_others(caplog: pytest.LogCaptureFixture) -> None:
    stream = group(UNPAID)
    for at in (1, 10):
        stream.feed(orders((at, 7, 5.0)), "orders")
    assert not caplog.records
    stream.feed(orders((12, 7, 5.0)), "orders")
    stream.feed(orders((20, 7, 5.0)), "orders")
    assert [record.args[0] for record in caplog.records] == ["payments"]
    assert "has had no row yet" in caplog.text
    stream.feed(payments((15, 7, 5.0)), "payments")
    stream.feed(orders((26, 7, 5.0)), "orders")
    assert "payments is 11 ticks behind" in caplog.text


def test_sides_of_aggregates_are_held_back_as_rows_are(caplog: pytest.LogCaptureFixture) -> None:
    schema = pa.schema({"ts": pa.timestamp("us"), "id": pa.int64()})
    text = """SELECT count(*) FROM orders [RANGE '9 seconds' SLIDE '3 seconds'] o
      JOIN payments [RANGE '5 seconds'] p ON o.id = p.id"""
    stream = muntin.stream(text, {"orders": schema, "payments": schema}, "ts")
    assert {final.way for final in stream.row_plan().joined} == {"sides"}
    for name, second in (("payments", 1), ("orders", 10), ("orders", 11)):
        stream.feed(pa.table([[second * 1_000_000], [7]], schema=schema), name)
    assert "payments is 10 seconds behind" in caplog.text
    assert len(caplog.records) == 1
