"""Slices on a time axis: the papers' figure, long periods, spans that are asked for."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest

from muntin.errors import MuntinError, WindowError
from muntin.plan import SharedPlan
from muntin.plan.explain.picture import SHOWN_EDGES, _axis
from muntin.planner import build_plan
from muntin.queries import queries

GOLDEN = Path(__file__).parent.parent / "golden"
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "seq": pa.int64(), "v": pa.float64()})
PAPER = """
CREATE QUERY u AS SELECT sum(v) FROM t [RANGE 18 SLIDE 15];
CREATE QUERY v AS SELECT sum(v) FROM t [RANGE 12 SLIDE 9];
"""
SVG = "{http://www.w3.org/2000/svg}"


def plan(sql: str, time: str = "ts", **options: object) -> SharedPlan:
    return build_plan(queries(sql), SCHEMA, time, **options)  # type: ignore[arg-type]


def every(*slides: str, range_: str = "1 h") -> SharedPlan:
    return plan("".join(f"SELECT sum(v) FROM t [RANGE '{range_}' SLIDE '{s}'];" for s in slides))


def test_the_papers_composition() -> None:
    """U(12, 3) and V(6, 3) of "On-the-Fly Sharing for Streamed Aggregation"."""
    shown = plan(PAPER, "seq").picture("text")
    assert shown == (
        "slices of seq\n"
        "  2 windows, a composite period of 45 with 12 edges\n"
        "\n"
        "18 / 15            ├───────────┼──┼───────────┼──┼───────────┼──┤\n"
        "  u\n"
        "12 / 9             ├─────┼──┼─────┼──┼─────┼──┼─────┼──┼─────┼──┤\n"
        "  v\n"
        "shared             ●─────┼──┼──┼──●──┼─────┼──●──┼──┼──┼─────●──●\n"
        "                   0     6  9  12    18    24    30    36  45 seq\n"
        "  ● an edge of several windows"
    )
    axis = _axis(plan(PAPER, "seq"), 0, None)
    assert [b - a for a, b in pairwise(axis.shared)] == [6, 3, 3, 3, 3, 6, 3, 3, 3, 3, 6, 3]
    assert axis.common == {0, 15, 27, 42, 45}


def test_the_drawing_is_as_stored() -> None:
    assert plan(PAPER, "seq").picture() == (GOLDEN / "picture_paper.svg").read_text()


@pytest.mark.parametrize("slicing", ["pairs", "panes", "cutty"])
def test_lines_are_the_slices_of_the_plan(slicing: str) -> None:
    axis = _axis(plan(PAPER, "seq", slicing=slicing), 0, None)
    assert set(axis.shared) == {edge for line in axis.lines for edge in line.edges}
    assert len(axis.shared) == {"panes": 16, "pairs": 13, "cutty": 7}[slicing]


def test_a_long_period_is_drawn_in_part_and_says_so() -> None:
    shown = every("7 min", "11 min", "13 min", "17 min", "19 min").picture("text")
    assert f"the first {_minutes(shown)} minutes, {SHOWN_EDGES + 1} edges" in shown
    assert "a composite period of 323323 minutes with" in shown
    primes = every(*(f"{n} ms" for n in (99_991, 99_989, 99_971)))
    for name in ("text", "svg"):
        shown = primes.picture(name)  # type: ignore[arg-type]
        assert "over 100,000 edges" in shown
        assert len(shown) < 60_000


def _minutes(shown: str) -> str:
    return shown.split("the first ")[1].split(" ", maxsplit=1)[0]


def test_a_span_is_drawn_where_its_unit_fits() -> None:
    both = plan(
        "SELECT sum(v) FROM t [RANGE '1 h' SLIDE '7 min']; SELECT sum(v) FROM t [ROWS 50 SLIDE 20];"
    )
    assert "the first 30 minutes" in both.picture("text", "30 minutes")
    assert "a composite period of 20 rows" in both.picture("text", "30 minutes")
    assert "the first 70 rows" in both.picture("text", 70)


def test_many_windows_and_slicings_are_counted() -> None:
    sql = "".join(f"SELECT sum(v) FROM t [RANGE '{n} min' SLIDE '{n} min'];" for n in range(1, 61))
    shared = plan(sql).picture("text")
    assert "not drawn by themselves: 48 more windows" in shared
    assert "a composite period beyond all times" in shared
    assert max(map(len, shared.splitlines())) <= 80
    apart = plan(sql, strategy="unshared")
    assert "56 slicings more not shown" in apart.picture("text")
    assert len(apart.picture()) < 60_000


def test_edges_closer_than_a_column_are_marked() -> None:
    shown = every("1 hour", "59 min").picture("text", "100 hours")
    assert "▒ edges closer than one column" in shown


def test_the_drawing_keeps_its_numbers_apart() -> None:
    for drawn in (every("7 min", "5 min", "3 min"), every("1 s", "1 day"), plan(PAPER, "seq")):
        root = ET.fromstring(drawn.picture())
        rows: dict[str, list[float]] = {}
        for text in root.iter(f"{SVG}text"):
            if text.get("text-anchor") == "middle":
                rows.setdefault(text.get("y", ""), []).append(float(text.get("x", 0)))
        assert rows
        assert all(b - a > 7 for places in rows.values() for a, b in pairwise(places))


@pytest.mark.parametrize("span", [0, "-1 hour", "1000 days"])
def test_a_span_that_cannot_be_drawn_is_refused(span: str) -> None:
    with pytest.raises(WindowError, match="span") as error:
        every("7 min").picture("text", span)
    assert error.value.hint


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(MuntinError, match="no format 'json'") as error:
        every("7 min").picture("json")  # type: ignore[arg-type]
    assert error.value.hint == "known names: svg, text"


def test_a_plan_without_queries_has_an_empty_picture() -> None:
    empty = build_plan([], SCHEMA, "ts")
    assert empty.picture("text") == ""
    assert ET.fromstring(empty.picture()).tag == f"{SVG}svg"
