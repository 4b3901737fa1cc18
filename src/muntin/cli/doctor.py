"""``muntin doctor``: whether Spark can run here."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich.console import Console

from muntin.cli.files import Output


def doctor(
    format_: Annotated[Output, typer.Option("--format", help="text or json.")] = Output.TEXT,
) -> None:
    """Check what Spark needs on this machine, and say how to get what is missing.

    Ends with 1 when Spark cannot run. Example: muntin doctor --format json
    """
    from muntin import spark  # noqa: PLC0415 - the command line starts without it

    findings = spark.doctor()
    if format_ == Output.JSON:
        sys.stdout.write(json.dumps(findings.to_json(), indent=2) + "\n")
    else:
        Console().print(str(findings), highlight=False, markup=False, soft_wrap=True)
    if not findings.ok:
        raise typer.Exit(1)
