"""Groups: queries that cut the same edges, which every weaving merges first.

Queries with the same edges weave perfectly: one tree of them saves a pass over the stream and
adds no edge. What is left to decide is which groups share a tree, however many queries ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muntin._typing import Floats, Ints
from muntin.errors import WindowError
from muntin.planner.costs.formula import WindowQuery
from muntin.windows.edges import SLICINGS, EdgeClass


@dataclass(frozen=True, eq=False)
class Groups:
    """Queries by the edges they cut, in columns; groups in order of their first query.

    `member` gives each query its group. A group's edges are those of (period, first) and, unless
    second is -1, of (period, second). Unique windows lie side by side: those of group g from
    starts[g] to starts[g + 1]; `window` gives each query its own.
    """

    member: Ints
    window: Ints
    period: Ints
    first: Ints
    second: Ints
    starts: Ints
    ranges: Floats
    overlaps: Floats

    def __len__(self) -> int:
        return len(self.period)

    @property
    def rates(self) -> Floats:
        """Edges per time unit of each group."""
        return np.where(self.second < 0, 1.0, 2.0) / self.period

    @property
    def statistics(self) -> Floats:
        """Per group what Ω is estimated from: windows, Σ range/slide, Σ log₂ range, longest."""
        starts = self.starts[:-1]
        return np.column_stack(
            [
                np.diff(self.starts).astype(np.float64),
                np.add.reduceat(self.overlaps, starts),
                np.add.reduceat(np.log2(self.ranges), starts),
                np.maximum.reduceat(self.ranges, starts),
            ]
        )

    def classes(self, group: int) -> tuple[EdgeClass, ...]:
        """The edge classes of a group."""
        period, second = int(self.period[group]), int(self.second[group])
        end = (period, int(self.first[group]))
        return (end,) if second < 0 else (end, (period, second))

    def take(self, groups: Ints) -> Groups:
        """Some of the groups, without their queries."""
        windows = self.windows(groups)
        sizes = np.diff(self.starts)[groups]
        return Groups(
            member=np.empty(0, dtype=np.int64),
            window=np.empty(0, dtype=np.int64),
            period=self.period[groups],
            first=self.first[groups],
            second=self.second[groups],
            starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            ranges=self.ranges[windows],
            overlaps=self.overlaps[windows],
        )

    def windows(self, groups: Ints) -> Ints:
        """Where the unique windows of some groups lie."""
        return np.concatenate(
            [np.arange(self.starts[each], self.starts[each + 1]) for each in groups]
        )


def group_queries(queries: Sequence[WindowQuery]) -> Groups:
    """The groups of some queries.

    >>> groups = group_queries([WindowQuery(6, 2), WindowQuery(5, 2), WindowQuery(8, 2)])
    >>> groups.member.tolist(), groups.classes(1), groups.ranges.tolist()
    ([0, 1, 0], ((2, 0), (2, 1)), [6.0, 8.0, 5.0])
    """
    if not queries:
        raise WindowError("no queries to weave", hint="give at least one")
    columns = _columns(queries)
    period, first, second = _edges(*columns)
    member, heads = _numbered(period, first, second)
    window, chosen = _numbered(*columns)
    order = np.argsort(member[chosen], kind="stable")
    chosen = chosen[order]
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    sizes = np.bincount(member[chosen], minlength=len(heads))
    ranges, slides = columns[0][chosen], columns[1][chosen]
    return Groups(
        member=member,
        window=place[window],
        period=period[heads],
        first=first[heads],
        second=second[heads],
        starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        ranges=ranges.astype(np.float64),
        overlaps=ranges / slides,
    )


def _columns(queries: Sequence[WindowQuery]) -> tuple[Ints, Ints, Ints, Ints]:
    codes = {name: code for code, name in enumerate(SLICINGS)}
    size = len(queries)
    return (
        np.fromiter((query.range for query in queries), np.int64, size),
        np.fromiter((query.slide for query in queries), np.int64, size),
        np.fromiter((query.phase for query in queries), np.int64, size),
        np.fromiter((codes[query.slicing] for query in queries), np.int64, size),
    )


def _edges(ranges: Ints, slides: Ints, phases: Ints, codes: Ints) -> tuple[Ints, Ints, Ints]:
    """Period and one or two phases of each query's edges, as `edge_classes` has them."""
    panes, cutty = codes == SLICINGS.index("panes"), codes == SLICINGS.index("cutty")
    start = (phases - ranges) % slides
    period = np.where(panes, np.gcd(ranges, slides), slides)
    end = np.where(panes, phases % period, np.where(cutty, start, phases))
    other = np.where(panes | (start == end), -1, start)
    low = np.where(other < 0, end, np.minimum(end, other))
    return period, low, np.where(other < 0, -1, np.maximum(end, other))


def _numbered(*columns: Ints) -> tuple[Ints, Ints]:
    """Equal rows numbered by first appearance, and where each number first appears."""
    order = np.lexsort(columns[::-1])
    differs = np.zeros(len(order), dtype=bool)
    differs[0] = True
    for column in columns:
        differs[1:] |= np.diff(column[order]) != 0
    # The sort is stable, so the first of equal rows is the earliest.
    heads = order[differs]
    rank = np.empty(len(heads), dtype=np.int64)
    rank[np.argsort(heads)] = np.arange(len(heads))
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = rank[np.cumsum(differs) - 1]
    return numbers, np.sort(heads)
