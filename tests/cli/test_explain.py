"""``muntin explain``, called in this process: `test_check` goes through the entry point."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from muntin.cli.main import app
from muntin.errors import MuntinError

W = "[RANGE '10 minutes' SLIDE '1 minute']"
ONE = f"""\
CREATE STREAM trades WITH (format = 'rate');
CREATE QUERY total AS SELECT sum(vol) AS v FROM trades {W};
CREATE QUERY mean AS SELECT avg(vol) AS v FROM trades {W};
"""
TWO = f"""{ONE}
CREATE STREAM others WITH (format = 'rate', seed = 2);
CREATE QUERY other AS SELECT max(price) AS top FROM others {W};
CREATE STREAM idle WITH (format = 'rate');
"""


def explain(path: Path, text: str, *arguments: str) -> str:
    file = path / "file.sql"
    file.write_text(text)
    done = CliRunner().invoke(app, ["explain", str(file), *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_text(tmp_path: Path) -> None:
    shown = explain(tmp_path, ONE)
    assert shown.startswith("SharedPlan  2 queries → 1 set of partials")
    assert "serve total mean" in shown
    filtered = explain(tmp_path, ONE.replace(f"{W};", f"{W} WHERE vol > 5;", 1))
    assert "in cells of vol (1 cut)" in filtered


def test_drawings(tmp_path: Path) -> None:
    assert explain(tmp_path, ONE, "--format", "mermaid").startswith("flowchart")
    assert ET.fromstring(explain(tmp_path, ONE, "--format", "svg")).tag.endswith("svg")


def test_json_by_stream(tmp_path: Path) -> None:
    plans = json.loads(explain(tmp_path, TWO, "--format", "json"))
    assert list(plans) == ["trades", "others"]
    assert plans["trades"]["facts"]["queries"] == 2


def test_several_streams(tmp_path: Path) -> None:
    shown = explain(tmp_path, TWO)
    assert "stream trades\nSharedPlan  2 queries" in shown
    assert "stream others\nSharedPlan  1 query" in shown
    assert "idle" not in shown
    assert explain(tmp_path, TWO, "--stream", "OTHERS").startswith("SharedPlan  1 query")
    with pytest.raises(MuntinError, match="--stream trades"):
        explain(tmp_path, TWO, "--format", "svg")
    with pytest.raises(MuntinError, match="did you mean others"):
        explain(tmp_path, TWO, "--stream", "other")
    with pytest.raises(MuntinError, match="no queries to explain"):
        explain(tmp_path, TWO, "--stream", "idle")


def test_a_stream_that_only_row_queries_read(tmp_path: Path) -> None:
    joined = (
        "CREATE QUERY both AS SELECT a.vol FROM trades [NOW] a JOIN idle [NOW] b ON a.vol = b.vol;"
    )
    with pytest.raises(
        MuntinError, match="stream idle is read by row queries only: both"
    ) as caught:
        explain(tmp_path, TWO + joined, "--stream", "IDLE")
    assert "leave out --stream" in str(caught.value.hint)


def test_columns_are_found_out_and_variables_set(tmp_path: Path) -> None:
    table = pa.table({"ts": pa.array([0], pa.timestamp("us", "UTC")), "vol": [1]})
    pq.write_table(table, tmp_path / "in.parquet")
    text = ONE.replace("'rate'", "'parquet', path = '${file}'")
    shown = explain(tmp_path, text, "--set", "file=in.parquet")
    assert shown.startswith("SharedPlan  2 queries")


def test_what_is_kept_is_explained(tmp_path: Path) -> None:
    keep = f"CREATE KEEP recent AS SELECT symbol, max(price) FROM trades {W} GROUP BY symbol;"
    text = explain(tmp_path, ONE + keep)
    assert "CREATE KEEP recent AS SELECT symbol" in text
    assert "at most 10 slices, an entry for each and group with rows, about" in text
    found = json.loads(explain(tmp_path, ONE + keep, "--format", "json"))
    assert [each["name"] for each in found["trades"]["keeps"]] == ["recent"]
