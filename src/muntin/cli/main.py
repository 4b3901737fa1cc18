"""The command ``muntin``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from muntin import __version__, bench
from muntin.cli.demo import show_demo
from muntin.errors import MuntinError
from muntin.spark import doctor

app = typer.Typer(
    help="Hundreds of sliding-window queries over one stream, in one shared pass.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
_console = Console()


def _print_version(wanted: bool) -> None:
    if wanted:
        _console.print(f"muntin {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Hundreds of sliding-window queries over one stream, in one shared pass."""


@app.command()
def demo(
    rows: Annotated[int, typer.Option(min=1, help="How many trades to make up.")] = 200_000,
    seed: Annotated[int, typer.Option(help="The same seed makes the same trades.")] = 7,
) -> None:
    """Answer a handful of queries over made-up trades, and show their plan and results.

    Example: muntin demo --rows 1000000
    """
    show_demo(_console, rows, seed)


@app.command(name="bench")
def bench_command(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(bench.NAMES)}.")],
    format_: Annotated[str, typer.Option("--format", help="text or json.")] = "text",
    output: Annotated[Path, typer.Option(help="The folder that JSON and plots go to.")] = Path(
        "bench-results"
    ),
) -> None:
    """Run a benchmark, print what it measured, as ratios, and save it with its plots.

    Example: muntin bench local --format json
    """
    report = bench.run(name)
    if format_ == "json":
        sys.stdout.write(report.to_json() + "\n")
    else:
        report.show(_console)
    for path in report.save(output):
        Console(stderr=True).print(f"wrote {path}", highlight=False)


@app.command(name="doctor")
def doctor_command(
    format_: Annotated[str, typer.Option("--format", help="text or json.")] = "text",
) -> None:
    """Check what Spark needs on this machine, and say how to get what is missing.

    Ends with 1 when Spark cannot run. Example: muntin doctor --format json
    """
    findings = doctor()
    if format_ == "json":
        sys.stdout.write(json.dumps(findings.to_json(), indent=2) + "\n")
    else:
        _console.print(str(findings), highlight=False, markup=False, soft_wrap=True)
    if not findings.ok:
        raise typer.Exit(1)


def main() -> None:
    """Run the command; mistakes of the user end in a message, not a stack trace."""
    try:
        app()
    except MuntinError as error:
        Console(stderr=True).print(f"[red]error:[/red] {error}", highlight=False)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
