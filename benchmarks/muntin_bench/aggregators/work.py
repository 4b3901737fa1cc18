"""Windows at work for the benchmark of techniques: filled, checked and ready to be timed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates import ResolvedAggregate, resolve
from muntin.aggregators import Aggregator, create, legal

Values = npt.NDArray[Any]
# Longer streams are made by going over this one again.
STREAM = 1 << 20
_FILLED_BY_HAND = 1 << 12


@dataclass(frozen=True)
class Workload:
    """An aggregate, a seeded stream of its arguments, and techniques that take it."""

    name: str
    aggregate: ResolvedAggregate
    stream: Values
    techniques: tuple[str, ...]

    def take(self, start: int, count: int) -> Values:
        """Values of the stream, which goes round."""
        start %= len(self.stream)
        if start + count <= len(self.stream):
            return self.stream[start : start + count]
        return np.resize(np.roll(self.stream, -start), count)


def workloads(seed: int = 0, size: int = STREAM) -> dict[str, Workload]:
    """Sums and maxima of BIGINT, and sums of DOUBLE."""
    rng = np.random.default_rng(seed)
    whole, real = rng.integers(-(10**6), 10**6, size), rng.normal(100.0, 20.0, size)
    kinds = [
        ("sum", pa.int64(), whole),
        ("max", pa.int64(), whole),
        ("sum of doubles", pa.float64(), real),
    ]
    works = {}
    for name, kind, stream in kinds:
        aggregate = resolve(name.split()[0], [kind])
        works[name] = Workload(name, aggregate, stream, legal(aggregate))
    return works


def full(work: Workload, technique: str, window: int) -> Aggregator:
    """An aggregator whose window holds values of the stream."""
    aggregator = create(technique, work.aggregate, [window])
    if technique == "panes" and window > _FILLED_BY_HAND:
        # To slide the values in would take window² operations.
        aggregator.run(work.take(0, 1))
        fill_panes(aggregator, work, window)
        return aggregator
    for start in range(0, window + 1, STREAM):
        aggregator.run(work.take(start, min(STREAM, window + 1 - start)))
    return aggregator


def fill_panes(aggregator: Aggregator, work: Workload, window: int) -> None:
    """Put values into the ring of `panes`: extremes are kept as complemented codes."""
    values = work.take(0, window)
    aggregator.state.partials[:] = ~values if work.name == "max" else values


def check_answers(works: dict[str, Workload], windows: tuple[int, ...]) -> int:
    """Compare every technique with recomputation; returns how many answers were compared.

    Raises AssertionError at the first that differs.
    """
    compared = 0
    for work in works.values():
        for window in windows:
            values = work.take(0, 3 * window + 50)
            wanted = _recomputed(work, values, window)
            for technique in work.techniques:
                got = create(technique, work.aggregate, [window]).run(values)[:, 0]
                wrong = np.flatnonzero(np.asarray(got) != wanted)
                assert len(wrong) == 0, (
                    f"{technique} of {work.name}, window {window}, step {wrong[0]}: "
                    f"{got[wrong[0]]}, not {wanted[wrong[0]]}"
                )
                compared += len(got)
    return compared


def _recomputed(work: Workload, values: Values, window: int) -> Values:
    compute: Any = max if work.name == "max" else sum
    if values.dtype == np.float64:
        compute = math.fsum
    rows = values.tolist()
    return np.array([compute(rows[max(end - window, 0) : end]) for end in range(1, len(rows) + 1)])
