"""Questions without a keep, answered from the slices of registered queries."""

import random
import threading
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import muntin

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64(), "w": pa.int64()})
PATIENCE = "1 minute"
LATENESS = 6
CALLS = {"n": "count(*)", "s": "sum(v)", "hi": "max(v)", "lo": "min(v)", "d": "count(DISTINCT w)"}
CONDITIONS = ["v > 0", "v > 5", "w < 9", "v > 0 AND w < 9"]


def a_query(rnd: random.Random, name: str) -> str:
    slide = rnd.randint(2, 9)
    span = slide * rnd.randint(1, 6) + rnd.choice([0, 0, 1, 3])
    by = rnd.choice(["", "k"])
    calls = rnd.sample(list(CALLS.values()), rnd.randint(2, 5))
    where = f"WHERE {rnd.choice(CONDITIONS)}" if rnd.random() < 0.3 else ""
    listed = ", ".join([*([by] if by else []), *(f"{c} AS c{i}" for i, c in enumerate(calls))])
    window = f"[RANGE {span} SLIDE {slide} OFFSET {rnd.randrange(slide)}]"
    tail = f"GROUP BY {by}" if by else ""
    return f"CREATE QUERY {name} AS SELECT {listed} FROM t {window} {where} {tail}"


def a_batch(rnd: random.Random, around: int) -> pa.Table:
    ticks = [max(around + rnd.randint(-12, 6), 0) for _ in range(rnd.randint(1, 30))]
    return pa.table(
        {
            "ts": ticks,
            "k": [rnd.choice(["a", "b", None]) for _ in ticks],
            "v": [rnd.choice([None, *range(-9, 10)]) for _ in ticks],
            "w": [rnd.randint(0, 20) for _ in ticks],
        },
        schema=SCHEMA,
    )


def recomputed(con: Any, select: str, window: tuple[int, int], where: str, by: str) -> list[dict]:
    within = f"ts >= {window[0]} AND ts < {window[1]} AND {where or 'true'}"
    sql = f"SELECT {select} FROM t WHERE {within} {f'GROUP BY {by}' if by else ''}"
    return con.sql(sql).to_arrow_table().to_pylist()


class Beside:
    """A stream beside another one, whose rows and queries are none of its own."""

    def __init__(self, queries: str) -> None:
        other = "CREATE QUERY other AS SELECT count(*) AS n, sum(v) AS s FROM u [RANGE 9 SLIDE 3]"
        joined = """CREATE QUERY joined AS SELECT count(*) AS n
          FROM t [RANGE 8 SLIDE 4] JOIN u [RANGE 8 SLIDE 4] ON t.k = u.k"""
        text = f"{queries};{other};{joined}"
        self.group = muntin.stream(text, {"t": SCHEMA, "u": SCHEMA}, lateness=LATENESS)
        self.add, self.remove, self.ask = self.group.add, self.group.remove, self.group.ask
        self.fed = 0

    def feed(self, batch: pa.Table) -> None:
        self.group.feed(batch, "t")
        # The other stream falls silent, and holds back what reads both.
        self.fed += 1
        if self.fed < 5:
            self.group.feed(batch.slice(1), "u")


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_answers_are_those_of_recomputation(seed: int, several: bool) -> None:
    rnd = random.Random(seed)
    text = ";\n".join(a_query(rnd, f"q{at}") for at in range(3))
    stream: Any = Beside(text) if several else muntin.stream(text, SCHEMA, lateness=LATENESS)
    rows, latest, watermark = SCHEMA.empty_table(), -1, -1
    exact: list[bool] = []
    for number in range(15):
        if number == 8 and seed % 2:
            stream.remove("q0")
            stream.add(a_query(rnd, "q9"))
        batch = a_batch(rnd, 8 + 4 * number)
        stream.feed(batch)
        rows = pa.concat_tables([rows, batch.filter(pc.greater_equal(batch["ts"], watermark))])
        latest = max([latest, *batch["ts"].to_pylist()])
        watermark = latest - LATENESS
        with duckdb.connect() as con:
            con.register("t", rows)
            for _ in range(12):
                by = rnd.choice(["", "k"])
                where = rnd.choice(["", *CONDITIONS, "k = 'a'", "k = 'b' AND v > 5"])
                names = rnd.sample(list(CALLS), rnd.randint(1, 2))
                select = ", ".join([*([by] if by else []), *(f"{CALLS[n]} AS {n}" for n in names)])
                as_of, end = rnd.choice(
                    [
                        ("", latest + 1),
                        ("AS OF WATERMARK", watermark),
                        (f"AS OF {latest - 3}", latest - 3),
                    ]
                )
                length, way = rnd.randint(1, 30), rnd.choice(["", "ALIGNED"])
                sql = f"SELECT {select} FROM t [RANGE {length} {as_of} {way}]"
                sql += f" WHERE {where}" if where else ""
                sql += f" GROUP BY {by}" if by else ""
                try:
                    answer = stream.ask(sql, timeout=PATIENCE)
                except muntin.QuestionError:
                    continue
                assert answer.source.startswith("slices of query q")
                assert answer.as_of == (latest, watermark)
                assert several or answer.batch == number + 1
                exact.append(answer.exact)
                window = tuple(answer.covers) if way else (end - length, end)
                true = recomputed(con, select, window, where, by)
                shown = {row.get(by): row for row in answer.frame.to_pylist()}
                if answer.exact:
                    assert shown == {row.get(by): row for row in true}, sql
                    continue
                for row in true:
                    for name in names:
                        found = shown[row.get(by)]
                        low, high = found[f"{name}_low"], found[f"{name}_high"]
                        if row[name] is not None:
                            assert low is None or low <= row[name], (sql, found, row)
                            assert high is None or row[name] <= high, (sql, found, row)
    assert len(exact) > 8
    assert True in exact


QUERY = "CREATE QUERY highs AS SELECT k, max(v) AS m, count(*) AS n FROM t {} GROUP BY k"


def test_a_keep_comes_first_and_refusals_name_one() -> None:
    stream = muntin.stream(QUERY.format("[RANGE 20 SLIDE 5]"), SCHEMA)
    stream.feed(pa.table({"ts": [1, 7, 13], "k": ["a"] * 3, "v": [9, 3, 4], "w": [0] * 3}, SCHEMA))
    sql = "SELECT max(v) AS m FROM t [RANGE {}] WHERE k = 'a'"
    answer = stream.ask(sql.format(9), timeout=PATIENCE)
    assert answer.frame.to_pylist() == [{"m": 4}]
    assert (answer.exact, answer.covers) == (True, (5, 15))
    assert answer.source.startswith("slices of query highs")
    assert stream.prepare(sql.format("?"), timeout=PATIENCE)(18).frame.to_pylist() == [{"m": 9}]
    with pytest.raises(muntin.QuestionError, match="CREATE KEEP recent AS SELECT k, max"):
        stream.ask(sql.format(30), timeout=PATIENCE)
    with pytest.raises(muntin.QuestionError, match="nothing is kept of t"):
        stream.ask("SELECT sum(w) AS s FROM t [RANGE 9]", timeout=PATIENCE)
    stream.keep("CREATE KEEP kept AS SELECT k, max(v) FROM t [RANGE 60 SLIDE 1] GROUP BY k")
    stream.feed(pa.table({"ts": [40], "k": ["a"], "v": [5], "w": [0]}, SCHEMA))
    assert stream.ask(sql.format(9), timeout=PATIENCE).source.startswith("keep kept")


@pytest.mark.parametrize(
    "query",
    [
        # No rows are kept between windows that do not touch, nor those of other predicates.
        QUERY.format("[RANGE 5 SLIDE 20]"),
        "SELECT k, max(v) AS m FROM t [RANGE 20 SLIDE 5] WHERE w > 3 GROUP BY k",
        "SELECT k, max(v) AS m FROM t [RANGE 20 SLIDE 5] WHERE v > 0 OR w > 3 GROUP BY k",
    ],
)
def test_slices_that_lack_rows_answer_nothing(query: str) -> None:
    stream = muntin.stream(query, SCHEMA)
    stream.feed(pa.table({"ts": [1, 7], "k": ["a"] * 2, "v": [9, 3], "w": [0] * 2}, SCHEMA))
    with pytest.raises(muntin.QuestionError, match="nothing is kept of t"):
        stream.ask("SELECT max(v) AS m FROM t [RANGE 5] WHERE k = 'a'", timeout=PATIENCE)


def test_readers_see_whole_batches_while_they_are_fed() -> None:
    stream = muntin.stream(
        "SELECT k, count(*) AS n, sum(v) AS s FROM t [RANGE 1000 SLIDE 1] GROUP BY k", SCHEMA
    )
    wrong: list[object] = []
    done = threading.Event()

    def read() -> None:
        sql = "SELECT count(*) AS n, sum(v) AS s FROM t [RANGE 1000] WHERE k = 'a'"
        while not done.is_set():
            answer = stream.ask(sql, timeout=PATIENCE)
            total = answer.batch * (answer.batch + 1) // 2
            if answer.batch and answer.frame.to_pylist() != [{"n": total, "s": total}]:
                wrong.append((answer.batch, answer.frame.to_pylist()))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for tick in range(1, 80):
        ones = [1] * tick
        stream.feed(
            pa.table({"ts": [tick] * tick, "k": ["a"] * tick, "v": ones, "w": ones}, SCHEMA)
        )
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_slices_of_several_streams() -> None:
    queries = """
        CREATE QUERY highs AS SELECT k, max(v) AS m FROM t [RANGE 20 SLIDE 5] GROUP BY k;
        CREATE QUERY sums AS SELECT sum(v) AS s FROM u [RANGE 20 SLIDE 5]
    """
    group = muntin.stream(queries, {"t": SCHEMA, "u": SCHEMA})
    one = pa.table({"ts": [1, 7], "k": ["a", "b"], "v": [9, 3], "w": [0] * 2}, SCHEMA)
    other = pa.table({"ts": [2, 8], "k": ["a", "b"], "v": [5, 6], "w": [0] * 2}, SCHEMA)
    group.feed(one, "t")
    group.feed(other, "u")
    high, total = "SELECT max(v) AS m FROM t [RANGE 8]", "SELECT sum(v) AS s FROM u [RANGE 9]"
    found = group.ask(high, timeout=PATIENCE), group.ask(total, timeout=PATIENCE)
    assert [each.frame.to_pylist() for each in found] == [[{"m": 9}], [{"s": 11}]]
    sources = [each.source.split(" (")[0] for each in found]
    assert sources == ["slices of query highs", "slices of query sums"]
    with pytest.raises(muntin.QuestionError, match="keep something first: CREATE KEEP"):
        group.ask("SELECT sum(w) AS s FROM u [RANGE 8]", timeout=PATIENCE)
    group.keep("CREATE KEEP kept AS SELECT k, count(*) FROM t [RANGE 60 SLIDE 1] GROUP BY k")
    with pytest.raises(muntin.QuestionError, match=r"nothing is kept of u\nHint: keep something"):
        group.ask("SELECT sum(w) AS s FROM u [RANGE 8]", timeout=PATIENCE)
    group.remove("sums")
    with pytest.raises(muntin.QuestionError, match="nothing is kept of u"):
        group.ask(total, timeout=PATIENCE)
