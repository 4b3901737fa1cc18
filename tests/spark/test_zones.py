"""Expressions on Spark mean what they mean in the session's time zone."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from expressions import conformance, zoned
from expressions.conformance import Answer
from expressions.test_zones import together
from muntin.errors import DataError
from muntin.expressions.zone_names import zone
from muntin.spark.zones import session_zone
from spark.live_expressions import evaluated

TIME_ZONE = "spark.sql.session.timeZone"
SEED, COUNT = 2013, 120


@pytest.fixture
def in_zone(spark: Any) -> Iterator[Callable[[str], None]]:
    """Sets the session's zone, which is the usual one again after the test."""
    before = spark.conf.get(TIME_ZONE)
    yield lambda name: spark.conf.set(TIME_ZONE, name)
    spark.conf.set(TIME_ZONE, before)


def live(spark: Any, texts: list[str]) -> dict[str, Answer]:
    """Spark's answers; Arrow shows its timestamps in the session's zone."""
    found = evaluated(spark, zoned.table(), texts)
    return {
        text: replace(each, type=re.sub(r"tz=[^\]]*", "tz=UTC", each.type))
        for text, each in found.items()
    }


def test_golden_file_is_what_spark_says(spark: Any, in_zone: Callable[[str], None]) -> None:
    """Set MUNTIN_UPDATE_GOLDEN=1 to store the answers instead of comparing them."""
    found = {}
    for name in zoned.ZONES:
        in_zone(name)
        found[name] = live(spark, zoned.cases())
    if os.environ.get("MUNTIN_UPDATE_GOLDEN"):
        zoned.save_golden(found)
    assert zoned.load_golden() == found


@pytest.mark.parametrize("name", zoned.RANDOM_ZONES)
def test_random_expressions(spark: Any, in_zone: Callable[[str], None], name: str) -> None:
    """Over columns and over constants, around the changes of clocks."""
    in_zone(name)
    texts = zoned.Expressions(SEED).draw(COUNT)
    ours, theirs = together(zoned.table(), texts, session_zone(spark)), live(spark, texts)
    found = {text: conformance.differences(ours[text], theirs[text]) for text in texts}
    assert not {text: lines for text, lines in found.items() if lines}


def test_rules_are_those_of_the_jvm(spark: Any) -> None:
    """The databases agree where nothing has changed lately, told in very different ways."""
    times = np.arange(0, 10**11, 10_007)
    for name in ("America/New_York", "Europe/Dublin", "Australia/Lord_Howe", "Asia/Kolkata"):
        assert (session_zone(spark, name).offsets_at(times) == zone(name).offsets_at(times)).all()
    with pytest.raises(DataError, match="there is no time zone 'Mars/Phobos'"):
        session_zone(spark, "Mars/Phobos")
