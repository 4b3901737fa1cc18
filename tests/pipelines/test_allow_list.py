"""No function reaches outside its row, however it is spelled and wherever it stands."""

from __future__ import annotations

import pytest

from muntin.expressions.binding.binder import known_names
from muntin.pipelines import PipelineError, read

STREAM = "CREATE STREAM trades WITH (format = 'rate');"
FROM = "FROM trades [RANGE '1 minute' SLIDE '1 minute']"
OUTSIDE = """
reflect java_method try_reflect input_file_name current_user session_user user version
current_catalog current_database getenv system exec eval read_files read_csv read_parquet
read_text read_blob load_file pg_read_file http_get url ai_query raise_error assert_true
from_csv from_json from_xml xpath transform aggregate explode sleep pg_sleep uuid rand now
"""
SPELLINGS = (
    "NAME(ARGS)",
    "NAME (ARGS)",
    "NAME/* */(ARGS)",
    "`NAME`(ARGS)",
    "system.NAME(ARGS)",
    "system.builtin.NAME(ARGS)",
    "`system`.`builtin`.`NAME`(ARGS)",
    "spark_catalog.default.NAME(ARGS)",
    "symbol.NAME(ARGS)",
    "{fn NAME(ARGS)}",
)
PLACES = (
    "SELECT max(CALL) AS v SOURCE",
    "SELECT max(concat(symbol, CALL)) AS v SOURCE",
    "SELECT max(symbol) FILTER (WHERE CALL = 'x') AS v SOURCE",
    "SELECT count(*) AS v SOURCE WHERE CALL = 'x'",
    "SELECT count(*) AS v SOURCE WHERE symbol IN (CALL)",
    "SELECT count(*) AS v SOURCE GROUP BY CALL",
    "SELECT count(*) AS v SOURCE HAVING CALL = 'x'",
    "SELECT CASE WHEN CALL THEN 1 END AS x, count(*) AS v SOURCE GROUP BY x",
    "SELECT max(CAST(CALL AS STRING)) AS v SOURCE",
    "SELECT CALL AS v SOURCE",
)


def query(place: str, call: str) -> str:
    return place.replace("SOURCE", FROM).replace("CALL", call)


def refuses(query: str) -> None:
    with pytest.raises(PipelineError) as caught:
        read(STREAM + query)
    assert all(problem.hint and problem.line for problem in caught.value.problems)


@pytest.mark.parametrize("name", OUTSIDE.split())
def test_no_function_reaches_outside(name: str) -> None:
    assert name not in known_names()
    for number, spelling in enumerate(SPELLINGS):
        called = spelling.replace("NAME", name if number % 2 else name.title())
        refuses(query(PLACES[number], called.replace("ARGS", "'java.lang.Runtime', 'x'")))


@pytest.mark.parametrize("place", PLACES)
def test_reflection_is_refused_wherever_it_stands(place: str) -> None:
    for spelling in SPELLINGS:
        called = spelling.replace("NAME", "reflect").replace("ARGS", "'a', 'b'")
        refuses(query(place, called))


@pytest.mark.parametrize(
    "source",
    [
        "parquet.`/etc/passwd` [RANGE '1 minute' SLIDE '1 minute']",
        "read_files('/etc/passwd') [RANGE '1 minute' SLIDE '1 minute']",
        "'/etc/passwd' [RANGE '1 minute' SLIDE '1 minute']",
        "trades [RANGE '1 minute' SLIDE '1 minute'] JOIN csv.`/etc/passwd` c ON symbol = c.a",
        "trades [RANGE '1 minute' SLIDE '1 minute'] JOIN read_csv('/etc/passwd') c ON symbol = c.a",
        "TABLE(reflect('a', 'b')) [RANGE '1 minute' SLIDE '1 minute']",
        "HOP(TABLE reflect('a'), DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '5' MINUTE)",
        "trades [RANGE reflect('a') SLIDE '1 minute']",
    ],
)
def test_no_file_is_a_source_unless_it_is_declared(source: str) -> None:
    refuses(f"SELECT count(*) AS n FROM {source}")


def test_the_list_is_what_is_documented_and_nothing_else_binds() -> None:
    allowed = set(known_names())
    assert {"upper", "coalesce", "abs"} <= allowed
    assert allowed.isdisjoint(OUTSIDE.split())
