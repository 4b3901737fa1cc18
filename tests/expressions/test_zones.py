"""Local times are those that Spark has in the same zone."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from expressions import conformance, zoned
from expressions.conformance import Answer
from expressions.test_conformance import answer
from muntin.errors import DataError
from muntin.expressions import Evaluator, bind_text
from muntin.expressions.tree import BindingError
from muntin.expressions.zone_names import zone
from muntin.expressions.zones import CYCLE, Zone

CASES = zoned.cases()
SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "nt": pa.timestamp("us"), "dt": pa.date32()})


@cache
def golden() -> dict[str, dict[str, Answer]]:
    return zoned.load_golden()


def together(batch: pa.Table, texts: list[str], where: Zone) -> dict[str, Answer]:
    bounds = [bind_text(text, batch.schema, where) for text in texts]
    found = Evaluator(bounds)(batch)
    return {t: answer(b, e) for t, b, e in zip(texts, bounds, found, strict=True)}


@pytest.mark.parametrize("name", zoned.ZONES)
def test_local_times_are_those_of_spark(name: str) -> None:
    ours = together(zoned.table(), CASES, zone(name))
    found = {text: conformance.differences(ours[text], golden()[name][text]) for text in CASES}
    assert not {text: lines for text, lines in found.items() if lines}


@pytest.mark.parametrize("name", zoned.ZONES)
def test_one_row_at_a_time(name: str) -> None:
    """A batch within one offset takes another way than one that spans several."""
    batch = zoned.table()
    for row in range(0, batch.num_rows, 5):
        for text, mine in together(batch.slice(row, 1), CASES, zone(name)).items():
            spark = golden()[name][text]
            failed = [0] if row in spark.failed else []
            expected = Answer(spark.type, [spark.values[row]], failed)
            assert not conformance.differences(mine, expected), (text, row)


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


# New York, 2013: clocks go from 02:00 to 03:00 on March 10, from 02:00 to 01:00 on November 3.
@pytest.mark.parametrize(
    ("local", "instant"),
    [
        ("2013-03-10T01:59:59", "2013-03-10T06:59:59"),
        ("2013-03-10T02:30:00", "2013-03-10T07:30:00"),  # skipped: an hour later, 03:30
        ("2013-03-10T03:00:00", "2013-03-10T07:00:00"),
        ("2013-11-03T00:59:59", "2013-11-03T04:59:59"),
        ("2013-11-03T01:30:00", "2013-11-03T05:30:00"),  # twice: the first
        ("2013-11-03T02:00:00", "2013-11-03T07:00:00"),
        ("2413-07-01T12:00:00", "2413-07-01T16:00:00"),  # rules go on for ever
        ("9813-12-01T12:00:00", "9813-12-01T17:00:00"),
    ],
)
def test_local_times_that_are_skipped_or_come_twice(local: str, instant: str) -> None:
    found = zone("America/New_York").instants_of(np.array([at(local)]))
    assert found.tolist() == [at(instant)]


def test_a_day_whose_midnight_is_skipped_begins_when_the_clock_goes_on() -> None:
    midnights = np.array([at("2018-11-04"), at("2018-11-05")])
    found = zone("America/Sao_Paulo").starts_of(midnights)
    assert found.tolist() == [at("2018-11-04T03:00:00"), at("2018-11-05T02:00:00")]
    # Samoa had no December 30 in 2011, and Toronto's clock went from 23:30 to 00:30.
    assert zone("Pacific/Apia").starts_of(np.array([at("2011-12-30")])) == at("2011-12-30T10:00:00")
    assert zone("America/Toronto").starts_of(np.array([at("1919-03-31")])) == at("1919-03-31T04:30")


@pytest.mark.parametrize("name", ["America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"])
def test_every_400_years_are_the_same(name: str) -> None:
    where = zone(name)
    times = np.arange(at("2100-01-01"), at("2104-01-01"), 7_000)
    assert (where.offsets_at(times + 3 * CYCLE) == where.offsets_at(times)).all()
    for method in (where.instants_of, where.starts_of):
        assert (method(times + 3 * CYCLE) == method(times) + 3 * CYCLE).all()


def test_offsets_round_trip_and_pickle() -> None:
    where = zone("Europe/Paris")
    copy = pickle.loads(pickle.dumps(where))
    assert copy == where
    assert copy != zone("Europe/Rome")
    # Only what it is made of travels, not the tables that are made from it.
    where.offsets_at(np.array([0]))
    assert len(pickle.dumps(where)) < 10_000


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("UTC", 0),
        ("Z", 0),
        ("+01:00", 3600),
        ("-8", -8 * 3600),
        ("+5:30", 19_800),
        ("+0530", 19_800),
        ("+05:30:15", 19_815),
        ("UTC+1", 3600),
        ("GMT-03:00", -3 * 3600),
        ("EST", -5 * 3600),
        ("Etc/GMT+5", -5 * 3600),
    ],
)
def test_names_that_say_their_offset(name: str, seconds: int) -> None:
    assert zone(name).fixed == seconds
    assert zone(name).name == name


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("America/New_Yorc", "did you mean America/New_York?"),
        ("utc", "did you mean UTC?"),
        ("+19:00", "offsets lie between"),
        ("+01:75", "offsets lie between"),
        ("", "name a region"),
        ("../../etc/passwd", "name a region"),
        ("Europe", "Europe"),
        ("zone.tab", "name a region"),
        (None, "write it as in"),
        (2, "write it as in"),
    ],
)
def test_zones_that_are_none(name: str, hint: str) -> None:
    with pytest.raises(DataError) as error:
        zone(name)
    assert hint in str(error.value.hint)


def test_a_constant_says_which_of_two_hours_is_meant() -> None:
    """Two instants of one local time must not share a key: they would share their partials."""
    where = zone("America/New_York")
    texts = [f"ts > TIMESTAMP '2013-11-03 0{hour}:30:00Z'" for hour in (5, 6)]
    first, second = (bind_text(text, SCHEMA, where) for text in texts)
    assert first.key == "ts > TIMESTAMP '2013-11-03 01:30:00-04:00'"
    assert second.key == "ts > TIMESTAMP '2013-11-03 01:30:00-05:00'"
    assert bind_text(first.key, SCHEMA, where).root == first.root
    assert bind_text(second.key, SCHEMA, where).root == second.root


@pytest.mark.parametrize(
    "text", ["ts > '2013-02-30'", "TIMESTAMP '2013-01-01 00:00:00 Mars/Phobos'", "ts = 'x'"]
)
def test_constants_that_are_no_times_are_refused_in_every_zone(text: str) -> None:
    for name in ("UTC", *zoned.ZONES):
        with pytest.raises(BindingError, match="is not a valid TIMESTAMP"):
            bind_text(text, SCHEMA, zone(name))
