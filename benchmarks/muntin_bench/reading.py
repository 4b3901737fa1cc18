"""Reports read back from the files that benchmarks write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muntin.errors import MuntinError
from muntin_bench.conditions import Conditions
from muntin_bench.measure import Timing
from muntin_bench.report import Check, Plot, Report, Section

_NEEDED = ("name", "data", "machine", "versions", "timings", "sections", "checks", "plots")


class ReportError(MuntinError, ValueError):
    """A file that is not a report of a benchmark."""


def read_report(path: Path) -> Report:
    """The report in a JSON file that ``muntin bench`` wrote."""
    try:
        found = json.loads(path.read_text())
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise _refused(path, f"cannot be read: {reason}") from None
    except ValueError:
        raise _refused(path, "holds no JSON") from None
    if not isinstance(found, dict):
        raise _refused(path, "holds JSON, but no report")
    missing = [key for key in _NEEDED if key not in found]
    if missing:
        raise _refused(path, f"is no report of a benchmark: it has no {missing[0]!r}")
    try:
        return _report(found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _refused(path, f"is a damaged report: {type(error).__name__} {error}") from None


def _refused(path: Path, why: str) -> ReportError:
    return ReportError(
        f"{path} {why}", hint="give the NAME.json that muntin bench NAME has written"
    )


def _report(found: Mapping[str, Any]) -> Report:
    return Report(
        str(found["name"]),
        str(found["data"]),
        _timings(found["timings"]),
        tuple(map(_section, found["sections"])),
        tuple(map(_check, found["checks"])),
        tuple(map(_plot, found["plots"])),
        seeds=tuple(found.get("seeds", ())),
        failure=found.get("failure"),
        conditions=Conditions(
            {str(key): str(value) for key, value in found["machine"].items()},
            {str(key): str(value) for key, value in found["versions"].items()},
            bool(found.get("quick", False)),
            str(found.get("date", "")),
            float(found.get("seconds", 0.0)),
        ),
    )


def _timings(found: Any) -> tuple[Timing, ...]:
    return tuple(Timing(str(each["side"]), tuple(map(float, each["seconds"]))) for each in found)


def _section(found: Mapping[str, Any]) -> Section:
    return Section(
        str(found["title"]),
        tuple(found["columns"]),
        tuple(tuple(row) for row in found["rows"]),
        tuple(map(_timings, found.get("timed", ()))),
    )


def _check(found: Mapping[str, Any]) -> Check:
    return Check(
        str(found["promise"]),
        float(found["limit"]),
        float(found["value"]),
        str(found["unit"]),
        bool(found["least"]),
        found.get("low"),
        found.get("high"),
    )


def _plot(found: Mapping[str, Any]) -> Plot:
    lines = {
        str(name): tuple((float(across), float(up)) for across, up in points)
        for name, points in found["lines"].items()
    }
    name, title, across, up = (str(found[key]) for key in ("name", "title", "across", "up"))
    return Plot(name, title, across, up, lines)
