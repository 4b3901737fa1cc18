"""A keep planned for its stream: what stage A makes of rows for it, on a grid of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import pyarrow as pa

from muntin.aggregates.columns.by_part import empty
from muntin.display import count
from muntin.engine.slices.key_table import KeyTable
from muntin.errors import QueryError
from muntin.expressions.tree import Column
from muntin.expressions.zones import UTC, Zone
from muntin.plan.nodes import Partials, SharedPlan
from muntin.plan.relations import Relation
from muntin.plan.selection import Cells
from muntin.plan.timeline import Timeline
from muntin.planner import build_plan
from muntin.predicates import Shape
from muntin.queries import Keep
from muntin.synopses.keeps.choice import synopsis_problem, with_gram
from muntin.synopses.shown_times import shower

# A keep's cells are listed, so that a question finds those it asks for at once.
MOST_CELLS = 1 << 16
# Slices by number, from the first to behind the last; and the ticks where they begin and end.
Stretch = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class Kept:
    """A keep and the plan of its slices: one set of partials that no query shares.

    So no query's slices are cut by it, and none of its own by a query.
    """

    keep: Keep
    plan: SharedPlan

    def __getstate__(self) -> dict[str, Any]:
        """What snapshots hold: the keep and its plan, and nothing that is made when asked."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def name(self) -> str:
        """The keep's name."""
        return self.keep.name

    @property
    def label(self) -> str:
        """What answers say they come from."""
        return f"keep {self.name}"

    @property
    def counted_as(self) -> str:
        """What values that fail in it are counted as; no query has such a name."""
        return f"keep {self.name}"

    @property
    def node(self) -> Partials:
        """The set of partials."""
        return self.plan.partials[0]

    @property
    def relation(self) -> Relation:
        """What the keep reads: the stream, or the stream joined with tables."""
        return self.plan.relations[self.node.relation]

    @property
    def shape(self) -> Shape:
        """The space of its cells."""
        assert isinstance(self.node.selection, Cells)
        return self.node.selection.shape

    @property
    def timeline(self) -> Timeline:
        """How times become ticks."""
        return self.plan.timeline

    @property
    def gram(self) -> int | None:
        """Where a TimeGram has its buckets among the accumulators."""
        return None if self.keep.synopsis != "timegram" else 1

    @cached_property
    def shown(self) -> Callable[[int | None], Any]:
        """What shows ticks as the time column does."""
        return shower(self.timeline)

    @cached_property
    def lengths(self) -> dict[tuple[str, bool], int]:
        """Lengths of windows in ticks as they were written, and whether as text."""
        return {}

    @cached_property
    def key_names(self) -> dict[str, int]:
        """Group columns that are columns of the input, by name: their places among the groups."""
        return {
            each.root.name: place
            for place, each in enumerate(self.node.grouping)
            if isinstance(each.root, Column)
        }

    @cached_property
    def key_schema(self) -> pa.Schema:
        """The group columns that are columns of the input."""
        return pa.schema([self.relation.schema.field(name) for name in self.key_names])

    @cached_property
    def span(self) -> int:
        """How long slices are kept, in ticks."""
        return self.keep.span

    @cached_property
    def _grid(self) -> tuple[int, int]:
        """Where slices begin, and how wide they are."""
        return self.keep.phase, self.keep.slide

    def slice_of(self, tick: int) -> int:
        """The number of the slice that holds a tick."""
        phase, slide = self._grid
        return (tick - phase) // slide

    def between(self, start: int, end: int) -> Stretch:
        """The slices that hold the ticks from one to before another."""
        phase, slide = self._grid
        first, last = (start - phase) // slide, (end - 1 - phase) // slide + 1
        return (first, last), (phase + first * slide, phase + last * slide)

    def floor(self, tick: int) -> int:
        """Where the slice that holds a tick begins."""
        phase, slide = self._grid
        return tick - (tick - phase) % slide

    def ceil(self, tick: int) -> int:
        """Where the first slice begins that does so at a tick or later."""
        phase, slide = self._grid
        return tick + (phase - tick) % slide

    def entry_bytes(self) -> int:
        """What one entry takes before values are seen: slice, group, cell and accumulators."""
        columns = [empty(each.part, 1) for each in self.node.accumulators]
        return 24 + sum(max(column.nbytes, 8) for column in columns)

    def explain(self) -> str:
        """What is known of it before rows are: how many entries there can be, and their size."""
        groups = " and group" if self.node.grouping else ""
        cells = f" of {count(self.shape.size, 'cell')}" if self.shape.size > 1 else ""
        slices = -(-self.keep.span // self.keep.slide)
        return (
            f"{self.keep}\n  at most {count(slices, 'slice')}{cells}, an entry for each{groups}"
            f" with rows, about {self.entry_bytes()} bytes"
        )


def plan_keep(
    keep: Keep,
    schema: pa.Schema,
    time: str,
    *,
    tables: Mapping[str, pa.Schema] | None = None,
    zone: Zone = UTC,
) -> Kept:
    """Bind a keep to the columns of its stream.

    Raises:
        QueryError: If a column is unknown, or what it keeps cannot be put together from slices.

    >>> from muntin.queries import keeps
    >>> (keep,) = keeps("CREATE KEEP k AS SELECT max(v) FROM s [RANGE 60 SLIDE 5] CUT (v > 7)")
    >>> kept = plan_keep(keep, pa.schema({"ts": pa.int64(), "v": pa.int64()}), "ts")
    >>> [str(each) for each in kept.node.accumulators], kept.shape.size
    (['count(*)', 'max(v)'], 3)
    """
    plan = build_plan([keep.grid], schema, time, tables=tables, zone=zone)
    node = keep.query.select[0].node if keep.query.select else keep.query.group_by[0].node
    selections = [each.selection for each in plan.partials]
    if len(selections) != 1 or not isinstance(selections[0], Cells):
        message = "this depends on the order of rows, or has more cells than can be told apart"
        hint = "leave out aggregates over ordered rows, or some of CUT and FILTER"
        raise QueryError([keep.problem(node, message, hint)])
    kept = Kept(keep, plan)
    if kept.shape.size > MOST_CELLS:
        cells = kept.shape.size
        message = f"CUT and FILTER make {cells:,} cells, but at most {MOST_CELLS:,} are allowed"
        raise QueryError([keep.problem(node, message, "leave out some of them")])
    trouble = synopsis_problem(keep.synopsis, plan)
    if trouble is not None:
        raise QueryError([keep.problem(node, *trouble)])
    if keep.buckets is not None:
        kept = Kept(keep, with_gram(plan, keep.buckets))
    for output, bound in zip(keep.query.group_by, kept.node.grouping, strict=True):
        if not KeyTable.takes(bound.type):
            message = f"a keep cannot be grouped by a {bound.type}"
            raise QueryError([keep.problem(output.node, message, "group by plain columns")])
    return kept
