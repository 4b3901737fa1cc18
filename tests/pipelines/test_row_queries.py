"""Row queries in SQL files: checked, explained and run over all streams that they connect."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from muntin import pipelines
from muntin.cli.main import app
from muntin.errors import MuntinError

STREAMS = """
CREATE STREAM orders (ts TIMESTAMP, id BIGINT, total DOUBLE)
  WITH (time = 'ts', format = 'parquet', path = 'orders');
CREATE STREAM payments (at TIMESTAMP, order_id INT, amount DOUBLE)
  WITH (time = 'at', format = 'parquet', path = 'payments');
"""
UNPAID = """
CREATE QUERY unpaid AS SELECT o.id FROM orders [RANGE '10 minutes'] o
  WHERE NOT EXISTS (SELECT 1 FROM payments [RANGE '1 hour'] p WHERE p.order_id = o.id);
"""
TOTAL = "CREATE QUERY total AS SELECT sum(total) FROM orders [RANGE '1 hour' SLIDE '1 hour'];\n"


def test_files_hold_row_queries_beside_aggregates() -> None:
    pipeline = pipelines.read(STREAMS + UNPAID + TOTAL)
    assert [query.name for query in pipeline.rows] == ["unpaid"]
    assert [query.name for query in pipeline.queries["orders"]] == ["total"]
    assert pipeline.row_plan().finals[0].streams == {"orders", "payments"}


def test_problems_have_their_place_in_the_file() -> None:
    with pytest.raises(pipelines.PipelineError) as caught:
        pipelines.read(STREAMS + UNPAID.replace("p.order_id", "p.order_di"))
    (problem,) = caught.value.problems
    assert (problem.line, problem.message) == (8, "no column order_di in p")
    with pytest.raises(pipelines.PipelineError, match="there is no stream payment"):
        pipelines.read(STREAMS + UNPAID.replace("FROM payments", "FROM payment"))


def test_a_stream_that_cannot_be_read_is_told_once() -> None:
    with pytest.raises(pipelines.PipelineError) as caught:
        pipelines.read(STREAMS.replace("time = 'at'", "time = 'att'") + UNPAID)
    assert [problem.line for problem in caught.value.problems] == [5]


def test_streams_that_a_query_connects_run_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = STREAMS.split(";", maxsplit=1)[0].replace("orders", "sent") + ";"
    pipeline = pipelines.read(STREAMS + other + UNPAID + TOTAL)
    together, alone = pipeline.runs()
    assert (together.name, alone.name) == ("orders+payments", "sent")
    assert [query.name for query in together.asked] == ["total", "unpaid"]
    with pytest.raises(pipelines.PipelineError, match="run together, and differ in on_error"):
        pipelines.read(STREAMS.replace("time = 'at'", "time = 'at', on_error = 'fail'") + UNPAID)
    # A checkpoint fixes which streams run together.
    (tmp_path / "streams" / "orders").mkdir(parents=True)
    monkeypatch.setattr("muntin.pipelines.runner.is_begun", lambda folder: folder.exists())
    with pytest.raises(MuntinError, match="the checkpoint is of orders"):
        pipelines.run(pipeline, tmp_path)


def test_a_live_table_takes_no_rows_that_have_ended() -> None:
    sink = "CREATE SINK live WITH (format = 'duckdb', path = 'live.duckdb', live = TRUE);\n"
    with pytest.raises(pipelines.PipelineError, match="unpaid shows a row once it has ended"):
        pipelines.read(STREAMS + sink + UNPAID)
    changes = UNPAID.replace("unpaid AS", "unpaid WITH (output = 'changes') AS")
    (found,) = pipelines.read(STREAMS + sink + changes).sinks
    assert found.options["live"]
    # Aggregates over such rows are windows, which go to any sink, with a plan of rows or without.
    paired = """CREATE QUERY both AS SELECT count(*) AS n
      FROM orders [RANGE '10 min' SLIDE '5 min'] o
      JOIN payments [RANGE '5 min'] p ON o.id = p.order_id;\n"""
    lived = """CREATE QUERY open AS SELECT count(*) AS n
      FROM orders [RANGE '10 min' SLIDE '5 min'] o
      WHERE NOT EXISTS (SELECT 1 FROM payments [RANGE '5 min'] p WHERE p.order_id = o.id);\n"""
    assert pipelines.read(STREAMS + sink + paired + lived).sinks[0].options["live"]


def test_check_and_explain(tmp_path: Path) -> None:
    file = tmp_path / "orders.sql"
    file.write_text(STREAMS + UNPAID + TOTAL)
    runner = CliRunner()
    checked = runner.invoke(app, ["check", str(file)])
    assert "2 streams, 2 queries, nothing wrong" in checked.output
    found = json.loads(runner.invoke(app, ["check", str(file), "--format", "json"]).output)
    assert found["row_queries"][0]["streams"] == ["orders", "payments"]
    explained = runner.invoke(app, ["explain", str(file)]).output
    assert "stream orders\nSharedPlan" in explained
    assert "row queries\nRowPlan  1 query over 2 streams" in explained
    found = json.loads(runner.invoke(app, ["explain", str(file), "--format", "json"]).output)
    assert list(found) == ["orders", "row queries"]
    file.write_text(STREAMS + UNPAID)
    assert runner.invoke(app, ["explain", str(file)]).output.startswith("RowPlan")
