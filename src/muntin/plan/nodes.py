"""What a shared plan is made of: slicings, partials, and one final per query."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from muntin.aggregates import Part, ResolvedAggregate
from muntin.expressions import Bound
from muntin.plan.timeline import Timeline
from muntin.queries import Query
from muntin.windows import Window


@dataclass(frozen=True)
class Slicing:
    """How one attribute is cut: the union of the edges of all windows over it.

    ``measure`` is "time" (the timeline's ticks) or "rows" (positions in time order).
    ``classes`` are the distinct ``(period, phase)`` of all edges: windows with equal edges
    share them.
    """

    measure: str
    timeline: Timeline
    windows: tuple[Window, ...]
    classes: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Accumulator:
    """One part of an aggregate over bound arguments, on the rows its FILTER lets through."""

    part: Part
    args: tuple[Bound, ...]
    filter: Bound | None = None

    def __str__(self) -> str:
        args = ", ".join(arg.key for arg in self.args) or "*"
        suffix = f" filter ({self.filter.key})" if self.filter else ""
        return f"{self.part.kind}({args}){suffix}"


@dataclass(frozen=True)
class Partials:
    """Partial aggregates kept per slice and group, for the rows of one predicate.

    The first accumulator is always ``count(*)``: it says whether a window exists.
    """

    slicing: int
    grouping: tuple[Bound, ...]
    predicate: Bound | None
    accumulators: tuple[Accumulator, ...]


@dataclass(frozen=True)
class Lowering:
    """One aggregate call of a query, read off accumulators of its partials."""

    name: str
    aggregate: ResolvedAggregate
    args: tuple[Bound, ...]
    filter: Bound | None
    accumulators: tuple[int, ...]


@dataclass(frozen=True)
class OutputColumn:
    """A result column: its name, and its expression over groups and lowered aggregates."""

    name: str
    value: Bound


@dataclass(frozen=True)
class Final:
    """How one query's windows are assembled from partials and shown."""

    query: Query
    partials: int
    lowerings: tuple[Lowering, ...]
    outputs: tuple[OutputColumn, ...]
    having: Bound | None
    schema: pa.Schema

    @property
    def name(self) -> str:
        """The query's name."""
        return self.query.name

    @property
    def window(self) -> Window:
        """The query's window."""
        return self.query.window

    @property
    def commutative(self) -> bool:
        """Whether the order of rows makes no difference to any of the aggregates."""
        return all(lowering.aggregate.commutative for lowering in self.lowerings)


@dataclass(frozen=True, repr=False)
class SharedPlan:
    """All queries over one input: cut once, aggregated once, assembled for each."""

    source: pa.Schema
    timeline: Timeline
    slicings: tuple[Slicing, ...]
    partials: tuple[Partials, ...]
    finals: tuple[Final, ...]

    def expressions(self) -> tuple[Bound, ...]:
        """Every distinct expression that rows are evaluated for, in a stable order."""
        found: dict[str, Bound] = {}
        for node in self.partials:
            filters = [node.predicate, *(acc.filter for acc in node.accumulators)]
            args = [arg for acc in node.accumulators for arg in acc.args]
            for bound in [*node.grouping, *args, *filters]:
                if bound is not None:
                    found.setdefault(bound.key, bound)
        return tuple(found.values())

    def columns(self) -> list[str]:
        """The input columns that are read, in the order of the source."""
        read = {slicing.timeline.column for slicing in self.slicings} | {self.timeline.column}
        for bound in self.expressions():
            read |= bound.columns
        return [name for name in self.source.names if name in read]

    @property
    def ordered(self) -> bool:
        """Whether rows must come in time order: to count them, or to concatenate them."""
        by_rows = any(slicing.measure == "rows" for slicing in self.slicings)
        return by_rows or any(not final.commutative for final in self.finals)

    def __repr__(self) -> str:
        from muntin.plan.text import render_text  # noqa: PLC0415 - the printer imports this module

        return render_text(self)
