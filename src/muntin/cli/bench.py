"""``muntin bench``: benchmarks by name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from muntin.cli.files import Output


def _names() -> list[str]:
    from muntin.bench import NAMES  # noqa: PLC0415 - the command line starts without it

    return list(NAMES)


def bench(
    name: Annotated[
        str, typer.Argument(help="The benchmark, for example local.", autocompletion=_names)
    ],
    format_: Annotated[Output, typer.Option("--format", help="text or json.")] = Output.TEXT,
    output: Annotated[Path, typer.Option(help="The folder that JSON and plots go to.")] = Path(
        "bench-results"
    ),
) -> None:
    """Run a benchmark, print what it measured, as ratios, and save it with its plots.

    Example: muntin bench local --format json
    """
    from muntin import bench as benchmarks  # noqa: PLC0415 - as above

    report = benchmarks.run(name)
    if format_ == Output.JSON:
        sys.stdout.write(report.to_json() + "\n")
    else:
        report.show(Console())
    for path in report.save(output):
        Console(stderr=True).print(f"wrote {path}", highlight=False)
