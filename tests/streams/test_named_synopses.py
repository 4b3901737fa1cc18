"""Keeps with a synopsis of the report: TimeGram and OrderedSharing, against recomputation."""

import math
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import muntin
from muntin.streams import Stream
from muntin.synopses import Answer

QUERY = "SELECT count(*) AS n FROM t [RANGE 9 SLIDE 4]"
PATIENCE = "1 minute"
LATENESS = 9
KINDS: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "int64": (pa.int64(), lambda rnd: rnd.choice([0, rnd.randint(-99, 99), 2**62, -(2**63), 7])),
    "uint8": (pa.uint8(), lambda rnd: rnd.randint(0, 255)),
    "double": (pa.float64(), lambda rnd: rnd.choice([rnd.gauss(0, 50), 0.0, -0.0, 1e-320, 1e200])),
    "float": (pa.float32(), lambda rnd: rnd.choice([0.1, -0.3, 2.5e30, float(rnd.randint(1, 9))])),
    "odd": (pa.float64(), lambda rnd: rnd.choice([1.0, -2.5, math.inf, -math.inf, math.nan])),
    "decimal": (pa.decimal128(9, 2), lambda rnd: Decimal(rnd.randint(-99999, 99999)) / 100),
}


class Rows:
    """The rows that a stream has taken, by the rules of lateness."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.rows: list[dict[str, Any]] = []
        self.latest = -1

    def batch(self, rnd: random.Random, around: int, value: Callable[..., Any]) -> pa.Table:
        made = [
            {
                "ts": max(around + rnd.randint(-14, 8), 0),
                "k": rnd.choice(["a", "b", None]),
                "g": rnd.randint(0, 2),
                "v": None if rnd.random() < 0.1 else value(rnd),
            }
            for _ in range(rnd.randint(1, 25))
        ]
        least = self.latest - LATENESS if self.rows else -1
        self.rows += [row for row in made if row["ts"] >= least]
        self.latest = max(self.latest, *(row["ts"] for row in made))
        table = pa.Table.from_pylist(made, self.schema)
        # What a narrow type holds is what counts.
        for row, value_ in zip(made, table["v"].to_pylist(), strict=True):
            row["v"] = value_
        return table

    def within(self, start: int, end: int, **wanted: Any) -> list[dict[str, Any]]:
        found = [row for row in self.rows if start <= row["ts"] < end]
        return [row for row in found if all(row[name] == some for name, some in wanted.items())]


def order(value: Any) -> tuple[bool, Any]:
    """NaN is above all numbers."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return is_nan, 0 if is_nan else value


def true_answer(name: str, rows: list[dict[str, Any]]) -> Any:
    values = [row["v"] for row in rows if row["v"] is not None]
    if name == "n":
        return len(rows)
    if name == "c":
        return len(values)
    if not values:
        return None
    if name in ("hi", "lo"):
        return (max if name == "hi" else min)(values, key=order)
    if isinstance(values[0], float):
        try:
            total = math.fsum(values)
        except (OverflowError, ValueError):
            return math.nan
    else:
        total = sum(values)
    return total if name == "s" else total / len(values)


def check(name: str, shown: dict[str, Any], rows: list[dict[str, Any]], said: str) -> None:
    true = true_answer(name, rows)
    low, high = shown[f"{name}_low"], shown[f"{name}_high"]
    if true is None:
        return
    if name == "s" and isinstance(true, int) and not -(2**63) <= true < 2**63:
        return
    assert low is None or order(low) <= order(true), (said, name, shown, true)
    assert high is None or order(true) <= order(high), (said, name, shown, true)
    if name in ("hi", "lo") and low is not None and high is not None:
        assert order(low) <= order(shown[name]) <= order(high), (said, name, shown)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_a_time_gram_encloses_every_answer(kind: str, seed: int) -> None:
    rnd = random.Random(f"{kind} {seed}")
    type_, value = KINDS[kind]
    schema = pa.schema({"ts": pa.int64(), "k": pa.string(), "g": pa.int64(), "v": type_})
    slide, buckets = rnd.choice([1, 3, 5]), rnd.choice([1, 4, 64])
    keep = (
        f"CREATE KEEP gram AS SELECT k, g, max(v), min(v), sum(v), avg(v), count(v) FROM t"
        f" [RANGE 90 SLIDE {slide}] GROUP BY k, g"
        f" WITH (synopsis = 'timegram', buckets = {buckets})"
    )
    stream = muntin.stream(QUERY, schema, lateness=LATENESS, keeps=keep)
    rows = Rows(schema)
    asked = 0
    for number in range(16):
        stream.feed(rows.batch(rnd, 10 + 6 * number, value))
        if number == 7:
            stream = muntin.stream(QUERY, schema, lateness=LATENESS, snapshot=stream.snapshot())
        for _ in range(5):
            length, back = rnd.randint(1, 60), rnd.randint(0, 12)
            end = rows.latest + 1 - back
            where, wanted = rnd.choice([("", {}), ("WHERE k = 'a'", {"k": "a"})])
            names = rnd.sample(["hi", "lo", "s", "a", "c", "n"], 3)
            calls = {"hi": "max(v)", "lo": "min(v)", "s": "sum(v)", "a": "avg(v)", "c": "count(v)"}
            listed = ", ".join(f"{calls.get(name, 'count(*)')} AS {name}" for name in names)
            sql = f"SELECT {{}}{listed} FROM t [RANGE {length} AS OF {end}] {where}"
            answer = stream.ask(sql.format(""), timeout=PATIENCE)
            (shown,) = answer.frame.to_pylist()
            asked += 1
            held = rows.within(end - length, end, **wanted)
            if answer.exact:
                assert {*names} <= {"c", "n"}
                assert all(shown[name] == true_answer(name, held) for name in names)
                continue
            for name in names:
                check(name, shown, held, sql)
            grouped = stream.ask(sql.format("g, ") + " GROUP BY g", timeout=PATIENCE)
            assert not grouped.exact
            for row in grouped.frame.to_pylist():
                for name in names:
                    some = rows.within(end - length, end, g=row["g"], **wanted)
                    check(name, row, some, sql)
    assert asked == 80


def filled(keep: str) -> Stream:
    columns = {"ts": "int64", "k": "string", "v": "float64", "w": "int64"}
    stream = muntin.stream(QUERY, columns, keeps=keep)
    ticks = list(range(40))
    stream.feed(
        pa.table(
            {
                "ts": ticks,
                "k": ["a", "b"] * 20,
                "v": [100.0 + (7 * tick) % 31 for tick in ticks],
                "w": ticks,
            }
        )
    )
    return stream


GRAM = "CREATE KEEP gram AS SELECT k, max(v), sum(v) FROM t [RANGE 60 SLIDE 1] GROUP BY k"


def test_a_time_gram_is_as_near_as_its_buckets() -> None:
    widths = []
    for buckets in (1, 64, 1024):
        stream = filled(f"{GRAM} WITH (synopsis = 'timegram', buckets = {buckets})")
        sql = "SELECT max(v) AS m, sum(v) AS s FROM t [RANGE 30] WHERE k = 'a'"
        answer = stream.ask(sql, timeout=PATIENCE)
        (row,) = answer.frame.to_pylist()
        widths.append(row["m_high"] - row["m_low"])
        assert row["m_low"] <= row["m"] <= row["m_high"]
        assert widths[-1] <= 130 / buckets * 1.01
        assert row["s_high"] - row["s_low"] <= 1.01 * row["s_low"] / buckets
    assert widths == sorted(widths, reverse=True)
    assert f"WITH (synopsis = 'timegram', buckets = {buckets})" in str(stream.keeps()[0])
    assert "bytes" in stream.explain_keeps()
    assert "timegram" in stream.explain_keeps()
    with pytest.raises(
        muntin.QuestionError,
        match=r"exact aggregates would do: CREATE OR REPLACE KEEP .* or more buckets",
    ):
        stream.ask("SELECT max(v) AS m FROM t [RANGE 30 WITHIN 0.0001%]", timeout=PATIENCE)
    with pytest.raises(muntin.QuestionError, match="computed from several aggregates"):
        stream.ask("SELECT max(v) - sum(v) AS m FROM t [RANGE 30]", timeout=PATIENCE)
    with pytest.raises(muntin.QuestionError, match="does not keep sum"):
        stream.ask("SELECT sum(w) AS m FROM t [RANGE 30]", timeout=PATIENCE)
    having = "SELECT k, max(v) AS m FROM t [RANGE 30] GROUP BY k HAVING max(v) > {} ORDER BY m DESC"
    assert stream.ask(having.format(90), timeout=PATIENCE).frame.num_rows == 2
    assert stream.ask(having.format(190), timeout=PATIENCE).frame.num_rows == 0


@pytest.mark.parametrize(
    ("calls", "options", "reason"),
    [
        ("max(v)", "synopsis = 'timegram', buckets = 60", "a power of two up to 4,096, not 60"),
        ("max(v)", "synopsis = 'timegram', buckets = 8192", "a power of two"),
        ("max(v)", "synopsis = 'running', buckets = 64", "only a TimeGram has buckets"),
        ("max(v)", "buckets = 64", "only a TimeGram has buckets"),
        ("max(v), median(v)", "synopsis = 'timegram'", "and not median"),
        (
            "max(v), max(w)",
            "synopsis = 'timegram'",
            "values of one expression, and this keep has v, w",
        ),
        ("count(*)", "synopsis = 'timegram'", "this keep has none"),
        ("max(k)", "synopsis = 'timegram'", "k is not one"),
        ("sum(v)", "synopsis = 'ordered_sharing'", "max and min, not sum"),
        ("count(*)", "synopsis = 'ordered_sharing'", "this keeps none"),
        ("max(k)", "synopsis = 'ordered_sharing'", "k is neither"),
    ],
)
def test_what_a_synopsis_cannot_hold_is_refused(calls: str, options: str, reason: str) -> None:
    with pytest.raises(muntin.QueryError, match=reason) as caught:
        filled(f"CREATE KEEP kept AS SELECT {calls} FROM t [RANGE 60 SLIDE 1] WITH ({options})")
    assert caught.value.problems[0].hint


def told(answer: Answer) -> object:
    return answer.frame.to_pylist(), answer.exact, answer.covers, answer.rows


@pytest.mark.parametrize("kind", ["int64", "double", "odd"])
@pytest.mark.parametrize("seed", range(3))
def test_ordered_sharing_gives_the_same_answers(kind: str, seed: int) -> None:
    rnd = random.Random(f"sharing {kind} {seed}")
    type_, value = KINDS[kind]
    schema = pa.schema({"ts": pa.int64(), "k": pa.string(), "g": pa.int64(), "v": type_})
    slide = rnd.choice([1, 2, 5])
    keep = (
        f"CREATE KEEP kept AS SELECT k, max(v), min(v), count(*) FROM t [RANGE 120 SLIDE {slide}]"
        " GROUP BY k CUT (g > 0)"
    )
    plain = muntin.stream(QUERY, schema, lateness=LATENESS, keeps=keep)
    shared = muntin.stream(
        QUERY, schema, lateness=LATENESS, keeps=f"{keep} WITH (synopsis = 'ordered_sharing')"
    )
    rows = Rows(schema)
    held: list[Any] = []
    for number in range(40):
        batch = rows.batch(rnd, 10 + 3 * number, value)
        for stream in (plain, shared):
            stream.feed(batch)
        held.append([stream._keeper.versions for stream in (plain, shared)])
        for _ in range(8):
            length, back = rnd.choice([5, 20, 21, 60]), rnd.choice([0, 0, 0, 7])
            end = rows.latest + 1 - back
            where = rnd.choice(["k = 'a'", "k = 'b'", "k = 'a' AND g > 0"])
            as_of = "" if not back else f" AS OF {end}"
            way = rnd.choice(["", " ALIGNED"])
            sql = f"SELECT max(v) AS hi, min(v) AS lo, count(*) AS n FROM t [RANGE {length}"
            sql += f"{as_of}{way}] WHERE {where}"
            answers = [stream.ask(sql, timeout=PATIENCE) for stream in (plain, shared)]
            assert str(told(answers[0])) == str(told(answers[1])), sql
            if answers[1].exact:
                some = rows.within(*answers[1].covers, k=where[5])
                some = [row for row in some if "g" not in where or row["g"] > 0]
                (shown,) = answers[1].frame.to_pylist()
                true = {name: true_answer(name, some) for name in ("hi", "lo", "n")}
                assert all(order(shown[name] or 0) == order(true[name] or 0) for name in true)
        # Readers of an earlier version have its answers.
        both = rnd.choice(held[-4:])
        sql = f"SELECT max(v) AS hi FROM t [RANGE {rnd.choice([20, 33])} ALIGNED] WHERE k = 'a'"
        earlier = []
        for stream, versions in zip((plain, shared), both, strict=True):
            newest, stream._keeper.versions = stream._keeper.versions, versions
            earlier.append(stream.ask(sql, timeout=PATIENCE))
            stream._keeper.versions = newest
        assert str(told(earlier[0])) == str(told(earlier[1]))
    said = shared.explain_keeps()
    assert "ordered_sharing" in said
    assert "answers shared" in said
    extremes = shared._keeper.versions.by_name["kept"].shared
    assert extremes is not None
    assert extremes.shared > extremes.scans


def test_time_passes_without_rows_of_a_group() -> None:
    """A row that has left the window is not the answer any more."""
    keep = "CREATE KEEP kept AS SELECT k, max(v) FROM t [RANGE 60 SLIDE 1] GROUP BY k"
    stream = muntin.stream(
        QUERY,
        {"ts": "int64", "k": "string", "v": "int64"},
        keeps=f"{keep} WITH (synopsis = 'ordered_sharing')",
    )
    found = []
    for tick, value in enumerate([9, 1, 1, 1, 5, 1]):
        stream.feed(pa.table({"ts": [tick, tick], "k": ["a", "b"], "v": [value, 0]}))
        sql = "SELECT max(v) AS m FROM t [RANGE {}] WHERE k = 'a'"
        sizes = (3, 2, 1)
        found.append(
            [stream.ask(sql.format(n), timeout=PATIENCE).frame["m"][0].as_py() for n in sizes]
        )
    assert found == [[9, 9, 9], [9, 9, 1], [9, 1, 1], [1, 1, 1], [5, 5, 5], [5, 5, 1]]
