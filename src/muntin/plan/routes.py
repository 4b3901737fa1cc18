"""Row plans in buckets: which rows of a stream go where, and what each query is spread by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from muntin.expressions import Bound
from muntin.plan.nodes import SharedPlan
from muntin.plan.operators import RowFinal, RowPlan
from muntin.plan.relations import Relation


@dataclass(frozen=True)
class Feed:
    """The rows of one stream that some queries need, spread over buckets by a key.

    Attributes:
        name: What the leaves of the plan read; it says the stream, the key and the tables.
        stream: The stream.
        clock: The name that the plan has for the stream spread by the key, which has its W.
        key: The expressions whose values decide on the bucket; none sends all rows to the first.
        columns: The columns that are sent.
        reads: The columns of the stream that these come from.
        where: A row is sent if one of these holds, or fails; none sends all rows.
        relation: The tables that rows are joined with before they are sent, if any.
        queries: The queries that read it.
    """

    name: str
    stream: str
    clock: str
    key: tuple[Bound, ...]
    columns: tuple[str, ...]
    reads: tuple[str, ...]
    where: tuple[Bound, ...] = ()
    relation: Relation | None = None
    queries: tuple[str, ...] = ()


@dataclass(frozen=True)
class SplitGroup:
    """Streams whose rows meet by one key, of which hot keys may be split over several buckets.

    Attributes:
        name: What its queries join, and by what.
        clocks: The names that the plan has for its streams, each spread by its key.
        labels: The same as people know them.
        streams: The streams, in the order of FROM.
        lasting: For how many ticks a row of each may meet others.
        free: The places of those streams whose rows may be spread while all others are copied.
    """

    name: str
    clocks: tuple[str, ...]
    labels: tuple[str, ...]
    streams: tuple[str, ...]
    lasting: tuple[int, ...]
    free: tuple[int, ...]


@dataclass(frozen=True)
class RoutedPlan:
    """Row queries that run bucket by bucket.

    A row is sent once for each key that queries spread its stream by, however many queries need
    it. Rows that an operator of a query brings together are in one bucket, so the answer of the
    query is that of all buckets together.

    Attributes:
        asked: The queries, over streams.
        plan: The same queries over feeds.
        feeds: The feeds that they read, by name.
        spread: By query, what it is spread by; nothing where one bucket has all its rows.
        sides: By feed, the plan of the sides of joins that are aggregated without pairs.
        spanning: The aggregates over joins whose groups several buckets have rows of: what these
            have is merged before it is shown.
        groups: The streams whose hot keys may be split.
    """

    asked: RowPlan
    plan: RowPlan
    feeds: dict[str, Feed]
    spread: dict[str, tuple[str, ...]]
    sides: dict[str, SharedPlan] = field(default_factory=dict)
    spanning: frozenset[str] = frozenset()
    groups: tuple[SplitGroup, ...] = ()

    @property
    def names(self) -> set[str]:
        """The names of the queries that users asked for."""
        joined = {each.name for each in self.asked.joined}
        return joined | {each.name for each in self.finals}

    @property
    def met(self) -> set[str]:
        """The feeds whose rows meet others by a key, which is not their time alone."""
        found = set()
        for name, feed in self.feeds.items():
            read = {each for bound in feed.key for each in bound.columns}
            if read and read != {self.asked.streams[feed.stream].timeline.column}:
                found.add(name)
        return found | {name for name, feed in self.feeds.items() if feed.clock in self.labels}

    @property
    def labels(self) -> dict[str, str]:
        """What people know the streams as whose hot keys may be split, by their names here."""
        named = (zip(each.clocks, each.labels, strict=True) for each in self.groups)
        return {clock: label for each in named for clock, label in each}

    @property
    def tabled(self) -> set[str]:
        """The feeds whose rows are joined with tables."""
        return {name for name, feed in self.feeds.items() if feed.relation is not None}

    @property
    def finals(self) -> list[RowFinal]:
        """The row queries that users asked for: no rows that are only made to be aggregated."""
        made = {each.pairs for each in self.asked.joined}
        return [each for each in self.asked.finals if each.name not in made]

    def of_stream(self, stream: str) -> list[Feed]:
        """The feeds of a stream."""
        return [feed for feed in self.feeds.values() if feed.stream == stream]

    def of_number(self, stream: int) -> list[Feed]:
        """The feeds of a stream, given by its place among all."""
        return self.of_stream(list(self.asked.streams)[stream])

    def columns(self, stream: str) -> set[str]:
        """The columns of a stream that some feed reads."""
        return {name for feed in self.of_stream(stream) for name in feed.reads}

    def is_joined(self, table: str) -> bool:
        """Whether rows are joined with a table."""
        relations = [feed.relation for feed in self.feeds.values() if feed.relation is not None]
        return any(join.table == table for each in relations for join in each.joins)

    def explain(self, format: Literal["text", "json", "mermaid", "svg"] = "text") -> str:  # noqa: A002
        """Each query as a tree of operators, and what its rows are spread over buckets by."""
        from muntin.plan.explain.rows import explain_rows  # noqa: PLC0415 - it imports plan.operators

        return explain_rows(self.asked, format, self.spread, self.spanning)
