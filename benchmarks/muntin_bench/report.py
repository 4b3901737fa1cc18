"""What a benchmark found, for people and for machines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from muntin_bench.conditions import Conditions, conditions
from muntin_bench.measure import Ratio, Timing


@dataclass(frozen=True)
class Section:
    """One table: the first column names a row, the others hold what was measured.

    `timed` are the runs behind its figures, in groups of sides that took turns; the first of a
    group is what the others are compared with.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    timed: tuple[tuple[Timing, ...], ...] = ()


@dataclass(frozen=True)
class Check:
    """A promise and what was measured: met if the value is at most the limit, or at least.

    `low` and `high` are what single runs gave, where the value is a median of several.
    """

    promise: str
    limit: float
    value: float
    unit: str = "×"
    least: bool = False
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, promise: str, limit: float, ratio: Ratio, *, least: bool = False) -> Check:
        """A promise about a measured ratio."""
        return cls(promise, limit, ratio.value, least=least, low=ratio.low, high=ratio.high)

    @property
    def met(self) -> bool:
        """Whether the promise held in this run."""
        return self.value >= self.limit if self.least else self.value <= self.limit

    @property
    def measured(self) -> str:
        """The value, and its range.

        >>> Check.of("fast", 2, Ratio(1.5, 1.25, 1.75)).measured
        '1.50× (1.25 to 1.75)'
        """
        value = f"{self.value:,.2f}{self.unit}"
        if self.low is None or self.high is None:
            return value
        return f"{value} ({self.low:,.2f} to {self.high:,.2f})"

    @property
    def bound(self) -> str:
        """The limit, in words."""
        return f"at {'least' if self.least else 'most'} {self.limit:,g}{self.unit}"


@dataclass(frozen=True)
class Plot:
    """Lines over one axis, both axes logarithmic."""

    name: str
    title: str
    across: str
    up: str
    lines: Mapping[str, tuple[tuple[float, float], ...]]


@dataclass(frozen=True)
class Report:
    """Timings of two or more sides with ratios to the first, and tables, promises and plots.

    `uses` are packages whose versions matter besides our own. `failure` says why there are no
    figures: most often, because answers differed. `conditions` are filled in by whoever ran it.
    """

    name: str
    data: str
    timings: tuple[Timing, ...] = ()
    sections: tuple[Section, ...] = ()
    checks: tuple[Check, ...] = ()
    plots: tuple[Plot, ...] = field(default=(), repr=False)
    seeds: tuple[int, ...] = ()
    uses: tuple[str, ...] = ()
    failure: str | None = None
    conditions: Conditions | None = None

    @property
    def tables(self) -> Iterator[Section]:
        """All tables, that of the timings first."""
        if self.timings:
            base = self.timings[0]
            rows = tuple(
                (timing.side, timing.milliseconds, str(timing.over(base)))
                for timing in self.timings
            )
            columns = ("side", "ms (fastest to slowest)", "ratio (range of the turns)")
            yield Section("times", columns, rows, (self.timings,))
        yield from self.sections

    def show(self, console: Console) -> None:
        """Print all tables."""
        from muntin_bench.terminal import show  # noqa: PLC0415 - it needs this module

        show(self, console)

    def to_json(self) -> str:
        """The same as JSON, with the machine, the versions and the seeds."""
        return json.dumps(self.to_dict(), indent=2)

    def to_dict(self) -> dict[str, Any]:
        """What :meth:`to_json` writes."""
        under = self.conditions or conditions(self.uses)
        return {
            "name": self.name,
            "data": self.data,
            **asdict(under),
            "seeds": list(self.seeds),
            "failure": self.failure,
            "timings": [_timing(timing) for timing in self.timings],
            "sections": [
                {
                    **asdict(section),
                    "timed": [[_timing(timing) for timing in group] for group in section.timed],
                }
                for section in self.sections
            ],
            "checks": [{**asdict(check), "met": check.met} for check in self.checks],
            "plots": [asdict(plot) for plot in self.plots],
        }

    def save(self, folder: Path) -> tuple[Path, ...]:
        """Write the JSON, and a PNG for each plot where matplotlib is there; returns the files."""
        from muntin_bench.plots import can_draw, draw  # noqa: PLC0415 - they need this module

        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        path.write_text(self.to_json() + "\n")
        plots = self.plots if can_draw() else ()
        return path, *(draw(plot, folder / f"{self.name}-{plot.name}.png") for plot in plots)


def _timing(timing: Timing) -> dict[str, Any]:
    return {
        "side": timing.side,
        "seconds": list(timing.seconds),
        "median": timing.median,
        "spread": timing.spread,
    }
