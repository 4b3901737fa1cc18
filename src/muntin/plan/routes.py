"""Row plans in buckets: which rows of a stream go where, and what each query is spread by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from muntin.expressions import Bound
from muntin.plan.operators import RowPlan
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
    """

    asked: RowPlan
    plan: RowPlan
    feeds: dict[str, Feed]
    spread: dict[str, tuple[str, ...]]

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

        return explain_rows(self.asked, format, self.spread)
