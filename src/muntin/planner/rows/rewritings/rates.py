"""What is known of streams when a plan is made: how fast rows come, and what some look like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from muntin.expressions import Bound, Evaluator
from muntin.plan.operators import Windowed
from muntin.plan.timeline import Timeline

# Rows of a stream that are looked at.
SAMPLE = 8192


@dataclass(frozen=True)
class StreamRate:
    """A stream as far as it is known: rows per tick, and all its rows of a short time.

    Samples of several streams are to be of the same time: how often keys of one meet those of
    another is counted there.

    >>> rows = pa.table({"ts": [0, 10, 20, 30], "k": [1, 2, 1, None]})
    >>> StreamRate.of(rows, Timeline("ts", pa.int64())).rate
    0.1
    """

    rate: float
    sample: pa.Table
    _passing: dict[Bound, pa.Table] = field(default_factory=dict, compare=False, repr=False)
    _shares: dict[object, dict[Any, float]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, rows: pa.Table, timeline: Timeline, rate: float | None = None) -> Self | None:
        """What some rows of a stream tell; None if they do not say how fast they come."""
        if rate is None and rows.num_rows:
            begin, end = _span(rows, timeline)
            rate = (rows.num_rows - 1) / (end - begin) if end > begin else None
        return None if not rate or not rows.num_rows else cls(rate, rows)

    def passing(self, leaf: Windowed) -> float:
        """The share of rows that satisfy a leaf's condition: half a row of the sample at least."""
        return float(max(self._rows(leaf).num_rows, 0.5) / self.sample.num_rows)

    def shares(self, leaf: Windowed, columns: Sequence[Bound]) -> dict[Any, float]:
        """The values of some columns, and the share of a leaf's rows that has each.

        NULL equals nothing, and is not among them.
        """
        key = (leaf.where, *columns)
        if key not in self._shares:
            held = self._rows(leaf)
            found = [each.values.to_pylist() for each in Evaluator(columns)(held)]
            counts = Counter(zip(*found, strict=True) if found else [()] * held.num_rows)
            self._shares[key] = {
                value: count / held.num_rows for value, count in counts.items() if None not in value
            }
        return self._shares[key]

    def _rows(self, leaf: Windowed) -> pa.Table:
        """The rows of the sample that a leaf reads."""
        if leaf.where is None:
            return self.sample
        if leaf.where not in self._passing:
            (found,) = Evaluator([leaf.where])(self.sample)
            held = pc.fill_null(found.values, fill_value=False)
            self._passing[leaf.where] = self.sample.filter(held)
        return self._passing[leaf.where]


def rates_of(
    rows: Mapping[str, pa.Table], timelines: Mapping[str, Timeline], most: int = SAMPLE
) -> dict[str, StreamRate]:
    """What whole streams tell: samples are all rows of a time in their middle.

    It is so short that no stream has more than so many rows in it, if they came evenly.
    """
    known = {name: StreamRate.of(table, timelines[name]) for name, table in rows.items()}
    held = {name: each for name, each in known.items() if each is not None}
    if not held:
        return {}
    spans = [_span(rows[name], timelines[name]) for name in held]
    middle = (max(begin for begin, _ in spans) + min(end for _, end in spans)) // 2
    length = int(most / max(each.rate for each in held.values()))
    begin = middle - length // 2
    return {
        name: StreamRate(each.rate, part)
        for name, each in held.items()
        if (part := _between(rows[name], timelines[name], begin, begin + length)).num_rows
    }


def joint(rates: Iterable[Mapping[Any, float]]) -> float:
    """The chance that rows of several streams, one of each, have one key.

    >>> joint([{"a": 0.5, "b": 0.5}, {"a": 0.25, "c": 0.75}])
    0.125
    """
    first, *others = sorted(rates, key=len)
    total = 0.0
    for value, share in first.items():
        total += share * prod(other.get(value, 0.0) for other in others)
    return total


def _span(rows: pa.Table, timeline: Timeline) -> tuple[int, int]:
    bounds = pc.min_max(timeline.to_ticks(rows.column(timeline.column).combine_chunks()))
    return (bounds["min"].as_py() or 0, bounds["max"].as_py() or 0)


def _between(rows: pa.Table, timeline: Timeline, begin: int, end: int) -> pa.Table:
    ticks = timeline.to_ticks(rows.column(timeline.column).combine_chunks())
    return rows.filter(pc.and_(pc.greater_equal(ticks, begin), pc.less(ticks, end)))
