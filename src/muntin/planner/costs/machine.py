"""Seconds per operation on this machine: a short measurement, kept for later sessions."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import tempfile
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates import Part, resolve
from muntin.aggregators import create
from muntin.planner.costs.formula import TECHNIQUES, Technique, omega
from muntin.planner.trees.weaving import Weaving

# What is kept has this form; a file of another one is measured anew.
FORMAT = 2
FILE = "machine-costs.json"

# Windows of few and many queries, short and long, that the constants of a technique are fitted
# to; partials and rows of one measurement.
RANGES = (
    (1,),
    (4,),
    (200,),
    (3, 9),
    (30, 300),
    (2, 4, 8, 16),
    (5, 90, 500, 900),
    (*range(5, 120, 8),),
)
PARTIALS, ROWS, SLICES = 2**13, 2**17, 2**13
REPEATS = 5
_KEPT_BYTES = 2**24

# A technique and the ranges that it answers; rows into slices have a trial of their own.
Trial: TypeAlias = tuple[str, tuple[int, ...]]
ROW_TRIAL: Trial = ("row", ())
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class TechniqueCosts:
    """Seconds that the final answers of a tree take.

    Attributes:
        edge: For every edge of the tree, whoever asks.
        operation: For each of the Ω operations at an edge.
        answer: For each query at an edge, to hand its answer over.
    """

    edge: float
    operation: float
    answer: float

    def seconds(self, edges: float, omega_: float, queries: int) -> float:
        """What so many edges take.

        >>> TechniqueCosts(1.0, 0.5, 0.25).seconds(edges=2, omega_=4, queries=8)
        10.0
        """
        return edges * (self.edge + self.operation * omega_ + self.answer * queries)


@dataclass(frozen=True)
class MachineCosts:
    """Seconds that a plan's work takes.

    Attributes:
        row: To put one row into its slice.
        techniques: What final answers take, by technique.
    """

    row: float
    techniques: Mapping[str, TechniqueCosts]

    def seconds(self, weaving: Weaving) -> float:
        """Seconds of work per time unit that a plan takes: below 1 a second, one core keeps up.

        >>> from muntin.planner.costs.formula import WindowQuery
        >>> from muntin.planner.trees.weaving import all_share
        >>> plan = all_share([WindowQuery(6, 2)], rate=10, technique="panes")
        >>> MachineCosts(0.01, {"panes": TechniqueCosts(0.2, 0.1, 0.1)}).seconds(plan)
        0.4
        """
        costs = self.techniques[weaving.technique]
        partial = weaving.combined + sum(cost.partial for cost in weaving.costs)
        return partial * self.row + sum(
            costs.seconds(cost.edges, cost.omega, len(tree))
            for cost, tree in zip(weaving.costs, weaving.trees, strict=True)
        )


def calibrate() -> MachineCosts:
    """Measure, in about a second once kernels are compiled.

    Rows and partials are doubles, summed exactly; SlickDeque (Non-Inv) takes their maximum.
    """
    return costs_of(warm_seconds(trials(), REPEATS))


def trials() -> dict[Trial, Callable[[], object]]:
    """The work that constants are fitted to."""
    found = {ROW_TRIAL: _rows_into_slices()}
    for technique in TECHNIQUES:
        found |= {(technique, ranges): _slides(technique, ranges) for ranges in RANGES}
    return found


def costs_of(seconds: Mapping[Trial, float]) -> MachineCosts:
    """The constants that explain what the trials took."""
    techniques: dict[str, TechniqueCosts] = {}
    for technique in TECHNIQUES:
        counts = [(1.0, omega(technique, ranges, ranges), len(ranges)) for ranges in RANGES]
        each = [seconds[technique, ranges] / PARTIALS for ranges in RANGES]
        techniques[technique] = TechniqueCosts(*fitted(counts, each))
    return MachineCosts(seconds[ROW_TRIAL] / ROWS, techniques)


def warm_seconds(works: Mapping[Key, Callable[[], object]], repeats: int) -> dict[Key, float]:
    """Processor time of each work: the median of some rounds over all, in alternating order.

    In every round a work runs twice, and the second run counts. Trials take less than a
    millisecond; what else has run since their last round, a garbage collection above all, leaves
    the caches cold and would add as much again. Rounds spread over all works what else the
    machine does meanwhile.

    >>> sorted(warm_seconds({"one": lambda: 1, "two": lambda: 2}, repeats=1))
    ['one', 'two']
    """
    # An allocator that has freed a large block once keeps what is freed later. One that has not
    # gives every array of answers back to the system, whose fresh pages double what it takes.
    np.empty(_KEPT_BYTES, dtype=np.uint8)
    for work in works.values():
        work()
    taken: dict[Key, list[float]] = {key: [] for key in works}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for repeat in range(repeats):
            for key in list(works)[:: 1 if repeat % 2 == 0 else -1]:
                works[key]()
                begin = time.process_time()
                works[key]()
                taken[key].append(time.process_time() - begin)
    finally:
        if collecting:
            gc.enable()
    return {key: median(seconds) for key, seconds in taken.items()}


def machine_costs(folder: Path | None) -> MachineCosts:
    """What was measured before and kept in a folder; else measured, and kept there if possible."""
    kept = _read(folder / FILE) if folder else None
    if kept is None:
        kept = calibrate()
        if folder:
            _write(folder, kept)
    return kept


def fitted(counts: npt.ArrayLike, seconds: npt.ArrayLike) -> list[float]:
    """What each kind of work costs, at least 0, by least squares of relative errors.

    Args:
        counts: A line for each measurement, a column for each kind of work.
        seconds: What was measured.

    >>> [round(each, 6) for each in fitted([[1, 0], [1, 1], [2, 5]], [2.0, 3.0, 9.0])]
    [2.0, 1.0]
    """
    work: npt.NDArray[np.float64] = np.asarray(counts, dtype=np.float64)
    taken: npt.NDArray[np.float64] = np.asarray(seconds, dtype=np.float64)
    relative = work / taken[:, None]
    kept = list(range(work.shape[1]))
    while True:
        found = np.linalg.lstsq(relative[:, kept], np.ones(len(taken)), rcond=None)[0]
        if found.min() >= 0:
            break
        # What would cost less than nothing is no cause: the others explain it better alone.
        kept.pop(int(found.argmin()))
    costs = np.zeros(work.shape[1])
    costs[kept] = found
    return [float(cost) for cost in costs]


def _rows_into_slices() -> Callable[[], object]:
    # Columns bring compiled kernels, which planning does without.
    from muntin.aggregates.columns.by_part import empty  # noqa: PLC0415

    cells = np.repeat(np.arange(SLICES), ROWS // SLICES)
    values = pa.array(_values(ROWS))
    column = empty(Part("sum", (pa.float64(),)), SLICES)
    return lambda: column.update(cells, (values,))


def _slides(technique: Technique, ranges: tuple[int, ...]) -> Callable[[], object]:
    """From one slice to the next where all ranges are answered, `PARTIALS` times."""
    name = "max" if technique == "slickdeque_noninv" else "sum"
    window = create(technique, resolve(name, [pa.float64()]), ranges=ranges)
    values = _values(PARTIALS)
    return lambda: window.run(values)


def _values(size: int) -> npt.NDArray[np.float64]:
    return np.random.default_rng(7).random(size)


def _read(path: Path) -> MachineCosts | None:
    try:
        kept = json.loads(path.read_text())
        row = float(kept["row"])
        techniques: dict[str, TechniqueCosts] = {
            technique: TechniqueCosts(**kept["techniques"][technique]) for technique in TECHNIQUES
        }
        sound = kept["format"] == FORMAT and row > 0 and all(map(_sound, techniques.values()))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return MachineCosts(row, techniques) if sound else None


def _sound(costs: TechniqueCosts) -> bool:
    found = (costs.edge, costs.operation, costs.answer)
    return min(found) >= 0 and max(found) > 0


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
