"""What a plan is estimated to do, beside its queries alone: edges, and operations per second.

Operations are aggregations, counted as the engine counts its own: a row that goes into a set of
partials is one, a step of a running total over slices is one, what is read off it two. With
groups, those over slices are done for each group. Every row is taken to satisfy every predicate,
in the plan and for its queries alone. The form is that of the cost model of "Algorithms and
Optimizations for Incremental Window-Based Aggregations": rows by sets, and edges by what each
costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isfinite, lcm

from muntin.errors import MuntinError
from muntin.plan.nodes import Final, Partials, SharedPlan
from muntin.windows import TIME_LIMIT, EdgeClass, Window, edges_between, reduce_classes
from muntin.windows.edges import Slicing as SlicingName

SECOND = 1_000_000
HOUR = 3_600 * SECOND
PLAIN = 1_000
# Counting more edges than this would take longer than reading the plan.
COUNTED_EDGES = 100_000


@dataclass(frozen=True)
class EdgeRate:
    """Edges a tick; not exact where the edges of only part of the common period were counted."""

    rate: Fraction
    exact: bool = True


def edge_rate(classes: Sequence[EdgeClass]) -> EdgeRate:
    """The edges of all classes together, over their common period if that can be counted.

    >>> edge_rate([(15, 0), (15, 12), (9, 0), (9, 6)]).rate * 45
    Fraction(12, 1)
    """
    periods = {period for period, _ in classes}
    if len(periods) == 1:
        return EdgeRate(Fraction(len(classes), *periods))
    # A float, because the exact sum of many fractions has a huge denominator.
    density = sum(1 / period for period, _ in classes)
    period = lcm(*periods)
    exact = period <= min(COUNTED_EDGES / density, TIME_LIMIT)
    span = period if exact else min(int(COUNTED_EDGES / density) or 1, TIME_LIMIT)
    return EdgeRate(Fraction(len(edges_between(classes, 0, span)), span), exact)


def own_classes(window: Window, slicing: SlicingName) -> tuple[EdgeClass, ...]:
    """Where a window alone would be cut, by the slicing that the plan cuts by."""
    return reduce_classes(window.edge_classes(slicing))


def used(final: Final) -> list[int]:
    """The places of the accumulators a query needs, the count of rows among them."""
    return sorted({0} | {index for each in final.lowerings for index in each.accumulators})


class Costs:
    """The estimates of one plan; those a second need the rate of rows, or stay unknown."""

    def __init__(self, plan: SharedPlan, rate: float | None = None) -> None:
        self.plan = plan
        self.rate = None if rate is None else _checked(rate)
        self.edges = tuple(edge_rate(slicing.classes) for slicing in plan.slicings)
        self.combined = tuple(edge_rate(each.slicing.classes) for each in plan.combined)

    @cached_property
    def finals(self) -> tuple[tuple[int, ...], ...]:
        """For each set of partials the places of the queries that it serves directly."""
        found: list[list[int]] = [[] for _ in self.plan.partials]
        for place, final in enumerate(self.plan.finals):
            found[final.partials].append(place)
        return tuple(map(tuple, found))

    @cached_property
    def cut_for(self) -> tuple[tuple[str, ...], ...]:
        """For each slicing the queries whose windows it cuts, in order."""
        found: list[list[str]] = [[] for _ in self.plan.slicings]
        for final in self.plan.finals:
            found[self.plan.partials[final.partials].slicing].append(final.name)
        return tuple(map(tuple, found))

    @property
    def accumulators(self) -> tuple[int, int]:
        """How many accumulators a row updates, and how many for each query alone."""
        shared = sum(len(node.accumulators) for node in self._fed)
        return shared, sum(len(used(final)) for final in self.plan.finals)

    @property
    def fed(self) -> int:
        """Into how many sets of partials a row goes; the others are made of their entries."""
        return len(self._fed)

    @property
    def _fed(self) -> list[Partials]:
        combined = [each.node for each in self.plan.combined]
        return [*combined, *(node for node in self.plan.partials if node.is_fed)]

    def edges_per_hour(self) -> tuple[float, float]:
        """The edges in time of all sets of partials, and of all queries alone."""
        shared, alone = 0.0, 0.0
        for place, node in enumerate(self.plan.partials):
            slicing = self.plan.slicings[node.slicing]
            if slicing.measure == "time" and not slicing.timeline.plain:
                shared += float(self.edges[node.slicing].rate * HOUR)
                alone += self._own_edges(place, HOUR)
        return shared, alone

    def operations(self) -> tuple[float, float] | None:
        """Operations a second of the plan and of its queries alone, where they are known."""
        shared, alone = 0.0, 0.0
        for place in range(len(self.plan.partials)):
            own = self.of_partials(place)
            if own is not None:
                shared += own
                alone += self._alone(place)
        if shared and self.rate is not None:
            shared += float(self.rate) * len(self.plan.combined)
        return (shared, alone) if shared else None

    def without_seconds(self) -> tuple[str, ...]:
        """Time columns that count in units of their own, which say nothing of seconds."""
        plain = (each for each in self.plan.slicings if each.measure == "time")
        return tuple(dict.fromkeys(e.timeline.column for e in plain if e.timeline.plain))

    def of_partials(self, place: int) -> float | None:
        """Operations per second of one set of partials; None where ticks are not seconds."""
        node = self.plan.partials[place]
        ticks = self._ticks(place)
        if self.rate is None or ticks is None:
            return None
        edges = float(self.edges[node.slicing].rate * ticks)
        segments: set[tuple[int, tuple[int, ...]]] = set()
        predicates: set[int] = set()
        for index in self.finals[place]:
            final = self.plan.finals[index]
            read = (final.member, *(lowering.member for lowering in final.lowerings))
            segments.add((self.plan.families[index], read))
            predicates.update(read)
        steps = len(segments) + (2 * len(predicates) if node.selection.coded else 0)
        rows = float(self.rate) if node.is_fed else edges
        if node.combined is not None:
            rows = float(self.combined[node.combined].rate * ticks)
        return rows + edges * steps + 2 * self._windows(place, ticks)

    def _alone(self, place: int) -> float:
        ticks = self._ticks(place)
        assert self.rate is not None
        assert ticks is not None
        rows = float(self.rate) * len(self.finals[place])
        return rows + self._own_edges(place, ticks) + 2 * self._windows(place, ticks)

    def _windows(self, place: int, ticks: Fraction) -> float:
        """Windows of the queries served that end in so many ticks."""
        span = float(ticks)
        return sum(span / final.window.period for final in self.served(place))

    def _own_edges(self, place: int, ticks: Fraction | int) -> float:
        """The edges of the queries served, each alone: all of one window have one period."""
        span = float(ticks)
        own = (own_classes(final.window, self.plan.slicing) for final in self.served(place))
        return sum(span * len(classes) / classes[0][0] for classes in own)

    def served(self, place: int) -> list[Final]:
        """The queries that a set of partials serves directly."""
        return [self.plan.finals[index] for index in self.finals[place]]

    def _ticks(self, place: int) -> Fraction | None:
        """Ticks of a set's slicing in a second."""
        slicing = self.plan.slicings[self.plan.partials[place].slicing]
        if slicing.measure == "rows":
            return self.rate
        return None if slicing.timeline.plain else Fraction(SECOND)


def _checked(rate: float) -> Fraction:
    if isinstance(rate, bool) or not isinstance(rate, int | float | Fraction):
        raise MuntinError(f"rate is {rate!r}, not a number", hint="give rows per second, as 1000")
    if not isfinite(rate) or rate <= 0:
        raise MuntinError(f"rate must be above zero, not {rate!r}", hint="give rows per second")
    return Fraction(rate)
