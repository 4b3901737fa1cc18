"""Aggregates over joined streams: what each side answers, and how answers are multiplied.

At a window's end the pairs of one key are all rows of one side's window times all rows of the
other's. So each side is an ordinary query, grouped by the key, whose answers are accumulators; per
key they are multiplied by the other sides' counts, and added over keys. Where that cannot be done,
the rows of the join are made and aggregated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import pyarrow as pa

from muntin.aggregates import ResolvedAggregate
from muntin.aggregates.kept import can_keep
from muntin.expressions import Bound
from muntin.plan.nodes import OutputColumn
from muntin.plan.timeline import Timeline
from muntin.queries import Query

Way = Literal["sides", "pairs"]


@dataclass(frozen=True)
class JoinSide:
    """One stream of a join, answered by a query of its own.

    Attributes:
        label: What the user's query calls the stream.
        stream: The stream's name.
        query: What is answered for each window, key and group of this side; its first column
            behind these counts rows, the others hold accumulators.
        schema: The columns of its answers.
        keys: The key, bound to these, in the types that sides are compared in.
        optional: Whether rows of the other sides are there without one of this: LEFT JOIN.
        spread: The key, bound to the rows of the stream, in the same types.
    """

    label: str
    stream: str
    query: Query
    schema: pa.Schema
    keys: tuple[Bound, ...]
    optional: bool = False
    spread: tuple[Bound, ...] = ()


@dataclass(frozen=True)
class JoinFactor:
    """One side's factor of a sum of products: its own sum, and its extremes where these matter.

    Attributes:
        side: The place of the side.
        aggregate: The sum that the side keeps.
        sums: The column of that side's answers that holds it.
        least: The column of the least value; empty where products cannot be too large.
        most: That of the greatest one.
    """

    side: int
    aggregate: ResolvedAggregate
    sums: str
    least: str = ""
    most: str = ""


@dataclass(frozen=True)
class JoinCall:
    """An aggregate of a join, read off accumulators of one side.

    Attributes:
        name: Its column once lowered.
        aggregate: The aggregate itself.
        args: Its arguments, bound to the rows of the join.
        filter: Its FILTER, bound alike.
        side: The place of the side that keeps its accumulators; None for ``count(*)``, and where
            rows of the join are aggregated.
        column: The column of that side's answers that holds them.
        times: The times, the latest of them, that ``first`` and ``last`` go by among rows.
        factors: The two sides of a sum of products, which is a product of sums.
    """

    name: str
    aggregate: ResolvedAggregate
    args: tuple[Bound, ...] = ()
    filter: Bound | None = None
    side: int | None = None
    column: str = ""
    times: tuple[Timeline, ...] = ()
    factors: tuple[JoinFactor, ...] = ()


@dataclass(frozen=True)
class JoinGroup:
    """A group column: its value over the rows of the join, or the side's column that holds it."""

    name: str
    value: Bound
    side: int | None = None
    column: str = ""


@dataclass(frozen=True)
class JoinFinal:
    """How one aggregate query over several streams is answered.

    Attributes:
        name: The query's name.
        way: ``sides`` are multiplied; or ``pairs``, the rows of the join, are made.
        why: What decided that, as a sentence.
        streams: The streams it reads: it moves by the least watermark of these.
        timeline: The type and zone of window bounds: that of the first stream.
        range: The longest RANGE, which ``window_start`` goes back by.
        slide: Ticks between window ends.
        phase: Window ends are at ``phase`` modulo ``slide``.
        bounds: The names of the window's start and end.
        emit_empty: Whether windows without rows give a row.
        sides: The sides that are multiplied.
        pairs: The name of the row query whose rows are aggregated, with that way.
        lived: Whether these rows come once, with their lifetimes; or at each window end.
        replicates: Whether hot keys may be split over several buckets.
        groups: The group columns.
        calls: The aggregates.
        outputs: The result columns over groups and lowered aggregates.
        having: The condition on result rows.
        rows: The columns of the rows of the join, of which ``args`` and ``groups`` name some.
    """

    name: str
    way: Way
    why: str
    streams: tuple[str, ...]
    timeline: Timeline
    range: int
    slide: int
    phase: int
    bounds: tuple[str, str]
    emit_empty: bool
    sides: tuple[JoinSide, ...]
    groups: tuple[JoinGroup, ...]
    calls: tuple[JoinCall, ...]
    outputs: tuple[OutputColumn, ...]
    having: Bound | None
    rows: pa.Schema
    pairs: str = ""
    lived: bool = False
    replicates: bool = False

    @property
    def by_key(self) -> bool:
        """Whether the key of a row follows from its group, so that a group has one key only."""
        keys = len(self.sides[0].keys) if self.sides else 0
        told = {
            each.column
            for each in self.groups
            if each.side is not None and not self.sides[each.side].optional
        }
        return not self.replicates and keys > 0 and told >= {f"k{place}" for place in range(keys)}

    @property
    def mergeable(self) -> bool:
        """Whether accumulators of some of its rows can be merged with those of others."""
        return all(can_keep(part) for call in self.calls for part in call.aggregate.parts)

    @cached_property
    def lowered(self) -> pa.Schema:
        """The columns of groups and lowered aggregates."""
        groups = [pa.field(each.name, each.value.type) for each in self.groups]
        return pa.schema([*groups, *(pa.field(c.name, c.aggregate.type) for c in self.calls)])

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the results."""
        lead = [pa.field(name, self.timeline.type) for name in self.bounds]
        return pa.schema([*lead, *(pa.field(one.name, one.value.type) for one in self.outputs)])


def by_owner(counts: Mapping[str, int]) -> Counter[str]:
    """Counts by query, those of sides and pairs with the user's query they answer for."""
    found: Counter[str] = Counter()
    for name, count in counts.items():
        found[owner(name)] += count
    return found


def owner(name: str) -> str:
    """The user's query that a query of a side, or of pairs, answers for.

    >>> owner("paid.o"), owner("paid")
    ('paid', 'paid')
    """
    return name.partition(".")[0]
