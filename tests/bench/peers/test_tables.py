"""What the report says of times: ratios, parts, reasons, and promises."""

from __future__ import annotations

from muntin_bench.measure import Timing
from muntin_bench.peers.measuring import Cell
from muntin_bench.peers.questions import FULL, TINY, questions
from muntin_bench.peers.sides import (
    DUCKDB,
    DUCKDB_SLICES,
    FLINK,
    FLINK_SCAN,
    OURS,
    POLARS,
    POLARS_SLICES,
    SPARK,
    Side,
)
from muntin_bench.peers.tables import Found, left_out, plot, promises, table, ways

WINDOWS = questions(TINY)[1]
ONE, MANY = WINDOWS.sizes


def cell(side: Side, size, seconds: float, factor: float = 1.0) -> Cell:
    return Cell(side, size, Timing(side.name, (seconds,)), factor, cpu=seconds, how="so")


FOUND = Found(
    WINDOWS,
    [
        cell(OURS, ONE, 0.5),
        cell(SPARK, ONE, 1.0),
        cell(FLINK, ONE, 0.4),
        cell(FLINK_SCAN, ONE, 0.3),
        cell(OURS, MANY, 1.0),
        cell(SPARK, MANY, 60.0, 16),
        cell(FLINK, MANY, 13.0),
        cell(FLINK_SCAN, MANY, 2.0),
        cell(DUCKDB, MANY, 15.0),
        Cell(POLARS, MANY, None, reason="polars: out of memory"),
    ],
)


def test_the_table_has_ratios_to_muntin_and_tells_parts() -> None:
    rows = {row[0]: row[1:] for row in table(FOUND).rows}
    assert rows[OURS.name] == ("500 ms, 1.00×", "1,000 ms, 1.00×")
    assert rows[SPARK.name] == ("1,000 ms, 2.00×", "≈ 60,000 ms, 60×")
    assert rows[DUCKDB.name] == ("–", "15,000 ms, 15×")
    # What was measured in part is no timing to compare runs by.
    assert SPARK.name not in {timing.side for timing in table(FOUND).timed[1]}


def test_promises_are_about_the_nearest_peer_and_no_part_of_one() -> None:
    many, one = promises([FOUND])
    assert "Flink HOP" in many.promise
    assert (many.value, many.limit, many.met) == (13.0, 10.0, True)
    assert "Flink HOP at 1 query" in one.promise
    assert not one.met
    assert 0.79 < one.value < 0.81


def test_a_million_keys_are_near_the_best_by_hand() -> None:
    (groups,) = (each for each in questions(FULL) if each.name == "groups")
    size = next(each for each in groups.sizes if each.at == 1_000_000)
    others = [cell(DUCKDB_SLICES, size, 2.0), cell(POLARS_SLICES, size, 3.0)]
    (met,) = promises([Found(groups, [cell(OURS, size, 2.2), *others])])
    (missed,) = promises([Found(groups, [cell(OURS, size, 2.6), *others])])
    assert (met.met, missed.met) == (True, False)
    assert "DuckDB" in met.promise
    assert not list(promises([Found(groups, [cell(OURS, size, 2.2)])]))


def test_reasons_and_ways_are_told() -> None:
    section = left_out([FOUND], {"Bytewax": "cannot be installed"})
    assert section is not None
    assert section.rows == (
        ("Bytewax", "all", "cannot be installed"),
        ("polars", "windows, 3 queries", "polars: out of memory"),
    )
    assert left_out([], {}) is None
    told = {row[0]: row[2] for row in ways([FOUND]).rows}
    assert told[SPARK.name] == "windows 1 query; windows 3 queries (×16)"


def test_lines_have_a_point_a_size() -> None:
    assert plot(FOUND).lines[OURS.name] == ((1.0, 0.5), (3.0, 1.0))
    assert POLARS.name not in plot(FOUND).lines
