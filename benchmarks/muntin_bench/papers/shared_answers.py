"""Many windows over one stream by TimeGram and OrderedSharing: Figures 3 to 6, 9 and 10.

The report has 1,000 tuples, uniform or Gaussian ones that mostly lie between -20 and 20, and 1 to 8
queries for the maximum over different windows. Naïve recomputes every query with every tuple; the
others work when they are asked, and a lookup asks one query. Ours goes on to 1,000 queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import process_time
from typing import Literal, Protocol

import numpy as np

from muntin._typing import Floats
from muntin.synopses.library import EqualBuckets, OrderedSharing, TimeGram
from muntin_bench.papers.claims import Claim, Part, at_least, at_most
from muntin_bench.report import Plot, Section

Values = Literal["uniform", "Gaussian"]
RATIOS = (1, 2, 5, 10, 50, 100)
FEW = (1, 2, 4, 8)
LONGEST = 1000
BUCKETS = 20
# Tuples for each lookup where queries are counted.
USUAL = 10


class _Way(Protocol):
    """What takes tuples in and answers a query, given as its window."""

    def insert(self, value: float, time: int) -> None: ...

    def answer(self, window: int) -> tuple[float, float]: ...


class _Naive:
    """Every query looks through its own window with every tuple."""

    def __init__(self, windows: Sequence[int]) -> None:
        self._windows = windows
        self._values = np.empty(0)
        self._size = 0
        self._answers: dict[int, float] = {}

    def insert(self, value: float, time: int) -> None:
        if self._size == len(self._values):
            self._values = np.concatenate([self._values, np.empty(max(self._size, 1024))])
        self._values[self._size] = value
        self._size += 1
        for window in self._windows:
            held = self._values[max(self._size - window, 0) : self._size]
            self._answers[window] = float(held.max())

    def answer(self, window: int) -> tuple[float, float]:
        return self._answers[window], self._answers[window]


class _Gram:
    def __init__(self, windows: Sequence[int]) -> None:
        self._gram = TimeGram(EqualBuckets(-20, 20, BUCKETS), max(windows))

    def insert(self, value: float, time: int) -> None:
        self._gram.insert(value, time)

    def answer(self, window: int) -> tuple[float, float]:
        found = self._gram.max(window)
        assert found is not None
        return found.low, found.high


class _Ordered:
    def __init__(self, windows: Sequence[int]) -> None:
        self._shared = OrderedSharing(windows)

    def insert(self, value: float, time: int) -> None:
        self._shared.insert(value, time)

    def answer(self, window: int) -> tuple[float, float]:
        found = self._shared.lookup(window)
        assert found is not None
        return found, found


NAIVE, GRAM, ORDERED = "Naïve", "TimeGram", "OrderedSharing"
WAYS: dict[str, Callable[[Sequence[int]], _Way]] = {NAIVE: _Naive, GRAM: _Gram, ORDERED: _Ordered}
Lines = Mapping[str, Sequence[float]]


def drawn(values: Values, rows: int) -> Floats:
    """Seeded values, those of a Gaussian mostly between -20 and 20."""
    random = np.random.default_rng(rows)
    if values == "uniform":
        return random.uniform(-20, 20, rows)
    return random.normal(0, 8, rows)


def windows_of(queries: int) -> list[int]:
    """Windows of different lengths up to the longest."""
    return sorted({max(LONGEST * place // queries, 1) for place in range(1, queries + 1)})


def milliseconds(way: str, values: Floats, queries: int, ratio: int, repeats: int) -> float:
    """Processor time of all tuples with a lookup after so many; answers are checked."""
    windows = windows_of(queries)
    asked = np.random.default_rng(queries).choice(windows, len(values)).tolist()
    best = float("inf")
    for _ in range(repeats):
        side = WAYS[way](windows)
        found: list[tuple[int, int, tuple[float, float]]] = []
        begin = process_time()
        for time, value in enumerate(values.tolist(), start=1):
            side.insert(value, time)
            if time % ratio == 0:
                found.append((time, asked[time - 1], side.answer(asked[time - 1])))
        best = min(best, process_time() - begin)
    for time, window, (low, high) in found:
        exact = float(values[max(time - window, 0) : time].max())
        assert low <= exact <= high, f"{way}: {exact} at {time} is not in [{low}, {high}]"
    return 1000 * best


def figures(rows: int, most: int, repeats: int) -> Part:
    """All of them: by tuples per lookup, and by queries, for both kinds of values."""
    many = [each for each in (16, 64, 256, 1000) if each <= most]
    counts = (*FEW, *many)
    sections: list[Section] = []
    plots: list[Plot] = []
    claims: list[Claim] = []
    by_kind: dict[Values, Lines] = {}
    kinds: tuple[tuple[Values, int, int, int], ...] = (("uniform", 3, 4, 9), ("Gaussian", 5, 6, 10))
    for kind, by_ratio, by_queries, ordered in kinds:
        values = drawn(kind, rows)
        ratios = {
            way: [milliseconds(way, values, FEW[-1], ratio, repeats) for ratio in RATIOS]
            for way in WAYS
        }
        queries = {
            way: [milliseconds(way, values, count, USUAL, repeats) for count in counts]
            for way in WAYS
        }
        by_kind[kind] = queries
        title = f"Figure {by_ratio}: {kind} values, by tuples per lookup, ms"
        both = f"Figures {by_queries}, {ordered}: {kind} values, by queries, ms"
        sections += [
            _section(title, "tuples per lookup", RATIOS, ratios),
            _section(both, "queries", counts, queries),
        ]
        plots += [
            _plot(f"report-{by_ratio}", title, "tuples per lookup", RATIOS, ratios),
            _plot(f"report-{by_queries}-{ordered}", both, "queries", counts, queries),
        ]
        claims += _claims(by_ratio, by_queries, ordered, ratios, queries)
    skewed, even = by_kind["Gaussian"][ORDERED], by_kind["uniform"][ORDERED]
    at = len(FEW) - 1
    claims.append(
        at_most("Figure 10", "skewed over uniform values, 8 queries", 1.1, skewed[at] / even[at])
    )
    return Part(tuple(sections), tuple(claims), tuple(plots))


def _claims(
    by_ratio: int, by_queries: int, ordered: int, ratios: Lines, queries: Lines
) -> list[Claim]:
    naive, gram = ratios[NAIVE], ratios[GRAM]
    eight = len(FEW) - 1
    claims = [
        at_most(f"Figure {by_ratio}", "Naïve: slowest over fastest ratio", 1.5,
                max(naive) / min(naive)),
        at_least(f"Figure {by_ratio}", "TimeGram: a lookup a tuple over one in a hundred", 1.2,
                 gram[0] / gram[-1]),
        at_least(f"Figure {by_queries}", "Naïve: 8 queries over 1", 4,
                 queries[NAIVE][eight] / queries[NAIVE][0]),
        at_most(f"Figure {by_queries}", "TimeGram: 8 queries over 1", 1.5,
                queries[GRAM][eight] / queries[GRAM][0]),
        at_most(f"Figure {ordered}", "OrderedSharing: 8 queries over 2", 1.5,
                queries[ORDERED][eight] / queries[ORDERED][1]),
    ]  # fmt: skip
    if len(queries[NAIVE]) > len(FEW):
        claims += [
            at_most("beyond the report", f"{way}: most queries over 8", 2,
                    queries[way][-1] / queries[way][eight])
            for way in (GRAM, ORDERED)
        ]  # fmt: skip
    return claims


def _section(title: str, across: str, values: Sequence[int], lines: Lines) -> Section:
    rows = tuple(
        (f"{value:,}", *(f"{line[place]:,.3g}" for line in lines.values()))
        for place, value in enumerate(values)
    )
    return Section(title, (across, *lines), rows)


def _plot(name: str, title: str, across: str, values: Sequence[int], lines: Lines) -> Plot:
    drawn_lines = {
        way: tuple(zip(map(float, values), line, strict=True)) for way, line in lines.items()
    }
    return Plot(name, title, across, "ms", drawn_lines)
