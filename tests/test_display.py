"""What people read about a run: in one line, in a notebook, and with the right plurals."""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

import muntin
from muntin import sinks
from muntin.cli.control import _listed
from muntin.engine import LocalEngine
from muntin.plan.explain.model import window_text
from muntin.planner import build_plan
from muntin.queries import queries
from muntin.spark.streaming.driver.progress import RunProgress
from muntin.windows import Window

SOURCES = Path(muntin.__file__).parent
ONE = RunProgress(
    rows=1,
    bad_rows=1,
    errors=Counter(q=1),
    is_active=True,
    queries=1,
    batches=1,
    results={"q": 1},
    seen=1_381_152_600_000_000,
    watermark=None,
    lag=3600.0,
    state_bytes=1,
    batch_rows=1,
    batch_seconds=0.5,
)


def test_one_of_each() -> None:
    assert str(ONE) == (
        "The stream runs: 1 query over 1 row in 1 batch, 1 row of results, the last batch took "
        "0.50 s (2 rows/s), 0 late and 1 bad row, 1 byte of state, 1 hour behind the clock"
    )


def test_two_of_each() -> None:
    two = replace(ONE, queries=2, rows=2000, batches=2, results={"q": 2}, is_active=False)
    assert str(two).startswith(
        "The stream has ended: 2 queries over 2,000 rows in 2 batches, 2 rows of results"
    )


@pytest.mark.parametrize(
    ("lag", "short", "sentence"),
    [
        (1.26, "1.3 s", "1 second behind the clock"),
        (90.0, "90 seconds", "90 seconds behind the clock"),
        (86_400.0, "1 day", "1 day behind the clock"),
        (86_401.0, "at 2013-10-07", "at event time 2013-10-07 13:30:00"),
        (413_756_869.0, "at 2013-10-07", "at event time 2013-10-07 13:30:00"),
        (-90_000.0, "at 2013-10-07", "at event time 2013-10-07 13:30:00"),
    ],
)
def test_a_lag_above_a_day_is_a_date(lag: float, short: str, sentence: str) -> None:
    progress = replace(ONE, lag=lag)
    assert progress.lag_text == short
    assert str(progress).endswith(sentence)


def test_times_that_are_numbers_have_no_lag() -> None:
    progress = replace(ONE, lag=None)
    assert progress.lag_text == "-"
    assert str(progress).endswith("1 byte of state")
    assert replace(ONE, lag=9e9, seen=10**18).lag_text.startswith("at 1,000,00")


def test_a_listed_stream_of_one_query() -> None:
    query = {"name": "total", "results": 1, "sinks": []}
    counts = {"rows": 1, "late_rows": 0, "bad_rows": 0}
    keep = {"name": "recent", "entries": 1, "bytes": 2048, "entries_per_row": 0.384, "errors": 2}
    stream = {"name": "trades", "queries": [query], "keeps": [keep], **counts}
    lines = _listed({"streams": [stream]})
    kept = "1 entry, 2,048 bytes, 0.38 entries per row, 2 failed values"
    assert lines[2] == f"  keep recent: {kept}"
    assert lines[0] == "stream trades: 1 query, 1 row, 0 late, 0 bad"
    assert "1 result  to screen" in lines[1]


def test_windows_of_one_row() -> None:
    assert window_text(Window(3, 1, measure="rows")) == "range 3 rows slide 1 row"


def test_notebooks_show_progress() -> None:
    shown = replace(ONE, errors={"q": 4})._repr_html_()
    assert "<p>The stream runs</p>" in shown
    assert "<tr><th>failed values</th><td>4</td></tr>" in shown
    assert "<tr><th>lag</th><td>1 hour</td></tr>" in shown
    schema = pa.schema({"ts": pa.int64(), "v": pa.int64()})
    engine = LocalEngine(
        build_plan(queries("SELECT sum(v) FROM s [RANGE 2 SLIDE 1]"), schema, "ts"), 0
    )
    engine.feed(pa.table({"ts": [1, 5], "v": [1, 1]}))
    told = engine.progress()._repr_html_()
    assert "<tr><th>rows</th><td>2</td></tr>" in told
    assert "<tr><th>watermark</th><td>5</td></tr>" in told


def test_notebooks_show_results(tmp_path: Path) -> None:
    sink = sinks.parquet(tmp_path / "<out>")
    sink.declare({"none": pa.schema({"n": pa.int64()})})
    sink.commit(0, sink.writer().write(0, 0, {"one": pa.table({"n": [1]})}))
    output = muntin.read(tmp_path / "<out>")
    assert repr(output).splitlines()[1:] == ["  none: 0 rows", "  one: 1 row"]
    shown = output._repr_html_()
    assert "&lt;out&gt;" in shown
    assert "<tr><th>one</th><td>1 row</td></tr>" in shown


NOUNS = r"(queries|batches|results)\b"


def test_numbers_of_queries_go_with_their_noun() -> None:
    """A number before "queries" may be 1: `muntin.display.count` writes both. Benchmarks aside."""
    found = []
    for path in SOURCES.rglob("*.py"):
        if "bench" in path.relative_to(SOURCES).parts:
            continue
        source = path.read_text()
        # Few modules have such a word where a part of a text begins; parsing all takes seconds.
        nodes = ast.walk(ast.parse(source)) if re.search(rf"""[}}"'] {NOUNS}""", source) else []
        for node in nodes:
            parts = node.values if isinstance(node, ast.JoinedStr) else []
            for value, text in pairwise(parts):
                follows = isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant)
                if follows and re.match(f" {NOUNS}", str(text.value)):
                    found.append(f"{path.name}:{node.lineno}")
    assert found == []
