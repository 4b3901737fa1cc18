"""Operations and space of the techniques: Tables 2, 3 and 4, counted.

"Algorithms and Optimizations for Incremental Window-Based Aggregations". Operations a slide are
counted by the techniques themselves as they run on random values, except for the worst step of
SlickDeque (Non-Inv), which takes falling values and then one above all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np
import pyarrow as pa

from muntin.aggregates import resolve
from muntin.aggregators import Aggregator, create
from muntin_bench.papers.claims import Claim, Part
from muntin_bench.report import Section

Formula = Callable[[int], float]
# What is counted may be so much above a formula, which is for large windows.
_SLACK = 1.05
_WORD = 8


@dataclass(frozen=True)
class Row:
    """A line of Table 4: operations per slide and partials kept, for a window of n partials.

    Where the text gives an exact number beside the table's order of growth, that number.
    """

    name: str
    technique: str
    aggregate: str
    amortised: Formula
    worst: Formula
    multi: Formula | None
    space: Formula


def _times(factor: float) -> Formula:
    return lambda n: factor * n


def _always(operations: float) -> Formula:
    return lambda _: operations


def _less_one(n: int) -> float:
    return n - 1


def _n_log_n(n: int) -> float:
    return n * log2(n)


def _all_ranges_of_a_tree(n: int) -> float:
    return n * log2(n) - 1.5 * n + 2.5 * log2(n) + 2.5


TABLE_4 = (
    Row("Panes", "panes", "max", _less_one, _less_one, lambda n: n * (n - 1) / 2, float),
    Row("Panes(Inv)", "panes_inv", "sum", _always(2), _always(2), None, float),
    Row("FlatFAT", "flatfat", "max", log2, log2, _all_ranges_of_a_tree, _times(2)),
    Row("B-Int", "bint", "max", log2, log2, _n_log_n, _times(2)),
    Row("FlatFIT", "flatfit", "max", _always(3), float, _times(3), _times(2)),
    Row("TwoStacks", "two_stacks", "max", _always(3), float, None, _times(2)),
    Row("DABA", "daba", "max", _always(5), _always(8), None, _times(2)),
    Row("SlickDeque(Inv)", "slickdeque_inv", "sum", _always(2), _always(2), _times(2), float),
    Row("SlickDeque(Non-Inv)", "slickdeque_noninv", "max", _always(2), float, float, _times(2)),
)


@dataclass(frozen=True)
class Counted:
    """What a technique did on a window of n partials."""

    row: Row
    n: int
    amortised: float
    worst: float
    multi: float | None
    space: float

    @property
    def beside(self) -> list[tuple[str, float, float]]:
        """What is compared, with the thesis's number and ours."""
        row, n = self.row, self.n
        found = [
            ("amortised", row.amortised(n), self.amortised),
            ("worst", row.worst(n), self.worst),
            ("space", row.space(n), self.space),
        ]
        if row.multi is not None and self.multi is not None:
            found.insert(2, ("every range", row.multi(n), self.multi))
        return found


def tables_2_to_4(sizes: Sequence[int]) -> Part:
    """All techniques on windows of some sizes, powers of two."""
    sections, claims = [], []
    for n in sizes:
        found = [count(row, n) for row in TABLE_4]
        columns = ("technique", "one range", "thesis", "worst slide", "thesis", "every range",
                   "thesis", "space of n more", "thesis")  # fmt: skip
        rows = tuple((each.row.name, *_cells(each)) for each in found)
        sections.append(
            Section(f"Tables 2 to 4: operations per slide and space, n = {n}", columns, rows)
        )
        claims += [_claim(each) for each in found]
    return Part(tuple(sections), tuple(claims))


def count(row: Row, n: int, seed: int = 0) -> Counted:
    """Slide random values through a full window one by one, and once with every range."""
    random = np.random.default_rng(seed).integers(-(10**6), 10**6, 6 * n + 1)
    single = _filled(row, [n], random[:n])
    before = single.operations
    worst = max(_step(single, random[i : i + 1]) for i in range(n, 5 * n))
    amortised = (single.operations - before) / (4 * n)
    multi = None
    if row.multi is not None:
        every = _filled(row, range(1, n + 1), random[: 2 * n])
        before = every.operations + every.steps
        every.run(random[2 * n : 4 * n])
        multi = (every.operations + every.steps - before) / (2 * n)
    if row.technique == "slickdeque_noninv":
        worst = _falling(row, n)
    # Headers are the same for all windows, so the space of n partials is what n more take.
    twice = _filled(row, [2 * n], random[: 2 * n])
    return Counted(row, n, amortised, worst, multi, (twice.nbytes - single.nbytes) / _WORD)


def _filled(row: Row, ranges: Sequence[int], values: np.ndarray) -> Aggregator:
    aggregator = create(row.technique, resolve(row.aggregate, [pa.int64()]), ranges)
    aggregator.run(values)
    return aggregator


def _step(aggregator: Aggregator, value: np.ndarray) -> int:
    before = aggregator.operations
    aggregator.run(value)
    return aggregator.operations - before


def _falling(row: Row, n: int) -> int:
    """Operations of the step that removes all but one of n partials, the oldest just expired."""
    return _step(_filled(row, [n], np.arange(2 * n, 0, -1)), np.array([3 * n]))


def _cells(found: Counted) -> list[str]:
    cells = [text for _, theirs, ours in found.beside for text in (f"{ours:.4g}", f"{theirs:.4g}")]
    if found.multi is None:
        cells[4:4] = ["-", "-"]
    return cells


def _claim(found: Counted) -> Claim:
    """Agrees if nothing is above the thesis's number, which is for the worst of inputs."""
    above = [what for what, theirs, ours in found.beside if ours > theirs * _SLACK + 1]
    where = "Tables 2 to 4" if "Slick" not in found.row.name else "Table 4"
    return Claim(
        where,
        f"{found.row.name}, n = {found.n}: operations and space",
        ", ".join(f"{theirs:.4g}" for _, theirs, _ in found.beside),
        ", ".join(f"{ours:.4g}" for *_, ours in found.beside)
        + (f"; above: {', '.join(above)}" if above else ""),
        not above,
    )
