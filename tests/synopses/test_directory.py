"""What a directory of blocks reads, beside what columns say block by block."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

import muntin
from muntin.streams import Stream
from muntin.synopses.keeps.replica import Version
from muntin.synopses.reading import OneRow

QUERY = "SELECT count(*) AS n FROM t [RANGE 9 SLIDE 4]"
COLUMNS = {"ts": "int64", "k": "string", "g": "int64", "v": "int64", "x": "float64", "w": "int32"}
KEEP = (
    "CREATE KEEP r AS SELECT k, g, sum(v), max(v), min(v), sum(x), avg(x), max(x), min(x), min(k),"
    " max(w), sum(w), count(x) FROM t [RANGE 500 SLIDE 3] GROUP BY k, g CUT (v > 4)"
)
CALLS = (
    "count(*) AS n, sum(v) AS sv, max(v) AS mv, min(v) AS lv, sum(x) AS sx, avg(x) AS ax,"
    " max(x) AS mx, min(x) AS lx, min(k) AS mk, max(w) AS mw, sum(w) AS sw, count(x) AS cx"
)
# What is answered from plain numbers.
PLAIN = "count(*) AS n, sum(v) AS sv, max(v) AS mv, min(v) AS lv, max(x) AS mx, min(x) AS lx"
BOUNDED = "count(*) AS n, max(v) AS mv, min(v) AS lv, max(x) AS mx, min(x) AS lx, count(x) AS cx"
PATIENCE = "1 minute"
BIG = (1, 2, 3, 2**40, -5, 2**62, -(2**63), 2**63 - 1, 0)
STRANGE = (0.1, -0.0, 1e300, -1e-300, float("inf"), float("nan"))


def a_stream(rnd: random.Random, strange: int) -> Stream:
    """A stream of many small blocks; from some batch on values are larger, then infinite."""
    stream = muntin.stream(QUERY, COLUMNS, lateness=40, keeps=KEEP)
    for number in range(30):
        ticks = [max(10 * number + rnd.randint(-30, 10), 0) for _ in range(40)]
        batch = {
            "ts": ticks,
            "k": [rnd.choice(["a", "b", "c", None]) for _ in ticks],
            "g": [rnd.randint(0, 2) for _ in ticks],
            "v": [rnd.choice([rnd.randint(-9, 9), None, BIG[number % 9]]) for _ in ticks],
            "x": [rnd.choice([None, *STRANGE[: 1 + strange * number // 30]]) for _ in ticks],
            "w": [rnd.randint(-5, 5) for _ in ticks],
        }
        stream.feed(pa.table(batch, schema=stream.plan().source))
    return stream


def questions(rnd: random.Random) -> Iterator[str]:
    for _ in range(30):
        length, way = rnd.randint(1, 300), rnd.choice([" ALIGNED", " AS OF WATERMARK ALIGNED"])
        where = rnd.choice(["", " AND v > 4", " AND v > 4 AND g > 0"])
        key = rnd.choice(["a", "b", "none"])
        window = f"FROM t [RANGE {length}{way}]"
        yield f"SELECT {CALLS} {window} WHERE k = '{key}'{where}"
        yield f"SELECT {PLAIN} {window} WHERE k = '{key}' AND g = {rnd.randint(0, 3)}"
        yield f"SELECT k, {CALLS} {window} WHERE g <> 1{where} GROUP BY k"
        yield f"SELECT g % 2 AS o, k, {CALLS} {window} GROUP BY o, k ORDER BY n DESC LIMIT 3"
        yield f"SELECT k, g, {CALLS} {window} GROUP BY k, g HAVING n > 1 ORDER BY mx, k, g"
        yield f"SELECT {BOUNDED} FROM t [RANGE {length}] WHERE k = '{key}'"


@contextmanager
def without_directory() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Version, "directory", None)
        yield


@contextmanager
def without_numbers() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(OneRow, "read", lambda *_: None)
        yield


@contextmanager
def block_by_block() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("muntin.synopses.reading.gathered._MOST", -1)
        yield


def told(stream: Stream, sql: str) -> str:
    """NaN equals nothing, and has a text."""
    answer = stream.ask(sql, timeout=PATIENCE)
    return str((answer.table.to_pylist(), answer.table.schema, answer.exact, answer.rows))


@pytest.mark.parametrize("strange", [0, 4, 6])
@pytest.mark.parametrize("many", [1, 1 << 15])
def test_all_blocks_at_once_say_what_each_does(
    many: int, strange: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of many entries have running totals; NaN and infinities are for columns alone."""
    monkeypatch.setattr("muntin.synopses.keeps.directory._MANY", many)
    rnd = random.Random(strange)
    stream = a_stream(rnd, strange)
    for sql in questions(rnd):
        found = told(stream, sql)
        for way in (without_directory, without_numbers, block_by_block):
            with way():
                assert told(stream, sql) == found, sql


def test_one_group_is_answered_from_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are asked most do not take the long way, with bounds or without."""
    stream = muntin.stream(
        QUERY,
        COLUMNS,
        keeps="CREATE KEEP r AS SELECT k, max(x), sum(v), count(*) FROM t [RANGE 90 SLIDE 5]"
        " GROUP BY k",
    )
    ticks = [1, 7, 12]
    batch = {"ts": ticks, "k": ["a", "a", "b"], "g": [1] * 3, "v": [1, 2, 3], "w": [0] * 3}
    stream.feed(pa.table({**batch, "x": [1.5, 2.5, 3.5]}, schema=stream.plan().source))
    monkeypatch.setattr("muntin.synopses.asking.Reading", None)
    calls = "max(x) AS m, sum(v) AS s, count(*) AS n"
    sql = f"SELECT {calls} FROM t [RANGE ? ALIGNED] WHERE k = ?"
    ask = stream.prepare(sql, timeout=PATIENCE)
    assert ask(13, "a").frame.to_pylist() == [{"m": 2.5, "s": 3, "n": 2}]
    assert ask(1, "b").frame.to_pylist() == [{"m": 3.5, "s": 3, "n": 1}]
    assert ask(1, "a").frame.to_pylist() == [{"m": None, "s": None, "n": 0}]
    cut = stream.ask("SELECT max(x) AS m FROM t [RANGE 2] WHERE k = 'a'", timeout=PATIENCE)
    assert (cut.exact, cut.frame.to_pylist()) == (True, [{"m": None}])
    cut = stream.ask("SELECT max(x) AS m FROM t [RANGE 7] WHERE k = 'a'", timeout=PATIENCE)
    assert (cut.exact, cut.rows) == (False, 1)
    assert cut.frame.to_pylist() == [{"m": 2.5, "m_low": None, "m_high": 2.5}]


def test_a_version_stays_while_blocks_are_put_together() -> None:
    """Addresses of a version point at what it holds, whatever the stream does meanwhile."""
    stream = muntin.stream(
        QUERY, COLUMNS, keeps="CREATE KEEP r AS SELECT k, sum(v) FROM t [RANGE 40 SLIDE 1]"
        " GROUP BY k"
    )  # fmt: skip
    held = []
    for tick in range(120):
        batch = {"ts": [tick], "k": ["a"], "g": [0], "v": [2**40 + tick], "x": [0.0], "w": [0]}
        stream.feed(pa.table(batch, schema=stream.plan().source))
        version = stream._keeper.versions
        held.append((version, version.by_name["r"].directory, tick))
    for version, _, tick in held:
        asking = muntin.synopses.Asking(lambda version=version: version)
        found = asking.ask("SELECT sum(v) AS s FROM t [RANGE 30] WHERE k = 'a'", timeout=PATIENCE)
        ticks = range(max(tick - 29, 0), tick + 1)
        assert found.frame.to_pylist() == [{"s": sum(2**40 + each for each in ticks)}]
