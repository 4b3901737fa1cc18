"""Plans as Mermaid and SVG: nothing overlaps, and no text of a query is read as anything else."""

from __future__ import annotations

import re
from itertools import combinations
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest

from muntin.plan import SharedPlan
from muntin.plan.explain.svg_text import LETTER, cells, wrapped
from muntin.planner import build_plan
from muntin.queries import queries

SCHEMA = pa.schema({"ts": pa.timestamp("us"), "symbol": pa.string(), "v": pa.float64()})
SVG = "{http://www.w3.org/2000/svg}"
TAGS = {"svg", "title", "style", "rect", "path", "text", "circle"}
NODE = re.compile(r'  n\d+(?:\(\["([^"\n]*)"\]\)|\["([^"\n]*)"\]|\("([^"\n]*)"\))')
ARROW = re.compile(r"  n\d+ (?:-->|-\. rolled up \.->) n\d+")
HOSTILE = [
    "</text><script>alert(1)</script>",
    "\"quoted\" & 'single' <b>",
    "end; subgraph x[y]{z}|w| --> n0 %% style a fill:#fff;",
    "new\nline\ttab\x00\x1b[31m",
    "日本語 ﷺ 🪟 é \u202egnp",
    "]]> <!-- &#60; #60; #quot; `md` **b**",
]


def named(text: str) -> SharedPlan:
    quoted = text.replace("`", "``")
    literal = text.replace("\\", "\\\\").replace("'", "\\'")
    sql = (
        f"CREATE QUERY `end` AS SELECT sum(v) AS `{quoted}` FROM t [RANGE '9 min' SLIDE '4 min'] "
        f"WHERE symbol = '{literal}'"
    )
    return build_plan(queries(sql), SCHEMA, "ts")


def drawing(plan: SharedPlan) -> ET.Element:
    return ET.fromstring(plan.explain("svg", notes={0: HOSTILE}))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_are_only_text(text: str) -> None:
    plan = named(text)
    assert plan.finals[0].outputs[0].name == text
    for root in (drawing(plan), ET.fromstring(plan.picture())):
        assert {element.tag.removeprefix(SVG) for element in root.iter()} <= TAGS
        assert not any(
            key.startswith("on") or "href" in key for e in root.iter() for key in e.attrib
        )
    lines = plan.explain("mermaid", notes={0: HOSTILE}).splitlines()
    assert lines[0] == "flowchart LR"
    assert all(NODE.fullmatch(line) or ARROW.fullmatch(line) for line in lines[1:])
    assert len(plan.explain().splitlines()) == 7


def test_mermaid_labels_decode_to_what_they_stand_for() -> None:
    lines = named('a"b<c>&#d;').explain("mermaid").splitlines()
    label = next(group for group in NODE.fullmatch(lines[-4]).groups() if group)  # type: ignore[union-attr]
    decoded = re.sub(r"#(\d+);", lambda code: chr(int(code[1])), label)
    assert decoded.split("<br/>") == [
        "final end",
        "range 9 minutes slide 4 minutes",
        'gives a"b<c>&#d;',
    ]


def test_mermaid_stays_within_what_mermaid_reads() -> None:
    sql = "".join(
        f"CREATE QUERY q{i} AS SELECT sum(v) AS `{'<' * 99}`, max(v) AS m FROM t "
        f"[RANGE '9 min' SLIDE '4 min'] WHERE symbol = '{'&' * 99}{i}' GROUP BY `symbol`;"
        for i in range(60)
    )
    plan = build_plan(queries(sql), SCHEMA, "ts", strategy="unshared")
    shown = plan.explain("mermaid", notes={number: ["#" * 99] * 6 for number in range(60)})
    assert len(shown) < 50_000
    assert "and 36 more sets of partials" in shown


def many() -> SharedPlan:
    sql = "".join(
        f"CREATE QUERY q{i} AS SELECT {'symbol,' if i % 3 else ''} sum(v + {i}) AS s, max(v) AS m "
        f"FROM t [RANGE '{i + 5} min' SLIDE '{i % 4 + 1} min'] WHERE v > {i} "
        f"{'GROUP BY symbol' if i % 3 else ''};"
        for i in range(60)
    )
    return build_plan(queries(sql), SCHEMA, "ts", strategy="slices")


@pytest.mark.parametrize("plan", [*map(named, HOSTILE), many()], ids=str)
def test_boxes_do_not_overlap_and_hold_their_text(plan: SharedPlan) -> None:
    root = drawing(plan)
    boxes = [
        tuple(float(rect.get(key, 0)) for key in ("x", "y", "width", "height"))
        for rect in root.iter(f"{SVG}rect")
        if "box" in rect.get("class", "")
    ]
    for (x, y, wide, tall), (left, top, width, height) in combinations(boxes, 2):
        assert x + wide <= left or left + width <= x or y + tall <= top or top + height <= y
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    assert all(x + wide <= width and y + tall <= height for x, y, wide, tall in boxes)
    for text in root.iter(f"{SVG}text"):
        x, y = float(text.get("x", 0)), float(text.get("y", 0))
        end = x + cells(text.text or "") * LETTER
        inside = [b for b in boxes if b[0] <= x <= b[0] + b[2] and b[1] <= y <= b[1] + b[3]]
        assert end <= (inside[0][0] + inside[0][2] if inside else width)


def test_a_drawing_needs_nothing_from_elsewhere_and_has_two_palettes() -> None:
    shown = many().explain("svg")
    assert "prefers-color-scheme: dark" in shown
    assert re.findall(r"https?://[^\"]*", shown) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"@import|url\(|@font-face|<script|<image", shown)
    assert many()._repr_svg_() == shown


def test_text_is_wrapped_by_the_room_it_takes() -> None:
    assert wrapped("日本語", 4, 3) == ["日本", "語"]
    assert wrapped("a" * 10, 4, 2) == ["aaaa", "aaa…"]
    assert wrapped("", 4, 2) == [""]
