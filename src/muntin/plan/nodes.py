"""What a shared plan is made of: slicings, partials, and one final per query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates import Part, ResolvedAggregate
from muntin.aggregates.caps import UNSAID, Guarantees
from muntin.aggregators.choice import Prefer
from muntin.expressions import Bound
from muntin.expressions.zones import UTC, Zone
from muntin.plan.relations import Relation
from muntin.plan.selection import Selection
from muntin.plan.timeline import Timeline
from muntin.queries import Query
from muntin.windows import DurationLike, Window
from muntin.windows.edges import Slicing as SlicingName

Strategy = Literal["unshared", "slices", "fragments", "shards", "cells"]
STRATEGIES: tuple[Strategy, ...] = ("unshared", "slices", "fragments", "shards", "cells")

# What windows cut: a measure, the timeline it is of, and the owner who shares the cuts.
Axis = tuple[str, Timeline, str]


@dataclass(frozen=True)
class Slicing:
    """How one attribute is cut: the union of the edges of all windows over it.

    ``measure`` is "time" (the timeline's ticks) or "rows" (positions in time order).
    ``classes`` are the distinct ``(period, phase)`` of all edges: windows with equal edges
    share them. ``owner`` tells slicings of one attribute apart, where a strategy has several.
    ``marks`` are the window ends that are no edges, in Cutty slicing only: a window that ends
    inside a slice takes the *head* of it, the rows up to its end.
    """

    measure: str
    timeline: Timeline
    windows: tuple[Window, ...]
    classes: tuple[tuple[int, int], ...]
    owner: str = ""
    marks: tuple[tuple[int, int], ...] = ()

    @property
    def identity(self) -> Axis:
        """What stays the same when windows come and go."""
        return self.measure, self.timeline, self.owner


@dataclass(frozen=True)
class Accumulator:
    """One part of an aggregate over bound arguments, on the rows its FILTER lets through.

    Where it ``is_spread``, its values lie in all of Spark's buckets, each in one, by their hash.
    """

    part: Part
    args: tuple[Bound, ...]
    filter: Bound | None = None
    is_spread: bool = False

    @property
    def plain(self) -> Accumulator:
        """The same values in one place."""
        return replace(self, is_spread=False) if self.is_spread else self

    def __str__(self) -> str:
        args = ", ".join(arg.key for arg in self.args) or "*"
        suffix = f" filter ({self.filter.key})" if self.filter else ""
        return f"{self.part.kind}({args}){suffix}{' by hash' if self.is_spread else ''}"


@dataclass(frozen=True)
class Partials:
    """Partial aggregates kept per slice and group, for the rows of one or more predicates.

    The first accumulator is always ``count(*)``: it says whether a window exists. ``number``
    stays the same while queries come and go. ``finer`` is the place of the partials of a finer
    grouping that are rolled up into these; ``combined`` the place, in ``SharedPlan.combined``, of
    those whose slices these are put together from; ``home`` the bucket of partials without groups.

    ``origin`` is the number of the partials in the plan before whose slices these begin with,
    where queries of one tree went over to several. ``twin`` is the place of partials with the
    same slices, groups and cells: rows go into those, and come from there. They take over the
    queries of these once no window reaches back to ``since``, the largest event time when that
    began.

    ``is_driven`` says that some query has structures of its own, which are fed with what is sealed.
    """

    number: int
    slicing: int
    relation: int
    grouping: tuple[Bound, ...]
    selection: Selection
    accumulators: tuple[Accumulator, ...]
    finer: int | None = None
    home: int | None = None
    origin: int | None = None
    twin: int | None = None
    since: int | None = None
    combined: int | None = None
    is_driven: bool = False

    @property
    def is_fed(self) -> bool:
        """Whether rows go into these partials, rather than entries of others."""
        return self.finer is None and self.twin is None and self.combined is None

    def home_in(self, buckets: int) -> int:
        """The one of so many buckets that partials without groups live in."""
        return (self.number if self.home is None else self.home) % buckets

    def place_of(self, accumulator: Accumulator) -> int:
        """The place of an accumulator, or of the one that has the same values."""
        known = self.accumulators
        return known.index(accumulator if accumulator in known else accumulator.plain)

    def bounds(self) -> tuple[Bound, ...]:
        """The expressions that rows are evaluated for."""
        arguments = [arg for each in self.accumulators for arg in each.args]
        filters = [each.filter for each in self.accumulators if each.filter is not None]
        return (*self.grouping, *self.selection.bounds, *arguments, *filters)


@dataclass(frozen=True)
class Combined:
    """Partials of a batch that rows go into once, and that feed the partials of several trees.

    ``slicing`` has the edges of all these trees. They are never kept: each tree takes what lies
    between two of its own edges, put together. TriWeave of "Algorithms and Optimizations for
    Incremental Window-Based Aggregations".
    """

    slicing: Slicing
    node: Partials


@dataclass(frozen=True)
class Technique:
    """How windows are made of the slices of one accumulator: by its registry name, and why.

    One that is a query's own goes over slices that the query's edges alone cut; otherwise one
    structure over the shared slices serves all queries.
    """

    name: str
    why: str
    is_own: bool = False


@dataclass(frozen=True)
class Lowering:
    """One aggregate call of a query, read off accumulators of its partials.

    ``member`` is the predicate of the selection that lets rows through to it.
    """

    name: str
    aggregate: ResolvedAggregate
    args: tuple[Bound, ...]
    filter: Bound | None
    accumulators: tuple[int, ...]
    member: int = 0


@dataclass(frozen=True)
class OutputColumn:
    """A result column: its name, and its expression over groups and lowered aggregates."""

    name: str
    value: Bound


@dataclass(frozen=True)
class Final:
    """How one query's windows are assembled from partials and shown.

    ``member`` is the place of its predicate in the partials' selection. ``techniques`` has those of
    each lowering, one for each of its accumulators.
    """

    query: Query
    predicate: Bound | None
    grouping: tuple[Bound, ...]
    partials: int
    lowerings: tuple[Lowering, ...]
    outputs: tuple[OutputColumn, ...]
    having: Bound | None
    schema: pa.Schema
    member: int = 0
    techniques: tuple[tuple[Technique, ...], ...] = ()

    def by(self, techniques: tuple[tuple[Technique, ...], ...]) -> Final:
        """The same, by these techniques."""
        return replace(self, techniques=techniques)

    @property
    def reads(self) -> list[tuple[int, int, Technique]]:
        """The accumulators that it reads, each with a predicate and by a technique."""
        return [
            (index, lowering.member, technique)
            for lowering, techniques in zip(self.lowerings, self.techniques, strict=True)
            for index, technique in zip(lowering.accumulators, techniques, strict=True)
        ]

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
    relations: tuple[Relation, ...]
    slicings: tuple[Slicing, ...]
    partials: tuple[Partials, ...]
    finals: tuple[Final, ...]
    strategy: Strategy = "cells"
    slicing: SlicingName = "pairs"
    why: str = ""  # what was weighed when it was decided who shares slices
    weighed: Weighed | None = None
    moves: tuple[Move, ...] = ()  # the last ones, in order
    zone: Zone = UTC  # of local times in expressions; windows are aligned in UTC
    combined: tuple[Combined, ...] = ()
    placement: str = ""  # who has placed the trees without groups on Spark's buckets
    technique: str | None = None  # of queries that name none themselves
    prefer: Prefer = "throughput"  # where queries do not say it themselves
    guarantees: Guarantees = UNSAID  # alike
    spreads: bool = False  # whether values of queries without groups lie in all buckets
    elsewhere: frozenset[str] = frozenset()  # queries that other buckets answer, in one's own plan

    def expressions(self, relation: int = 0) -> tuple[Bound, ...]:
        """Every distinct expression that rows of a relation are evaluated for, in order."""
        found: dict[str, Bound] = {}
        for node in self.partials:
            if node.relation == relation:
                for bound in node.bounds():
                    found.setdefault(bound.key, bound)
        return tuple(found.values())

    def columns(self) -> list[str]:
        """The input columns that are read, in the order of the source."""
        read = {slicing.timeline.column for slicing in self.slicings} | {self.timeline.column}
        for number, relation in enumerate(self.relations):
            keys = [key for join in relation.joins for key, _ in join.keys]
            for bound in (*self.expressions(number), *keys):
                read |= bound.columns
        return [name for name in self.source.names if name in read]

    def result_schema(self, final: Final) -> pa.Schema:
        """The columns of a query's results, before there are any."""
        timeline = self.slicings[self.partials[final.partials].slicing].timeline
        bounds = [pa.field(name, timeline.type) for name in final.query.bounds]
        return pa.schema([*bounds, *(pa.field(one.name, one.value.type) for one in final.outputs)])

    def is_joined(self, table: str) -> bool:
        """Whether a query joins a table; letter case makes no difference."""
        joins = (join for relation in self.relations for join in relation.joins)
        return any(join.table.lower() == table.lower() for join in joins)

    @cached_property
    def families(self) -> tuple[int, ...]:
        """A number for each final, the same for those that are answered together.

        Queries of a family read the same accumulators of one set of partials and show them
        alike; they differ in window and predicate. One that fills gaps stands alone.
        """
        numbers: dict[tuple[object, ...], int] = {}
        return tuple(numbers.setdefault(_pattern(each), len(numbers)) for each in self.finals)

    @cached_property
    def windows(self) -> npt.NDArray[np.int64]:
        """The range, slide and phase of every final's window, a row each."""
        listed = [(w.range, w.period, w.phase) for w in (each.window for each in self.finals)]
        return np.array(listed, np.int64).reshape(-1, 3)

    @cached_property
    def spread_queries(self) -> frozenset[str]:
        """The queries whose answers are put together from the values of all buckets."""
        kept = [node.accumulators for node in self.partials]
        return frozenset(
            final.name
            for final in self.finals
            if any(kept[final.partials][index].is_spread for index, _, _ in final.reads)
        )

    @property
    def techniques(self) -> set[str]:
        """The names of all techniques that answers are computed by."""
        return {technique.name for final in self.finals for _, _, technique in final.reads}

    @property
    def ordered(self) -> bool:
        """Whether rows must come in time order: to count them, or to concatenate them."""
        free = all(final.commutative for final in self.finals)
        return not free or any(slicing.measure == "rows" for slicing in self.slicings)

    def __getstate__(self) -> dict[str, object]:
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def explain(
        self,
        format: Literal["text", "json", "mermaid", "svg"] = "text",  # noqa: A002
        *,
        rate: float | None = None,
        notes: Mapping[int, Sequence[str]] | None = None,
    ) -> str:
        """What is shared, by whom, what that saves, and why.

        Args:
            format: "text", "json", "mermaid" or "svg".
            rate: Rows per second, if known: operations per second are then estimated.
            notes: Sentences to attach to sets of partials, by their number.
        """
        from muntin.plan.explain.formats import explain  # noqa: PLC0415 - it imports this module

        return explain(self, format, rate=rate, notes=notes)

    def picture(
        self,
        format: Literal["svg", "text"] = "svg",  # noqa: A002
        span: DurationLike | None = None,
    ) -> str:
        """The slices of the windows on a time axis, over a composite period or a ``span``."""
        from muntin.plan.explain.picture import picture  # noqa: PLC0415 - it imports this module

        return picture(self, format, span)

    def _repr_svg_(self) -> str:
        """What notebooks show."""
        return self.explain("svg")

    def __repr__(self) -> str:
        from muntin.plan.explain.formats import render_text  # noqa: PLC0415 - the printer imports this module

        return render_text(self)


def _pattern(final: Final) -> tuple[object, ...]:
    """What queries of a family have in common."""
    alone = final.name if final.query.emit_empty else None
    lowerings = tuple(
        (each.name, each.aggregate, each.accumulators, each.member == final.member)
        for each in final.lowerings
    )
    shown = tuple(output.value for output in final.outputs)
    columns = (tuple(final.schema.names), tuple(final.schema.types))
    # Reasons differ with the window.
    by = tuple([(each.name, each.is_own) for listed in final.techniques for each in listed])
    return final.partials, alone, lowerings, by, shown, final.having, columns


@dataclass(frozen=True)
class Weighed:
    """What an optimizer knew when it last weighed a whole plan.

    Attributes:
        rate: Rows per tick.
        cost: What the plan was estimated to cost, in operations per tick.
        changed: What queries that joined since then have added to the cost.
    """

    rate: float
    cost: float
    changed: float = 0.0


@dataclass(frozen=True)
class Move:
    """Queries that went over to another tree, and why.

    ``at`` is the largest event time of the rows that were cut by the trees before; None while
    the plan that moves them has not taken effect.
    """

    queries: tuple[str, ...]
    why: str
    at: int | None = None
