"""The time zone of a stream in SQL files, and in files that are imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from muntin import pipelines
from muntin.pipelines.importers import import_sql

FILE = """
CREATE STREAM trades (ts TIMESTAMP, vol BIGINT)
  WITH (format = '{format}', path = 'in', timezone = '{zone}');
CREATE QUERY early AS SELECT count(*) AS n FROM trades [RANGE '1 hour' SLIDE '1 hour']
  WHERE hour(ts) < 10;
"""
SPARK = """{set};
CREATE TABLE trades (ts TIMESTAMP, vol BIGINT) USING parquet OPTIONS (path '/data/trades');
SELECT sum(vol) AS v FROM trades WHERE hour(ts) < 10 GROUP BY window(ts, '5 minutes');
"""


def test_a_stream_has_a_zone() -> None:
    pipeline = pipelines.read(FILE.format(format="csv", zone="America/New_York"))
    stream = pipeline.stream("trades")
    assert stream.timezone == "America/New_York"
    assert stream.spark_options()["timeZone"] == "America/New_York"
    assert pipeline.plan("trades").zone.name == "America/New_York"
    parquet = pipelines.read(FILE.format(format="parquet", zone="+01:00")).stream("trades")
    assert "timeZone" not in parquet.spark_options()
    plain = pipelines.read("CREATE STREAM trades WITH (format = 'rate');")
    assert plain.stream("trades").timezone is None
    assert plain.plan("trades").zone.is_utc


def test_an_unknown_zone_is_a_problem_at_its_place() -> None:
    with pytest.raises(pipelines.PipelineError) as error:
        pipelines.read(FILE.format(format="parquet", zone="America/New_Yorc"))
    [problem] = error.value.problems
    assert problem.message == "stream trades: timezone: there is no time zone 'America/New_Yorc'"
    assert problem.hint == "did you mean America/New_York?"
    assert problem.line == 3


@pytest.mark.parametrize(
    "said",
    [
        "SET TIME ZONE 'Asia/Tokyo'",
        "SET spark.sql.session.timeZone = Asia/Tokyo",
        "set spark.sql.session.timezone=Asia/Tokyo",
        "SET 'table.local-time-zone' = 'Asia/Tokyo'",
    ],
)
def test_the_zone_of_a_session_is_imported(said: str, tmp_path: Path) -> None:
    imported = import_sql(SPARK.format(set=said))
    assert imported.pipeline.stream("trades").timezone == "Asia/Tokyo"
    assert not [note for note in imported.notes if note.lost]


def test_other_settings_and_a_second_zone_are_noted() -> None:
    for said in ("SET TIME ZONE LOCAL", "SET TIME ZONE 'Mars/Phobos'", "SET timezones = 3"):
        imported = import_sql(SPARK.format(set=said))
        assert imported.pipeline.stream("trades").timezone is None
        assert [note.problem.message for note in imported.notes if note.lost] == [
            "SET has no counterpart"
        ]
    imported = import_sql(SPARK.format(set="SET TIME ZONE 'Asia/Tokyo'; SET TIME ZONE 'UTC'"))
    assert imported.pipeline.stream("trades").timezone == "Asia/Tokyo"
    [lost] = [note.problem.message for note in imported.notes if note.lost]
    assert lost == "another time zone than Asia/Tokyo, UTC, is left out"
