"""Queries whose answers are rows with lifetimes, as a tree of operators.

A row of a stream under ``[RANGE T]`` lives for ``[ts, ts + T)``. A result lives from the largest
time of its parts to the least of their ends, and the answer at an instant is the relational query
over the rows alive then. The label of an edge says how its rows come to an end, which decides what
an operator keeps and how a query can show its results.

Every node has a schema. Expressions of a node are bound to the schema of its input, keys are
places of columns in it. Column names of a schema are unique.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

import pyarrow as pa

from muntin.expressions import Bound
from muntin.plan.joined import JoinFinal
from muntin.plan.relations import Relation, TableJoin
from muntin.plan.timeline import Timeline
from muntin.queries import Query

# MON: results never end. WKS: all live equally long. WK: each end is known when a row is born.
# STR: some ends depend on rows to come.
Label = Literal["MON", "WKS", "WK", "STR"]

Keys: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Column:
    """A column of a node: its name, and its expression over the input's columns."""

    name: str
    value: Bound


@dataclass(frozen=True)
class Windowed:
    """The rows of one stream that satisfy a condition, each alive for ``range`` ticks.

    Without a range rows never end. The condition and the columns are bound to the stream's schema,
    or to that of the rows joined with tables, where there is a ``relation``. ``retroactive`` are
    the rows of a relation, not of a stream: they end when they are deleted.
    """

    stream: str
    range: int | None
    where: Bound | None
    columns: tuple[Column, ...]
    relation: Relation | None = None
    retroactive: bool = False

    @cached_property
    def feed(self) -> str:
        """What it reads: the stream, or the stream joined with tables."""
        if self.relation is None:
            return self.stream
        return f"{self.stream}{''.join(map(_joined, self.relation.joins))}"

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The columns of the stream that it needs, keys of tables among them, in order."""
        bounds = [each.value for each in self.columns]
        bounds += [] if self.where is None else [self.where]
        names = {name for each in bounds for name in each.columns}
        if self.relation is not None:
            joins = self.relation.joins
            names |= {name for join in joins for key, _ in join.keys for name in key.columns}
            tables = {f"{join.prefix}." for join in joins}
            names = {name for name in names if not any(map(name.startswith, tables))}
        return tuple(sorted(names))

    @cached_property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return pa.schema([pa.field(each.name, each.value.type) for each in self.columns])

    @property
    def label(self) -> Label:
        """How its rows end."""
        if self.retroactive:
            return "STR"
        return "MON" if self.range is None else "WKS"


def _joined(join: TableJoin) -> str:
    keys = " and ".join(f"{key.key} = {name}" for key, name in join.keys)
    return f" {join.kind} join {join.prefix} on {keys}"


@dataclass(frozen=True)
class Select:
    """Rows of the input that satisfy a condition, with columns computed from them."""

    input: Node
    where: Bound | None
    columns: tuple[Column, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return pa.schema([pa.field(each.name, each.value.type) for each in self.columns])

    @property
    def label(self) -> Label:
        """How its rows end."""
        return self.input.label


@dataclass(frozen=True)
class Join:
    """Combinations of one row of each input that are alive together and have equal keys.

    The columns are those of all inputs, one after the other. NULL equals nothing; NaN equals NaN,
    and -0.0 equals 0.0. ``residual`` is a further condition over these columns.
    """

    inputs: tuple[Node, ...]
    keys: tuple[Keys, ...]
    residual: Bound | None = None

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of all inputs."""
        return pa.schema([field for each in self.inputs for field in each.schema])

    @property
    def label(self) -> Label:
        """How its rows end."""
        labels = {each.label for each in self.inputs}
        if "STR" in labels:
            return "STR"
        return "MON" if labels == {"MON"} else "WK"


@dataclass(frozen=True)
class Exists:
    """Rows of the left input while a partner is alive on the right; ``negated``, while none is.

    ``residual`` is a condition over the columns of both. ``null_aware`` is the meaning of IN and
    NOT IN: then the first key is x on the left and y on the right, and a NULL is neither equal nor
    different; further keys say which right rows there are for a left one. ``whole`` keeps a left
    row only where it has no partner at any instant of its life, and all of that: EMIT UNMATCHED.
    """

    left: Node
    right: Node
    keys: tuple[Keys, Keys]
    residual: Bound | None = None
    negated: bool = False
    null_aware: bool = False
    whole: bool = False

    @property
    def schema(self) -> pa.Schema:
        """The columns of the left input."""
        return self.left.schema

    @property
    def label(self) -> Label:
        """How its rows end."""
        return "STR"


@dataclass(frozen=True)
class Distinct:
    """Each combination of values once, for as long as some row has it. NULLs are equal here."""

    input: Node

    @property
    def schema(self) -> pa.Schema:
        """The columns of the input."""
        return self.input.schema

    @property
    def label(self) -> Label:
        """How its rows end."""
        label = self.input.label
        return label if label in ("STR", "MON") else "WK"


@dataclass(frozen=True)
class Difference:
    """EXCEPT ALL, EXCEPT or INTERSECT of two inputs with the columns of the left.

    ``all`` is the bag difference: of a value that the left holds m times and the right n times,
    max(m - n, 0) left rows, the youngest. ``except`` and ``intersect`` show a value once, while
    the left holds it and the right does not, or does. NULLs are equal here.
    """

    left: Node
    right: Node
    kind: Literal["all", "except", "intersect"]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the left input."""
        return self.left.schema

    @property
    def label(self) -> Label:
        """How its rows end."""
        return "STR"


@dataclass(frozen=True)
class Union:
    """The rows of all inputs, with the columns of the first: UNION ALL."""

    inputs: tuple[Node, ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the first input."""
        return self.inputs[0].schema

    @property
    def label(self) -> Label:
        """How its rows end: equally long only where all windows have one length."""
        labels = {each.label for each in self.inputs}
        if len(labels) > 1:
            return "STR" if "STR" in labels else "WK"
        (label,) = labels
        same = len({_length(each) for each in self.inputs}) == 1
        return label if label != "WKS" or same else "WK"


Node: TypeAlias = Windowed | Select | Join | Exists | Distinct | Difference | Union


def _length(node: Node) -> int | None:
    """How long rows of a weakest edge live."""
    if isinstance(node, Windowed):
        return node.range
    if isinstance(node, Select):
        return _length(node.input)
    return _length(node.inputs[0]) if isinstance(node, Union) else None


@dataclass(frozen=True)
class Rewriting:
    """One way in which the operators of a query differ from how it was written, or do not.

    Attributes:
        rule: The name of the rule.
        what: What it did, or why it did nothing.
        applied: Whether it changed the plan.
        cost: Nanoseconds of CPU per tick of event time that the plan takes, as it is estimated;
            None where it was not weighed.
        instead: The same for what was not chosen.
    """

    rule: str
    what: str
    applied: bool = True
    cost: float | None = None
    instead: float | None = None


@dataclass(frozen=True)
class RowFinal:
    """How one query shows the rows of its root.

    Attributes:
        name: The query's name.
        root: The operator whose rows are shown.
        show: ``rows`` with lifetimes (without SLIDE), or with SLIDE the answer at each window end;
            ``istream`` and ``dstream``, what entered and left it since the instant before.
        output: ``append`` where ends are known when rows are born, or ``final`` (a row once its
            end is known) or ``changes`` ('+' and '-').
        slide: Ticks between window ends, if there is a SLIDE.
        phase: Window ends are at ``phase`` modulo ``slide``.
        range: The longest RANGE of the query, which ``window_start`` goes back by.
        restore: Show what lived only between two window ends once, at the next.
        internal: Results never end: ``valid_to`` is NULL.
        lasts: ``Wstream(...)[RANGE t]``: results live for ``t`` ticks, whatever their parts do.
        timeline: The type and zone of the times shown: that of the first stream in FROM.
        sql: The query as text, for ``explain`` and for what is written down.
        replicates: Whether hot keys may be split over several buckets.
        rewritings: How the operators differ from how the query was written, and what was weighed.
        written: The root as it was written, if it is another.
    """

    name: str
    root: Node
    timeline: Timeline
    show: Literal["rows", "istream", "dstream"] = "rows"
    output: Literal["append", "final", "changes"] = "append"
    slide: int | None = None
    phase: int = 0
    range: int | None = None
    restore: bool = False
    internal: bool = False
    lasts: int | None = None
    sql: str = ""
    replicates: bool = False
    rewritings: tuple[Rewriting, ...] = ()
    written: Node | None = None

    @cached_property
    def streams(self) -> frozenset[str]:
        """The streams that the query reads: it moves by the least watermark of these."""
        return frozenset(each.stream for each in leaves(self.root))

    @property
    def shown(self) -> Literal["windows", "append", "final", "changes"]:
        """How results reach a sink: ``windows`` and what entered or left, or by their lifetimes."""
        return self.output if self.slide is None and self.show == "rows" else "windows"

    @property
    def counts(self) -> bool:
        """Whether DISTINCT counts rows, to show a value for as long as it lasts, not in pieces."""
        return self.restore or self.shown in ("final", "changes")

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the results."""
        time = self.timeline.type
        if self.slide is not None:
            lead = [pa.field("window_start", time), pa.field("window_end", time)]
        elif self.show != "rows":
            lead = [pa.field("at", time)]
        else:
            lead = [pa.field("valid_from", time), pa.field("valid_to", time)]
            if self.output == "changes":
                lead = [pa.field("op", pa.string()), pa.field("at", time), *lead]
        return pa.schema([*lead, *self.root.schema])


def inputs(node: Node) -> tuple[Node, ...]:
    """The inputs of an operator, left to right."""
    if isinstance(node, Windowed):
        return ()
    if isinstance(node, Join | Union):
        return node.inputs
    if isinstance(node, Exists | Difference):
        return (node.left, node.right)
    return (node.input,)


def with_inputs(node: Node, below: tuple[Node, ...]) -> Node:
    """The same operator over other inputs, which have the columns that it needs."""
    if isinstance(node, Join | Union):
        return replace(node, inputs=below)
    if isinstance(node, Exists | Difference):
        return replace(node, left=below[0], right=below[1])
    return node if isinstance(node, Windowed) else replace(node, input=below[0])


def leaves(node: Node) -> tuple[Windowed, ...]:
    """The windowed streams below an operator, left to right."""
    return (
        (node,)
        if isinstance(node, Windowed)
        else tuple(leaf for each in inputs(node) for leaf in leaves(each))
    )


def has_distinct(node: Node) -> bool:
    """Whether values are shown once somewhere below."""
    return isinstance(node, Distinct) or any(has_distinct(each) for each in inputs(node))


def has_whole(node: Node) -> bool:
    """Whether some of its rows come once they have ended."""
    whole = isinstance(node, Exists) and node.whole
    return whole or any(has_whole(each) for each in inputs(node))


@dataclass(frozen=True)
class StreamSchema:
    """The columns of a stream, and which of them is its time.

    A retroactive relation has no time of its own: it changes by updates.
    """

    schema: pa.Schema
    timeline: Timeline
    retroactive: bool = False


@dataclass(frozen=True)
class RowPlan:
    """All queries over rows with lifetimes, and the streams they read by name.

    ``joined`` are the aggregates over such rows; where these aggregate the rows themselves, the
    query that makes them is among ``finals``.
    """

    streams: dict[str, StreamSchema]
    finals: tuple[RowFinal, ...]
    joined: tuple[JoinFinal, ...] = ()

    @property
    def sides(self) -> list[Query]:
        """The queries that answer the sides of joins, which run over single streams."""
        return [side.query for final in self.joined for side in final.sides]

    def explain(self, format: Literal["text", "json", "mermaid", "svg"] = "text") -> str:  # noqa: A002
        """Each query as a tree of operators: labels, what is kept and why, how it is shown."""
        from muntin.plan.explain.rows import explain_rows  # noqa: PLC0415 - it imports this module

        return explain_rows(self, format)
