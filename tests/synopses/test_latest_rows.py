"""The latest rows, kept and asked, against rows that are sorted and counted anew."""

import random

import pyarrow as pa
import pytest

import muntin

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()})
QUERY = "SELECT count(*) AS n FROM t [RANGE 9 SLIDE 4]"
LATENESS = 5
PATIENCE = "1 minute"


def taken(rows: list[tuple], batch: list[tuple], watermark: int | None) -> list[tuple]:
    return rows + [row for row in batch if watermark is None or row[0] >= watermark]


def latest(rows: list[tuple], count: int, by_key: bool) -> list[tuple]:
    """The last rows by time, then by all columns; NULL comes before all values."""
    ordered = sorted(rows, key=lambda row: (row[0], row[1] or "", row[2]))
    if not by_key:
        return ordered[-count:]
    keys = {row[1] for row in rows}
    return [row for key in keys for row in [r for r in ordered if r[1] == key][-count:]]


def summed(rows: list[tuple], key: str | None) -> dict:
    own = sorted((row[0], row[2]) for row in rows if key is None or row[1] == key)
    values = [value for _, value in own]
    return {
        "n": len(values),
        "s": sum(values) if values else None,
        "m": max(values, default=None),
        "f": values[0] if values else None,
        "l": values[-1] if values else None,
        "all": values,
    }


@pytest.mark.parametrize("by_key", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_answers_are_those_of_the_latest_rows(seed: int, by_key: bool) -> None:
    rnd = random.Random(seed)
    by = "PARTITION BY k " if by_key else ""
    keep = f"CREATE KEEP last AS SELECT * FROM t [{by}ROWS 7]"
    stream = muntin.stream(QUERY, SCHEMA, lateness=LATENESS, keeps=keep)
    rows: list[tuple] = []
    newest = -1
    for number in range(12):
        batch = [
            (
                max(4 * number + rnd.randint(-9, 6), 0),
                rnd.choice(["a", "b", None]),
                rnd.randint(0, 9),
            )
            for _ in range(rnd.randint(1, 20))
        ]
        stream.feed(
            pa.table(dict(zip(SCHEMA.names, zip(*batch, strict=True), strict=True)), SCHEMA)
        )
        rows = taken(rows, batch, newest - LATENESS if number else None)
        newest = max(newest, *(row[0] for row in batch))
        if number == 6:
            stream = muntin.stream(QUERY, SCHEMA, lateness=LATENESS, snapshot=stream.snapshot())
        for count in (1, 3, 7):
            select = (
                "SELECT count(*) AS n, sum(v) AS s, max(v) AS m, first(v) AS f, last(v) AS l, "
                'collect_list(v) AS "all" FROM t'
            )
            answer = stream.ask(f"{select} [ROWS {count}] WHERE k = 'a'", timeout=PATIENCE)
            assert answer.frame.to_pylist() == [summed(latest(rows, count, False), "a")]
            assert answer.exact
            assert answer.batch == number + 1
            if by_key:
                asked = f"{select} [PARTITION BY k ROWS {count}]"
                found = stream.ask(asked, timeout=PATIENCE).frame.to_pylist()
                assert found == [summed(latest(rows, count, True), None)]
    grouped = (
        "SELECT k, count(*) AS n FROM t [ROWS 7] GROUP BY k HAVING n > 1 ORDER BY n DESC LIMIT 1"
    )
    assert len(stream.ask(grouped, timeout=PATIENCE).frame) <= 1
    assert "last" in stream.explain_keeps()


def test_the_smallest_keep_that_has_the_columns_answers() -> None:
    few = "CREATE KEEP few AS SELECT v FROM t [ROWS 2];"
    keeps = f"{few} CREATE KEEP all_ AS SELECT * FROM t [ROWS 9]"
    stream = muntin.stream(QUERY, SCHEMA, keeps=keeps)
    stream.feed(pa.table({"ts": [-7, 2], "k": ["a", "b"], "v": [3, 4]}, SCHEMA))
    for select, name in (("max(v)", "few"), ("max(k)", "all_")):
        answer = stream.ask(f"SELECT {select} AS m FROM t [ROWS 2]", timeout=PATIENCE)
        assert answer.source.startswith(f"keep {name} ")
    with pytest.raises(muntin.QueryError, match="known names: k, ts, v"):
        stream.ask("SELECT max(other) AS m FROM t [ROWS 2]")


def test_a_keep_that_joins_later_says_what_it_lacks() -> None:
    stream = muntin.stream(QUERY, SCHEMA)
    stream.feed(pa.table({"ts": [1, 2], "k": ["a", "a"], "v": [1, 2]}, SCHEMA))
    stream.keep("CREATE KEEP last AS SELECT v FROM t [ROWS 2]")
    ask = "SELECT sum(v) AS s FROM t [ROWS 2]"
    with pytest.raises(muntin.QuestionError, match="began while the stream ran, and has 0 rows"):
        stream.ask(ask)
    stream.feed(pa.table({"ts": [3, 4], "k": ["a", "a"], "v": [30, 40]}, SCHEMA))
    assert stream.ask(ask, timeout=PATIENCE).frame.to_pylist() == [{"s": 70}]
    stream.drop_keep("last")
    with pytest.raises(muntin.QuestionError, match="none of its rows are kept"):
        stream.ask(ask)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ("SELECT sum(v) AS s FROM t [ROWS 9]", r"what is kept of its rows is CREATE KEEP last"),
        ("SELECT sum(v) AS s FROM t [PARTITION BY k ROWS 2]", "no keep of t answers"),
        (
            "SELECT sum(v) AS s FROM t [RANGE 9]",
            r"only ROWS: CREATE KEEP last .*\n.*CREATE KEEP recent AS SELECT sum\(v\) FROM t",
        ),
        ("SELECT sum(w) AS s FROM t [ROWS 2]", "no column w"),
        ("SELECT sum(v) AS s FROM t [ROWS 2 AS OF WATERMARK]", "the latest rows have no AS OF"),
        ("SELECT sum(v) AS s FROM t [ROWS 2 SLIDE 1]", "a question has no SLIDE"),
        ("SELECT sum(v) AS s FROM t [PARTITION BY ROWS 2]", "expected ROWS after PARTITION BY"),
    ],
)
def test_questions_that_cannot_be_answered(asked: str, reason: str) -> None:
    stream = muntin.stream(QUERY, SCHEMA, keeps="CREATE KEEP last AS SELECT * FROM t [ROWS 8]")
    stream.feed(pa.table({"ts": [1], "k": ["a"], "v": [1]}, SCHEMA))
    with pytest.raises(muntin.MuntinError, match=reason):
        stream.ask(asked)


@pytest.mark.parametrize(
    ("keep", "reason"),
    [
        ("SELECT * FROM t [ROWS 0]", "at least 1|must be|1 to 100,000|positive"),
        ("SELECT * FROM t [ROWS 200000]", "1 to 100,000 rows, not 200,000"),
        ("SELECT w FROM t [ROWS 5]", "no column w"),
        ("SELECT * FROM t [PARTITION BY w ROWS 5]", "no column w"),
        ("SELECT v + 1 AS x FROM t [ROWS 5]", "keeps columns as they are"),
        ("SELECT * FROM t [ROWS 5] WHERE v > 1", "columns and a number of rows, nothing else"),
        ("SELECT * FROM t [ROWS 5] CUT (v > 1)", "neither CUT nor WITH"),
        ("SELECT * FROM t [RANGE 5 SLIDE 1]", "aggregates of groups, or the latest rows"),
    ],
)
def test_keeps_that_cannot_be(keep: str, reason: str) -> None:
    stream = muntin.stream(QUERY, SCHEMA)
    with pytest.raises(muntin.MuntinError, match=reason):
        stream.keep(f"CREATE KEEP last AS {keep}")
    assert stream.keeps() == []
