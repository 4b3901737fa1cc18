"""Seconds per operation on this machine: a short measurement, kept for later sessions."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from muntin.aggregates import Part, resolve
from muntin.aggregators import create
from muntin.optimizer.costs import TECHNIQUES, Technique, omega
from muntin.optimizer.weaving import Weaving

# What is kept has this form; a file of another one is measured anew.
FORMAT = 1
FILE = "machine-costs.json"

# Three windows that small and large trees have; partials and rows of one measurement.
RANGES = (4, 64, 256)
PARTIALS, ROWS, SLICES = 2**12, 2**17, 64
REPEATS = 5


@dataclass(frozen=True)
class MachineCosts:
    """Seconds that operations take.

    Attributes:
        row: To put one row into its slice.
        operations: For one final operation, by technique.
    """

    row: float
    operations: Mapping[str, float]

    def seconds(self, weaving: Weaving) -> float:
        """Seconds of work per time unit that a plan takes: below 1 a second, one core keeps up.

        >>> from muntin.optimizer.costs import WindowQuery
        >>> from muntin.optimizer.weaving import all_share
        >>> plan = all_share([WindowQuery(6, 2)], rate=10, technique="panes")
        >>> MachineCosts(row=0.01, operations={"panes": 0.1}).seconds(plan)
        0.25
        """
        partial = weaving.combined + sum(cost.partial for cost in weaving.costs)
        final = sum(cost.final for cost in weaving.costs)
        return partial * self.row + final * self.operations[weaving.technique]


def calibrate() -> MachineCosts:
    """Measure, in about a second once kernels are compiled.

    Rows and partials are doubles, summed exactly; SlickDeque (Non-Inv) takes their maximum.
    """
    return MachineCosts(
        row=_row(), operations={technique: _operation(technique) for technique in TECHNIQUES}
    )


def machine_costs(folder: Path | None) -> MachineCosts:
    """What was measured before and kept in a folder; else measured, and kept there if possible."""
    kept = _read(folder / FILE) if folder else None
    if kept is None:
        kept = calibrate()
        if folder:
            _write(folder, kept)
    return kept


def _row() -> float:
    # Columns bring compiled kernels, which planning does without.
    from muntin.aggregates.columns import empty  # noqa: PLC0415

    cells = np.repeat(np.arange(SLICES), ROWS // SLICES)
    values = pa.array(_values(ROWS))
    column = empty(Part("sum", (pa.float64(),)), SLICES)
    return _median_seconds(lambda: column.update(cells, (values,))) / ROWS


def _operation(technique: Technique) -> float:
    """Time over Ω, so that what Ω leaves out is in the constant."""
    name = "max" if technique == "slickdeque_noninv" else "sum"
    window = create(technique, resolve(name, [pa.float64()]), ranges=RANGES)
    values = _values(PARTIALS)
    seconds = _median_seconds(lambda: window.run(values))
    return seconds / (PARTIALS * omega(technique, RANGES, RANGES))


def _values(size: int) -> np.ndarray:
    return np.random.default_rng(7).random(size)


def _median_seconds(work: Callable[[], object]) -> float:
    work()
    taken = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def _read(path: Path) -> MachineCosts | None:
    try:
        kept = json.loads(path.read_text())
        row = float(kept["row"])
        operations: dict[str, float] = {
            technique: float(kept["operations"][technique]) for technique in TECHNIQUES
        }
    except (OSError, ValueError, KeyError, TypeError):
        return None
    sound = kept.get("format") == FORMAT and row > 0 and min(operations.values()) > 0
    return MachineCosts(row, operations) if sound else None


def _write(folder: Path, costs: MachineCosts) -> None:
    """Keep what was measured; another process sees the whole file or none."""
    text = json.dumps({"format": FORMAT, **asdict(costs)})
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, suffix=".tmp")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
            os.replace(name, folder / FILE)
        except OSError:
            Path(name).unlink(missing_ok=True)
