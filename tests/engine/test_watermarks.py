"""Watermarks of several streams: each by its own rows, idle ones by the others'."""

import pyarrow as pa
import pytest

from muntin.engine.watermarks import HolderWarning, Watermarks
from muntin.plan.operators import StreamSchema
from muntin.plan.timeline import Timeline
from muntin.planner.rows import row_plan
from muntin.queries import RowQuery, all_queries


def test_each_stream_moves_by_its_own_rows() -> None:
    clocks = Watermarks({"a": 5, "b": 0}, idle=None, now=0)
    clocks.take("a", 50, now=1)
    clocks.take("b", 20, now=2)
    clocks.take("a", 40, now=3)
    assert clocks.watermarks == {"a": 45, "b": 20}
    assert clocks.clocks["a"].seen == 50
    assert (clocks.holder(), clocks.gap()) == ("b", 25)
    assert clocks.least(["a", "b"]) == 20


def test_a_stream_that_has_not_spoken_holds_the_others() -> None:
    clocks = Watermarks({"a": 0, "b": 0}, idle=10, now=0)
    clocks.take("a", 50, now=5)
    clocks.settle(now=9)
    assert clocks.watermarks == {"a": 50}
    assert clocks.least(["a", "b"]) is None
    assert clocks.holder() == "b"
    clocks.settle(now=10)
    assert clocks.watermarks == {"a": 50, "b": 50}


def test_idle_streams_follow_and_never_go_back() -> None:
    clocks = Watermarks({"a": 0, "b": 0, "c": 0}, idle=10, now=0)
    for name, largest in (("a", 10), ("b", 90), ("c", 30)):
        clocks.take(name, largest, now=0)
    clocks.take("c", 60, now=8)
    clocks.settle(now=12)
    # The idle ones keep up with the one that is awake; one that is ahead of it stays.
    assert clocks.watermarks == {"a": 60, "b": 90, "c": 60}
    clocks.take("a", 20, now=13)
    assert clocks.watermarks["a"] == 60


def test_nothing_moves_while_all_are_idle() -> None:
    clocks = Watermarks({"a": 0, "b": 0}, idle=10, now=0)
    clocks.take("a", 50, now=0)
    clocks.take("b", 5, now=0)
    clocks.settle(now=100)
    assert clocks.watermarks == {"a": 50, "b": 5}


def test_the_clock_moves_streams_that_say_so() -> None:
    clocks = Watermarks({"a": 0, "b": 3}, idle={"a": 10, "b": None}, now=0, by_clock={"b": 20})
    clocks.take("a", 100, now=1)
    clocks.take("b", 40, now=1)
    clocks.settle(now=20)
    # a is idle and ahead of b, which is never idle.
    assert (clocks.watermarks, clocks.silent(now=20)) == ({"a": 100, "b": 37}, {"a"})
    clocks.settle(now=21)
    assert clocks.watermarks == {"a": 100, "b": 40 + 20 - 3}
    clocks.settle(now=90)
    assert clocks.watermarks == {"a": 100, "b": 40 + 89 - 3}
    # It follows those that are not idle as they were before the clock moved them.
    clocks.settle(now=91)
    assert clocks.watermarks == {"a": 126, "b": 127}


def test_a_batch_without_rows_says_nothing() -> None:
    clocks = Watermarks({"a": 0}, idle=10, now=0)
    clocks.take("a", None, now=9)
    assert clocks.watermarks == {}
    assert clocks.silent(now=10) == {"a"}


def test_who_holds_others_back_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    schema = pa.schema({"ts": pa.int64(), "k": pa.int64()})
    streams = dict.fromkeys("abc", StreamSchema(schema, Timeline("ts", pa.int64())))
    text = "SELECT a.k FROM a [RANGE 10] JOIN b [RANGE 5] ON a.k = b.k"
    plan = row_plan([each for each in all_queries(text) if isinstance(each, RowQuery)], streams)
    warning = HolderWarning()
    told = []
    for marks in ({"a": 0, "b": None, "c": None}, {"a": 8, "b": None, "c": None},
                  {"a": 11, "b": None, "c": 99}, {"a": 12, "b": None, "c": 99},
                  {"a": 12, "b": 12, "c": None}, {"a": 30, "b": 12, "c": None}):  # fmt: skip
        caplog.clear()
        warning.check(marks, plan)
        told.append(caplog.messages)
    assert [len(each) for each in told] == [0, 0, 1, 0, 0, 1]
    assert "stream b has had no row yet" in told[2][0]
    assert "stream b is 18 ticks behind" in told[5][0]
    assert "rows of a are kept" in told[5][0]


def test_who_is_to_be_idle_is_not_told_to_give_idle(caplog: pytest.LogCaptureFixture) -> None:
    schema = pa.schema({"ts": pa.int64(), "k": pa.int64()})
    streams = dict.fromkeys("ab", StreamSchema(schema, Timeline("ts", pa.int64())))
    text = "SELECT a.k FROM a [RANGE 10] JOIN b [RANGE 5] ON a.k = b.k"
    plan = row_plan([each for each in all_queries(text) if isinstance(each, RowQuery)], streams)
    for paced in ((), ("a",), ("b",)):
        HolderWarning().check({"a": 30, "b": 0}, plan, paced)
    assert ["give idle=" in each for each in caplog.messages] == [True, True, False]
    assert caplog.messages[2].startswith("stream b is 30 ticks behind and holds the others back")
    assert "has been silent for as long as idle= or advance_when_idle= says" in caplog.messages[2]


def test_streams_are_compared_with_those_they_are_read_with(
    caplog: pytest.LogCaptureFixture,
) -> None:
    schema = pa.schema({"ts": pa.int64(), "k": pa.int64()})
    streams = dict.fromkeys("abcd", StreamSchema(schema, Timeline("ts", pa.int64())))
    texts = [
        f"SELECT {x}.k FROM {x} [RANGE 9] JOIN {y} [NOW] ON {x}.k = {y}.k" for x, y in ("ab", "cd")
    ]
    plan = row_plan([each for each in all_queries(texts) if isinstance(each, RowQuery)], streams)
    warning = HolderWarning()
    # The two pairs are far apart, and nobody waits for anybody.
    warning.check({"a": 0, "b": 0, "c": 1000, "d": 1000}, plan)
    assert not caplog.messages
    warning.check({"a": 50, "b": 0, "c": 1000, "d": 1050}, plan)
    assert [each.split(" behind")[0] for each in caplog.messages] == [
        *("stream b is 50 ticks", "stream c is 50 ticks")
    ]
    assert "rows of a are kept" in caplog.messages[0]
