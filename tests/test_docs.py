"""Every code block of README and docs runs, and every aggregate is documented.

Blocks of ``python`` run here as they are, those of a page one after the other. Blocks of ``py``
need Spark, or time: tests/spark/test_docs.py runs them. Pages in docs/examples show parts of
programs in examples/: tests/test_examples.py runs those, and compares.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import polars as pl
import pytest
import typer.main

import muntin
import muntin_bench as bench
from code_blocks import PAGES, ROOT, Block, blocks
from muntin import aggregates, pipelines
from muntin.cli.main import app
from muntin.expressions.registry import functions
from muntin.testing import trades

DOCS = ROOT / "docs"
COMMANDS: dict[str, click.Command] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
TARGETS = set(re.findall(r"^([\w-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
# Shell that is not ours: it installs packages, sets secrets, and starts daemons of Spark's, which
# tests/spark/cluster.py starts in the same way.
SYSTEM = ("pip install ", "export ", "$SPARK_HOME/bin/spark-class ", "cd ")
EXAMPLE = ".venv/bin/python examples/"
RUN_HERE = [page for page in PAGES if page.parent != DOCS / "examples"]
# Pages with blocks that are no code: formulas, timelines (tests/test_semantics.py has each), and
# outputs that other tests compare or that differ from run to run.
QUOTED = {
    "architecture.md",
    "benchmarks.md",
    "how-sharing-is-decided.md",
    "joins.md",
    "plans.md",
    "semantics.md",
    "sql-files.md",
}


def named(block: Block) -> str:
    return str(block)


@pytest.mark.parametrize("page", RUN_HERE, ids=lambda page: page.name)
def test_python_on_the_page_runs(page: Path) -> None:
    scope: dict[str, object] = {}
    for block in blocks([page], "python"):
        printed = block.run(scope)
        assert block.output is None or block.output in printed, block


def test_no_block_is_in_another_language() -> None:
    """One that no test knows would not run."""
    known = {"python", "py", "sql", "sh", "text", ""}
    assert [str(block) for block in blocks() if block.language not in known] == []
    outputs = {block.output for block in blocks()}
    alone = [block for block in blocks(PAGES, "text", "") if block.code not in outputs]
    assert {block.page.name for block in alone} == QUOTED


@pytest.mark.parametrize("block", blocks(RUN_HERE, "sql"), ids=named)
def test_sql_is_sound(block: Block) -> None:
    """SQL files are read; single queries are answered. Guides to other systems import theirs."""
    if block.page.name.startswith("from-"):
        # tests/pipelines/test_importers.py compares these with what is imported.
        assert block.code.startswith(("-- Spark", "-- Flink", "-- Muntin"))
    elif "CREATE STREAM" in block.code:
        assert pipelines.read(block.code, {"folder": "/data", "broker": "localhost:9092"}).streams
    else:
        symbols = ["AAPL", "IBM", "MSFT"]
        tables = {
            "close": pl.DataFrame({"symbol": symbols, "cp": [1.0, 2.0, 3.0]}),
            "index": pl.DataFrame({"symbol": symbols, "r3000": [True, False, True]}),
        }
        assert muntin.aggregate(trades(500), block.code, time="ts", tables=tables).rows == 500


@pytest.mark.parametrize("block", blocks(PAGES, "sh"), ids=named)
def test_commands_are_those_there_are(block: Block) -> None:
    """Parsed, not run: tests/cli runs each command, and make test would run itself."""
    for line in block.code.splitlines():
        for command in line.partition("#")[0].split("&&"):
            words = shlex.split(command)
            if words[:1] == ["muntin"]:
                COMMANDS[words[1]].make_context(words[1], words[2:])
            elif words[:1] == ["make"]:
                assert words[1] in TARGETS
            elif command.startswith(EXAMPLE):
                assert (ROOT / words[1]).exists()
            else:
                assert not words or command.strip().startswith(SYSTEM), command


def test_a_benchmark_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block of benchmarks.md, over fewer trades."""
    from muntin_bench import local

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(local, "load_trades", lambda: ("few trades", trades(5000, seconds=9000)))
    (block,) = blocks([DOCS / "benchmarks.md"], "py")
    scope: dict[str, object] = {}
    block.run(scope)
    assert isinstance(scope["report"], bench.Report)
    assert (tmp_path / "results" / "local.json").exists()


@pytest.mark.parametrize("name", ["sinks", "engine", "pipelines", "spark", "testing", "windows"])
def test_packages_need_no_import_of_their_own(name: str) -> None:
    """Also where nothing else has imported them before."""
    code = f"import muntin; assert muntin.{name}.__name__ == 'muntin.{name}'"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert name in dir(muntin)


def test_what_the_pages_call_is_there() -> None:
    """Everything that is written as `muntin.something`, files aside."""
    text = " ".join(page.read_text() for page in PAGES)
    found = set(re.findall(r"\bmuntin\.([a-z]\w*)", text)) - {"json", "sql"}
    assert len(found) > 10
    # In a process of its own: here other tests have imported packages.
    code = f"import muntin; print([n for n in {sorted(found)} if not hasattr(muntin, n)])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_aggregate_is_documented() -> None:
    text = (DOCS / "aggregates.md").read_text()
    assert [name for name in aggregates.names() if f"`{name}" not in text] == []


def test_every_function_is_documented() -> None:
    text = (DOCS / "expressions.md").read_text()
    assert [name for name in functions() if f"`{name}`" not in text] == []
