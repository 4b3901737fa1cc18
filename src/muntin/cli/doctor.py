"""``muntin doctor``: whether Spark can run here; kernels and Spark's classes made ahead."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from muntin.cli.files import Output

if TYPE_CHECKING:
    from muntin.spark import Finding

# More of them would compile the same kernels side by side.
_PROCESSES = 2


def doctor(
    format_: Annotated[Output, typer.Option("--format", help="text or json.")] = Output.TEXT,
    warm: Annotated[
        bool,
        typer.Option("--warm", help="Also compile all kernels and record Spark's classes."),
    ] = False,
) -> None:
    """Check what Spark needs on this machine, and say how to get what is missing.

    Ends with 1 when Spark cannot run. Example: muntin doctor --format json
    """
    from muntin import spark  # noqa: PLC0415 - the command line starts without it

    findings = spark.doctor()
    if warm:
        can_run = findings.ok
        findings.append(_warmed())
        if can_run:
            findings.append(_recorded())
    if format_ == Output.JSON:
        sys.stdout.write(json.dumps(findings.to_json(), indent=2) + "\n")
    else:
        Console().print(str(findings), highlight=False, markup=False, soft_wrap=True)
    if not findings.ok:
        raise typer.Exit(1)


def _warmed() -> Finding:
    """Compile what first calls would; nobody is stopped by what cannot be compiled ahead."""
    from muntin.spark import Finding  # noqa: PLC0415 - as above
    from muntin.warm import KINDS, warm  # noqa: PLC0415 - as above

    console = Console(stderr=True)
    console.print("compiling kernels ahead: about a minute the first time, then some seconds")
    count = 0
    try:
        with console.status("starting") as status:
            for done, (kind, compiled) in enumerate(warm(min(os.cpu_count() or 1, _PROCESSES)), 1):
                count += compiled
                status.update(f"{kind}: {done} of {len(KINDS)}")
    except Exception as error:
        remedy = "nothing to do: kernels are compiled when they are first called"
        return Finding("compiled ahead", "warning", f"{type(error).__name__}: {error}", remedy)
    found = f"{count} kernels" if count else "every kernel is there"
    return Finding("compiled ahead", "ok", found)


def _recorded() -> Finding:
    """Record the classes that every session loads; a JVM starts without them, only slower."""
    from muntin.spark import Finding  # noqa: PLC0415 - as above
    from muntin.warm import record_classes  # noqa: PLC0415 - as above

    check = "classes recorded"
    try:
        with Console(stderr=True).status("recording Spark's classes"):
            is_recorded = record_classes()
    except Exception as error:
        remedy = "nothing to do: the first session that ends records them"
        return Finding(check, "warning", f"{type(error).__name__}: {error}", remedy)
    return Finding(check, "ok", "for later sessions" if is_recorded else "nothing to record")
