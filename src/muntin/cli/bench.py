"""``muntin bench``: benchmarks by name, their reports, and two reports side by side."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from muntin.cli.files import Output
from muntin.errors import MuntinError

if TYPE_CHECKING:
    from muntin_bench import Report
    from muntin_bench.compare import Comparison

_COMPARE = "compare"


def check_installed() -> None:
    """Say how to get the benchmarks where they are not installed: they are not in the wheel."""
    if find_spec("muntin_bench") is None:
        raise MuntinError(
            "the benchmarks are not installed",
            hint="run them from a checkout of Muntin: make bench, or pip install ./benchmarks",
        )


def _names() -> list[str]:
    if find_spec("muntin_bench") is None:
        return []
    from muntin_bench import REPORTS  # noqa: PLC0415 - the command line starts without it

    return [*REPORTS, "all", _COMPARE]


def bench(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="Benchmarks by name; all for all but peers; or compare OLD NEW.",
            autocompletion=_names,
            show_default=False,
        ),
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Measure less, in minutes.")] = False,
    format_: Annotated[Output, typer.Option("--format", help="text or json.")] = Output.TEXT,
    output: Annotated[Path, typer.Option(help="The folder that reports and plots go to.")] = Path(
        "bench-results"
    ),
) -> None:
    """Run benchmarks, print what they measured, as ratios, and write a report.

    Ends with 1 if answers differ, or if a promise broke from one report to the other.

    Example: muntin bench --quick all, then: muntin bench compare old/local.json new/local.json
    """
    check_installed()
    if names[0] == _COMPARE:
        _compare(names[1:], quick, format_)
    else:
        _run(names, quick, format_, output)


def _run(names: Sequence[str], quick: bool, format_: Output, output: Path) -> None:
    import muntin_bench as benchmarks  # noqa: PLC0415 - as above

    reports: list[Report] = []
    for name in benchmarks.chosen(names):
        report = benchmarks.attempt(name, quick=quick)
        reports.append(report)
        if format_ == Output.TEXT:
            report.show(Console())
        # Written one by one: whatever ends the command, what was measured is there.
        for path in report.save(output):
            _say(f"wrote {path}")
    if format_ == Output.JSON:
        found = [report.to_dict() for report in reports]
        _write(found[0] if len(found) == 1 else {"reports": found})
    _write_pages(output, reports)
    failed = [report for report in reports if report.failure is not None]
    if failed:
        raise MuntinError(
            f"{len(failed)} of {len(reports)} failed: "
            + "; ".join(f"{report.name}: {_first_line(report)}" for report in failed),
            hint=f"{output / 'report.md'} has all that is known about it",
        )


def _write_pages(output: Path, reports: Sequence[Report]) -> None:
    from muntin_bench import REPORTS  # noqa: PLC0415 - as above
    from muntin_bench.pages import write_pages  # noqa: PLC0415
    from muntin_bench.plots import INSTALL, can_draw  # noqa: PLC0415

    written, problems = write_pages(output, REPORTS)
    for path in written:
        _say(f"wrote {path}")
    for problem in problems:
        _say(f"left out: {problem.message}")
    if any(report.plots for report in reports) and not can_draw():
        _say(f"plots are left out, since they need matplotlib: {INSTALL}")


def _compare(files: Sequence[str], quick: bool, format_: Output) -> None:
    from muntin_bench.compare import compare_files  # noqa: PLC0415 - as above
    from muntin_bench.terminal import show_table  # noqa: PLC0415

    if len(files) != 2 or quick:
        raise MuntinError(
            "compare takes two reports, and no --quick",
            hint="muntin bench compare OLD.json NEW.json",
        )
    found = compare_files(*map(Path, files))
    if format_ == Output.JSON:
        _write({"comparisons": [each.to_dict() for each in found]})
    else:
        console = Console(highlight=False, soft_wrap=True, markup=False)
        for each in found:
            for section in each.tables():
                console.print(f"bench {each.name}: {section.title}")
                show_table(section, console)
            for note in each.notes:
                console.print(f"note: {note}")
    worse = [each for each in found if each.worse]
    if worse:
        raise MuntinError("; ".join(map(_what_is_worse, worse)))


def _what_is_worse(comparison: Comparison) -> str:
    if comparison.failure is not None:
        return f"{comparison.name} fails in the new report"
    broken = [each.promise for each in comparison.promises if each.broken]
    return f"{comparison.name} misses what it met: {'; '.join(broken)}"


def _first_line(report: Report) -> str:
    return (report.failure or "").partition("\n")[0]


def _write(found: object) -> None:
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


def _say(line: str) -> None:
    Console(stderr=True).print(line, highlight=False, markup=False, soft_wrap=True)
