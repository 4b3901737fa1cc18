"""What the pages say about a report besides its tables."""

from __future__ import annotations

from collections.abc import Iterator

from muntin_bench.report import Report

SUMMARY = ("benchmark", "promises met", "size", "date (UTC)", "took")
PROMISES = ("promise", "measured", "limit", "")


def summary(report: Report) -> tuple[str, ...]:
    """One row of the overview."""
    under = report.conditions
    if under is None:
        return report.name, verdict(report), "", "", ""
    minutes, seconds = divmod(round(under.seconds), 60)
    date = under.date.removesuffix("+00:00").replace("T", " ")
    return report.name, verdict(report), under.size, date, f"{minutes}:{seconds:02d}"


def verdict(report: Report) -> str:
    """Failed, or how many promises were met.

    >>> verdict(Report("tiny", "", failure="answers differ"))
    'failed'
    """
    if report.failure is not None:
        return "failed"
    if not report.checks:
        return "none made"
    return f"{sum(check.met for check in report.checks)} of {len(report.checks)}"


def facts(report: Report) -> Iterator[tuple[str, str]]:
    """What it was measured on, and with."""
    if report.data:
        yield "data", report.data
    under = report.conditions
    if under is not None:
        yield "machine", ", ".join(_machine(under.machine))
        yield "versions", ", ".join(f"{name} {each}" for name, each in under.versions.items())
    if report.seeds:
        yield "seeds", ", ".join(map(str, report.seeds))


def _machine(machine: dict[str, str]) -> Iterator[str]:
    for key, value in machine.items():
        yield f"{value} {key}" if key in ("cores", "memory") else f"{key} {value}"


def promises(report: Report) -> list[tuple[str, ...]]:
    """The rows of the table of promises."""
    return [
        (check.promise, check.measured, check.bound, "met" if check.met else "missed")
        for check in report.checks
    ]
