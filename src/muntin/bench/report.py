"""What a benchmark found, for people and for machines."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from importlib.metadata import version

from rich.console import Console
from rich.table import Table

from muntin.bench.measure import Timing

_VERSIONS = ("muntin", "numba", "numpy", "polars", "pyarrow")


@dataclass(frozen=True)
class Report:
    """Timings of one benchmark; ratios are to the first side."""

    name: str
    data: str
    timings: tuple[Timing, ...]

    def show(self, console: Console) -> None:
        """Print a table of medians, spreads and ratios."""
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
        console.print(table)

    def to_json(self) -> str:
        """The same as JSON, with the machine and the versions."""
        return json.dumps(
            {
                "name": self.name,
                "data": self.data,
                "machine": {"system": platform.platform(), "python": platform.python_version()},
                "versions": {name: version(name) for name in _VERSIONS},
                "timings": [
                    {"side": timing.side, "seconds": timing.seconds} for timing in self.timings
                ],
            },
            indent=2,
        )
