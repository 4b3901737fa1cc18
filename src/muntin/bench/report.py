"""What a benchmark found, for people and for machines."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from muntin.bench.measure import Timing

_WIDE = 240
_VERSIONS = ("muntin", "numba", "numpy", "polars", "pyarrow")


@dataclass(frozen=True)
class Section:
    """One table: the first column names a row, the others hold what was measured."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Check:
    """A promise and what was measured: met if the value is at most the limit, or at least."""

    promise: str
    limit: float
    value: float
    unit: str = "×"
    least: bool = False

    @property
    def met(self) -> bool:
        """Whether the promise held in this run."""
        return self.value >= self.limit if self.least else self.value <= self.limit


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
    """Timings of two or more sides with ratios to the first, and tables, promises and plots."""

    name: str
    data: str
    timings: tuple[Timing, ...] = ()
    sections: tuple[Section, ...] = ()
    checks: tuple[Check, ...] = ()
    plots: tuple[Plot, ...] = field(default=(), repr=False)

    def show(self, console: Console) -> None:
        """Print all tables."""
        if self.timings:
            console.print(self._timings())
        else:
            console.print(f"bench {self.name}: {self.data}", highlight=False)
        for section in self.sections:
            title = f"[bold]bench {self.name}: {section.title}[/bold]"
            console.print(title, highlight=False, soft_wrap=True)
            table = Table()
            for i, column in enumerate(section.columns):
                table.add_column(column, justify="left" if i == 0 else "right", no_wrap=True)
            for row in section.rows:
                table.add_row(*row)
            # Wider than a narrow terminal rather than cut off.
            shown, console.width = console.width, max(console.width, _WIDE)
            console.print(table, crop=False)
            console.width = shown
        for check in self.checks:
            verdict = "[green]met[/green]   " if check.met else "[red]missed[/red]"
            console.print(
                f"{verdict} {check.promise}: {check.value:.2f}{check.unit},"
                f" at {'least' if check.least else 'most'} {check.limit:g}{check.unit}",
                highlight=False,
                soft_wrap=True,
            )

    def _timings(self) -> Table:
        """Medians, spreads and ratios."""
        table = Table(title=f"bench {self.name}: {self.data}", title_justify="left")
        for column in ("side", "median", "spread", "ratio"):
            table.add_column(column, justify="left" if column == "side" else "right")
        base = self.timings[0].median
        for timing in self.timings:
            table.add_row(
                timing.side,
                f"{timing.median * 1e3:,.1f} ms",
                f"{timing.spread:.0%}",
                f"{timing.median / base:.2f}×",
            )
        return table

    def to_json(self) -> str:
        """The same as JSON, with the machine and the versions."""
        found: dict[str, Any] = {
            "name": self.name,
            "data": self.data,
            "machine": {"system": platform.platform(), "python": platform.python_version()},
            "versions": {name: version(name) for name in _VERSIONS},
            "timings": [
                {"side": timing.side, "seconds": timing.seconds} for timing in self.timings
            ],
            "sections": [asdict(section) for section in self.sections],
            "checks": [{**asdict(check), "met": check.met} for check in self.checks],
            "plots": [asdict(plot) for plot in self.plots],
        }
        return json.dumps(found, indent=2)

    def save(self, folder: Path) -> tuple[Path, ...]:
        """Write the JSON and a PNG for each plot; returns the files."""
        from muntin.bench.plots import draw  # noqa: PLC0415

        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        path.write_text(self.to_json() + "\n")
        return path, *(draw(plot, folder / f"{self.name}-{plot.name}.png") for plot in self.plots)
