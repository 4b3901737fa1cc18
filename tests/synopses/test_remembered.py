"""What is remembered of questions: never the answer to another one."""

import gc
import random
import threading
import weakref

import pyarrow as pa
import pytest

import muntin
from muntin.queries.asking.words import quick_words_of, shape_of, words_of
from muntin.streams import Stream
from muntin.synopses.asking import Asking

COLUMNS = {"ts": "int64", "k": "string", "v": "int64"}
QUERY = "SELECT count(*) AS n FROM t [RANGE 9 SLIDE 4]"
PATIENCE = "1 minute"
# What stands in place of a constant; each is another kind of word, or none.
ODD = (
    *("7", "007", "7.0", ".7", "7.", "7e1", "7_0", "'7'", "'7 minutes'", "'it''s 7'", "''", "''''"),
    *("'a' 'b'", "x'7'", "'x'7", "n'7'", "r'7'", "-7", "- 7", "- -7", "+7", "'٣'", "٣", "²", "$7"),
    *("'-'", "'[RANGE 9]'", "{# 7 #} 8", "TRUE", "NULL", "'\n7'", "(7)", "('7')", "`7`", '"7"'),
    *("'7' /* '8' */", "'7' -- 8\n", "'?'", "7a", "a7", "'7'::int", "1.5.2", "0x7", "'ß'", "'７'"),
)
TEXTS = (
    "SELECT max(v) AS m FROM t [RANGE {}] WHERE k = {}",
    "SELECT max(v) AS m FROM t [RANGE 5 AS OF{}] WHERE v>{} AND k='a'",
    "SELECT max(v + {}) FROM t [RANGE 7] LIMIT {}",
)


def told(text: str, quick: bool) -> object:
    try:
        words = quick_words_of(text) if quick else words_of(text)
    except muntin.QueryError as error:
        return str(error)
    return [(word.token_type, word.text) for word in words], shape_of(words)


@pytest.mark.parametrize("seed", range(5))
def test_words_are_those_of_the_text_whatever_came_before(seed: int) -> None:
    rnd = random.Random(seed)
    for _ in range(1500):
        text = rnd.choice(TEXTS).format(rnd.choice(ODD), rnd.choice(ODD))
        assert told(text, quick=True) == told(text, quick=False), text


def test_a_keep_of_rows_that_is_created_anew_is_read_anew() -> None:
    stream = muntin.stream(QUERY, COLUMNS)
    rows = pa.table({"ts": [1, 2, 3], "k": ["a", "b", "c"], "v": [1, 20, 300]})
    for number in range(60):
        columns = ("k, v", "v, k", "v", "*")[number % 4]
        stream.keep(f"CREATE OR REPLACE KEEP last AS SELECT {columns} FROM t [ROWS 3]")
        stream.feed(rows.set_column(0, "ts", pa.array([9 * number + at for at in range(3)])))
        asked = stream.ask("SELECT sum(v) AS s, max(v) AS m FROM t [ROWS 3]", timeout=PATIENCE)
        assert asked.frame.to_pylist() == [{"s": 321, "m": 300}]
        for least, total in ((2, 320), (50, 300)):
            sql = f"SELECT sum(v) AS s FROM t [ROWS 3] WHERE v > {least} LIMIT 1"
            assert stream.ask(sql, timeout=PATIENCE).frame.to_pylist() == [{"s": total}]


def test_readers_of_replaced_keeps_do_not_mix() -> None:
    """A reader that holds an older version goes on with what fits that one."""
    keep = "CREATE OR REPLACE KEEP r AS SELECT {} FROM t [RANGE 60 SLIDE 1] GROUP BY k"
    stream = muntin.stream(QUERY, COLUMNS)
    held = []
    for calls in ("k, min(v), max(v), sum(v)", "k, sum(v), max(v), min(v)"):
        stream.keep(keep.format(calls))
        stream.feed(pa.table({"ts": [5 * len(held) + 5], "k": ["a"], "v": [1 + len(held)]}))
        held.append(stream._keeper.versions)
    wrong: list[object] = []
    turn = iter(range(10**9))
    asking = Asking(lambda: held[next(turn) % 2])

    def read() -> None:
        for number in range(300):
            sql = f"SELECT min(v) AS a, max(v) AS b, sum(v) AS c FROM t [RANGE {1 + number % 3}]"
            sql += " WHERE k = 'a'"
            answer = asking.ask(sql, isolation="ws", timeout=PATIENCE)
            value = answer.batch
            if answer.frame.to_pylist() != [{"a": value, "b": value, "c": value}]:
                wrong.append(answer.frame.to_pylist())

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_text_that_differs_in_constants_is_answered_briefly() -> None:
    """The same as the long way says, batch after batch, and nothing of the long way is taken."""
    keep = (
        "CREATE KEEP r AS SELECT k, max(v), sum(v), count(*) FROM t [RANGE 30 SLIDE 4] GROUP BY k"
    )
    stream = muntin.stream(QUERY, COLUMNS, lateness=3, keeps=keep)
    rnd, brief, refused = random.Random(7), 0, 0
    ways = (" ALIGNED", "", " AS OF WATERMARK ALIGNED", " AS OF WATERMARK")
    for number in range(60):
        ticks = [max(2 * number + rnd.randint(-5, 2), 0) for _ in range(6)]
        keys = [rnd.choice("abcd"[: 2 + number // 20]) for _ in ticks]
        stream.feed(pa.table({"ts": ticks, "k": keys, "v": [rnd.randint(-9, 9) for _ in ticks]}))
        for way in ways:
            calls = rnd.choice(["max(v) AS m, count(*) AS n", "count(*) AS n, max(v) AS m"])
            sql = f"SELECT {calls} FROM t [RANGE {rnd.randint(1, 34)}{way}] WHERE k = '{{}}'"
            for key in "abcde":
                said = []
                for is_brief in (True, False):
                    with pytest.MonkeyPatch.context() as patched:
                        if is_brief:
                            patched.setattr(Asking, "_once", _refused)
                        else:
                            patched.setattr(Asking, "_briefly", lambda *_: None)
                        said.append(_said(stream, sql.format(key)))
                brief += said[0] != LONG
                refused += said[1].startswith("keep r")
                assert said[0] in (said[1], LONG)
    assert brief > 500
    assert refused


LONG = "the long way"


def _refused(*_: object) -> None:
    raise muntin.QuestionError(LONG)


def _said(stream: Stream, sql: str) -> str:
    try:
        answer = stream.ask(sql, timeout=PATIENCE)
    except muntin.QuestionError as error:
        return LONG if str(error) == LONG else str(error)
    facts = {key: value for key, value in answer.facts().items() if key != "milliseconds"}
    return str((answer.table.to_pylist(), answer.table.schema, facts))


def test_answers_hold_nothing_of_what_is_kept() -> None:
    keep = "CREATE KEEP r AS SELECT k, sum(v) FROM t [RANGE 9 SLIDE 1] GROUP BY k"
    stream = muntin.stream(QUERY, COLUMNS, keeps=keep)
    stream.feed(pa.table({"ts": [1, 2], "k": ["a", "b"], "v": [1, 2]}))
    sqls = ["SELECT sum(v) AS s FROM t [RANGE 9] WHERE k = 'a'"] * 3
    answers = [
        stream.ask(sql, timeout=PATIENCE)
        for sql in [*sqls, "SELECT k, sum(v) AS s FROM t [RANGE 9] GROUP BY k"]
    ]
    block = weakref.ref(stream._keeper.versions.by_name["r"].blocks[0])
    stream.feed(pa.table({"ts": [100], "k": ["a"], "v": [7]}))
    stream.feed(pa.table({"ts": [101], "k": ["a"], "v": [7]}))
    gc.collect()
    assert block() is None
    assert [each.table.to_pylist()[0] for each in answers[:3]] == [{"s": 1}] * 3
    assert {each.source for each in answers} == {"keep r (1 block, 2 entries)"}


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), b"x"])
def test_what_is_not_a_constant_is_refused(value: object) -> None:
    stream = muntin.stream(
        QUERY,
        COLUMNS,
        keeps="CREATE KEEP r AS SELECT k, sum(v) FROM t [RANGE 9 SLIDE 1] GROUP BY k",
    )
    ask = stream.prepare("SELECT sum(v) AS s FROM t [RANGE 9] WHERE k = ?")
    with pytest.raises(muntin.MuntinError, match="cannot be a constant"):
        ask(value)
