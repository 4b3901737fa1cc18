"""Keeps of streams in this process: among queries, of several streams, and what fails in them."""

import pyarrow as pa
import pytest

import muntin

COLUMNS = {"ts": "int64", "k": "string", "v": "int64"}
QUERY = "SELECT count(*) AS n FROM t [RANGE 9 SLIDE 4]"
KEEP = "CREATE KEEP recent AS SELECT k, max(v), sum(v) FROM t [RANGE 60 SLIDE 5] GROUP BY k"
PATIENCE = "1 minute"


def rows(ticks: list[int], values: list[int]) -> pa.Table:
    return pa.table({"ts": ticks, "k": ["a", "b"] * (len(ticks) // 2), "v": values})


def test_keeps_need_no_queries() -> None:
    keep = "-- no query\nCREATE KEEP r AS SELECT count(*) FROM t [RANGE 100 SLIDE 5]; -- none"
    for text in (keep, [keep]):
        stream = muntin.stream(text, {"ts": "int64", "v": "int64"})
        stream.feed(pa.table({"ts": [1, 2], "v": [1, 2]}))
        answer = stream.ask("SELECT count(*) AS n FROM t [RANGE 10]")
        assert answer.table.to_pylist() == [{"n": 2}]


def test_keeps_stand_among_queries() -> None:
    text = f"""-- What is kept is not a query: CREATE KEEP x
        CREATE KEEP gone AS SELECT sum(v) FROM t [RANGE 60 SLIDE 5];
        {QUERY};
        {KEEP}; DROP KEEP gone"""
    stream = muntin.stream(text, COLUMNS)
    assert [query.name for query in stream.queries()] == ["q1"]
    assert [keep.name for keep in stream.keeps()] == ["recent"]
    stream.feed(rows([1, 2], [3, 4]))
    found = stream.ask("SELECT max(v) AS m FROM t [RANGE 9] WHERE k = 'b'", timeout=PATIENCE)
    assert found.frame.to_pylist() == [{"m": 4}]
    assert "entries per row" in stream.explain()
    assert "SharedPlan" in stream.explain()


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        (f"{QUERY};\n{KEEP};\nCREATE KEEP b AS SELECT max(w) FROM t [RANGE 6 SLIDE 5]", "w", 3),
        (f"{QUERY};\n{KEEP};\n{KEEP}", "already a keep named recent", 0),
        (f"{QUERY};\nDROP KEEP recen;\n{KEEP}", "no keep named recen", 0),
        (f"{QUERY};\nCREATE KEEP b SELECT 1", "expected AS after the name", 2),
        (f"{KEEP};\nSELECT nothing", "expected|aggregate|FROM", 2),
    ],
)
def test_what_is_wrong_is_found_at_its_place(text: str, reason: str, line: int) -> None:
    with pytest.raises(muntin.QueryError, match=reason) as caught:
        muntin.stream(text, COLUMNS)
    assert line in (0, caught.value.problems[0].line)


def test_several_streams_keep_each_their_own() -> None:
    other = "CREATE KEEP paid AS SELECT k, count(*) FROM u [RANGE 60 SLIDE 5] GROUP BY k"
    names = {"t": COLUMNS, "u": COLUMNS}
    group = muntin.stream(QUERY, names, keeps=[KEEP, other])
    group.feed(rows([1, 2], [3, 4]), "t")
    group.feed(rows([11, 12], [5, 6]), "u")
    ask = "SELECT k, count(*) AS n FROM u [RANGE 9] GROUP BY k"
    answer = group.ask(ask, timeout=PATIENCE)
    assert answer.frame.to_pylist() == [{"k": "a", "n": 1}, {"k": "b", "n": 1}]
    assert (answer.as_of.latest, answer.batch) == (12, 2)
    sums = "SELECT sum(v) AS s FROM t [RANGE 9]"
    assert group.ask(sums, timeout=PATIENCE).frame.to_pylist() == [{"s": 7}]
    resumed = muntin.stream(QUERY, names, snapshot=group.snapshot())
    assert [keep.name for keep in resumed.keeps()] == ["recent", "paid"]
    for stream in (group, resumed):
        stream.feed(rows([3, 8], [10, 20]), "t")
        found = stream.ask(sums, timeout=PATIENCE)
        # The row at 3 came late: it is below the largest event time before.
        assert (found.frame.to_pylist(), found.batch) == ([{"s": 37}], 3)
    group.drop_keep("paid")
    with pytest.raises(muntin.QuestionError, match="nothing is kept of u"):
        group.ask(ask)
    with pytest.raises(muntin.QueryError, match="already a keep named recent, on another stream"):
        group.keep(KEEP.replace("FROM t", "FROM u"))
    with pytest.raises(muntin.QueryError, match="there is no stream 'x'"):
        group.keep([KEEP.replace("recent", "more"), other.replace("FROM u", "FROM x")])
    assert [keep.name for keep in group.keeps()] == ["recent"]


@pytest.mark.parametrize("several", [False, True])
def test_values_that_fail_in_a_keep_are_counted(several: bool) -> None:
    keep = "CREATE KEEP recent AS SELECT sum(10 / v) FROM t [RANGE 60 SLIDE 5]"
    columns = {"t": COLUMNS, "u": COLUMNS} if several else COLUMNS
    fed = (rows([1, 2], [0, 4]), *(["t"] if several else []))
    stream = muntin.stream(QUERY, columns, keeps=keep)
    assert stream.feed(*fed).errors == {"keep recent": 1}
    strict = muntin.stream(QUERY, columns, keeps=keep, on_error="fail")
    with pytest.raises(muntin.MuntinError, match="keep recent"):
        strict.feed(*fed)


@pytest.mark.parametrize("synopsis", ["interval", "basic_interval", "running"])
def test_every_synopsis_gives_the_same_answers(synopsis: str) -> None:
    calls = "sum(v), count(*)" if synopsis == "running" else "sum(v), max(v), count(DISTINCT v)"
    grid = "FROM t [RANGE 200 SLIDE 3] GROUP BY k"
    keep = f"CREATE KEEP recent AS SELECT k, {calls} {grid}"
    chosen = muntin.stream(QUERY, COLUMNS, keeps=keep)
    named = muntin.stream(QUERY, COLUMNS, keeps=f"{keep} WITH (synopsis = '{synopsis}')")
    assert f"WITH (synopsis = '{synopsis}')" in str(named.keeps()[0])
    for number in range(9):
        ticks = [20 * number + at for at in range(20)]
        batch = rows(ticks, [(tick * 37) % 23 for tick in ticks])
        for stream in (chosen, named):
            stream.feed(batch)
    for length in (3, 11, 58, 170):
        ask = f"SELECT k, {calls} FROM t [RANGE {length} ALIGNED] GROUP BY k"
        found = [stream.ask(ask, timeout=PATIENCE) for stream in (chosen, named)]
        assert found[0].table.equals(found[1].table)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("synopsis = 'running'", "max.* cannot be subtracted"),
        ("synopsis = 'dyadic'", "there is no synopsis 'dyadic'"),
        ("synopsis = 7", "expected a string"),
        ("size = 7", "expected synopsis or buckets"),
    ],
)
def test_synopses_that_cannot_be(options: str, reason: str) -> None:
    stream = muntin.stream(QUERY, COLUMNS)
    with pytest.raises(muntin.QueryError, match=reason):
        stream.keep(f"{KEEP} WITH ({options})")


def test_a_stream_is_resumed_after_it_was_asked() -> None:
    stream = muntin.stream(QUERY, COLUMNS, keeps=KEEP)
    stream.feed(rows([1, 2], [3, 4]))
    sql = "SELECT max(v) AS m FROM t [RANGE 9] WHERE k = 'b'"
    before = stream.ask(sql, timeout=PATIENCE)
    resumed = muntin.stream(QUERY, COLUMNS, snapshot=stream.snapshot())
    after = resumed.ask(sql, timeout=PATIENCE)
    assert (after.frame, after.covers, after.as_of) == (before.frame, before.covers, before.as_of)
