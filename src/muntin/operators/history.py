"""The past of queries that join late: rows that operators of other queries still keep.

A query is whole from the instant on at which all rows alive have been seen. If nothing is kept of
the past, that is one longest RANGE after the latest row. Operators that run may keep the rows of
its windows, though: then the query takes these, and is whole earlier, often at once.

From when on is decided by plans and times alone, never by rows, so that all buckets of a stream and
all attempts at a batch agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from muntin._typing import Bools
from muntin.expressions import Bound, Evaluated
from muntin.operators.graph import Graph, Key, Step, Streams, is_eager
from muntin.operators.joins.shared_join import JoinStore, SharedJoin, store_key
from muntin.operators.joins.stores import shareable
from muntin.operators.rows import ALWAYS, NEVER, Changes, Rows, concat
from muntin.operators.select import derivable, derived, failures, truths
from muntin.plan.operators import (
    Exists,
    Join,
    Node,
    RowFinal,
    RowPlan,
    StreamSchema,
    Windowed,
    has_whole,
    inputs,
    leaves,
)

# Ids of rows that are taken from the past, above all that operators give themselves.
_PAST = 1 << 48
Times = Mapping[str, int]


@dataclass(frozen=True)
class Source:
    """The rows of one leaf that an operator keeps.

    Attributes:
        leaf: What it read them as.
        reach: The time from which on all are kept.
        lacks: Rows with a NULL in one of these are not kept.
        operator: Who keeps them.
        place: As which of its inputs.
    """

    leaf: Windowed
    reach: int
    lacks: frozenset[Bound]
    operator: Any
    place: int

    def serves(self, leaf: Windowed, needless: frozenset[Bound], stream: StreamSchema) -> bool:
        """Whether another leaf could take its rows from here.

        Args:
            leaf: Who asks.
            needless: Rows with a NULL in one of these mean nothing to who asks.
            stream: What both read.
        """
        own = self.leaf
        if leaf.feed != own.feed or leaf.relation != own.relation or not self.lacks <= needless:
            return False
        if own.where is not None and own.where != leaf.where:
            return False
        return derivable(self._asked(leaf), [each.value for each in own.columns], stream.timeline)

    def _asked(self, leaf: Windowed) -> list[Bound]:
        asked = [each.value for each in leaf.columns]
        judges = leaf.where is not None and self.leaf.where is None
        return [*asked, leaf.where] if judges and leaf.where is not None else asked

    def rows(self, leaf: Windowed, stream: StreamSchema) -> tuple[Rows, int]:
        """The rows that another leaf takes, and how many of its values failed."""
        asked = self._asked(leaf)
        parts, failed = [Rows.none(leaf.schema)], 0
        for held in self.operator.held(self.place):
            rows = held.where(held.start >= self.reach)
            known = dict(zip([c.value for c in self.leaf.columns], rows.columns, strict=True))
            found = derived(asked, known, stream.timeline, rows.start)
            columns = tuple(found[each.value].values for each in leaf.columns)
            end = np.minimum(rows.start + min(leaf.range or NEVER, NEVER), NEVER)
            taken = np.ones(len(rows), np.bool_)
            if len(asked) > len(leaf.columns):
                judged = found[asked[-1]]
                failed += failures(judged)
                taken = truths(judged.values)
            failed += sum(_failed(found[each.value], taken) for each in leaf.columns)
            parts.append(Rows(columns, rows.start, rows.start, end).where(taken))
        rows = concat(parts)
        return replace(rows, ids=np.arange(_PAST, _PAST + len(rows))), failed


def _failed(found: Evaluated, taken: Bools) -> int:
    """How often an expression failed, in those rows that were taken."""
    return 0 if found.errors is None else int(truths(found.errors)[taken].sum())


def sources(
    graph: Graph, seen: Mapping[str, Times], watermark: Callable[[Streams], int]
) -> Iterator[Source]:
    """All leaves whose rows some operator keeps.

    Args:
        graph: The operators that run.
        seen: By query, the largest time of each stream when it joined: its operators may lack
            rows up to that.
        watermark: The least watermark of some streams, by which rows were dropped.
    """
    for query, root in graph.roots.items():
        for number in sorted(graph.below(root)):
            step = graph.steps[number]
            holds = getattr(step.operator, "HOLDS", 0)
            for place, leaf in enumerate(inputs(step.node)[:holds]):
                if isinstance(leaf, Windowed):
                    begun = seen[query].get(leaf.stream, ALWAYS)
                    dropped = _dropped(step, place, leaf, watermark)
                    lacks = _needless(step.node, place)
                    reach = max(begun, dropped) + 1 if max(begun, dropped) > ALWAYS else ALWAYS
                    yield Source(leaf, reach, lacks, step.operator, place)


def _dropped(step: Step, place: int, leaf: Windowed, watermark: Callable[[Streams], int]) -> int:
    """The last time of which rows may be gone: those have met all that they could meet.

    A store that joins share keeps rows for the longest of their windows, but it may not have done
    so for long: what counts is the window of this leaf.
    """
    bound = min(watermark(streams) for i, streams in enumerate(step.clocks) if i != place)
    return ALWAYS if leaf.range is None or bound == ALWAYS else max(bound - leaf.range, ALWAYS)


def _needless(node: Node, place: int) -> frozenset[Bound]:
    """Columns of an input that is a leaf: a row with a NULL in one of them means nothing."""
    leaf = inputs(node)[place]
    if not isinstance(node, Join | Exists) or not isinstance(leaf, Windowed):
        return frozenset()
    if isinstance(node, Exists) and node.negated and (place == 0 or node.null_aware):
        # It meets nobody, and so it is shown; or it hides others.
        return frozenset()
    return frozenset(leaf.columns[key].value for key in node.keys[place])


def whole_joins(graph: Graph, since: Mapping[str, int]) -> dict[Node, int]:
    """The joins that run and that queries share, and the instant from which on each is whole.

    A query that has one of them finds its rows there, not where it would take them itself.

    Args:
        graph: The operators that run.
        since: The first instant at which each query is whole.
    """
    found: dict[Node, int] = {}
    for query, root in graph.roots.items():
        for number in graph.below(root):
            step = graph.steps[number]
            if step.key == (step.node,) and isinstance(step.node, Join):
                found[step.node] = min(found.get(step.node, NEVER), since[query])
    return found


def _read(node: Node) -> Iterator[tuple[Windowed, frozenset[Bound]]]:
    """The leaves below an operator, and what they need no rows with a NULL in."""
    if isinstance(node, Windowed):
        yield node, frozenset()
    for place, each in enumerate(inputs(node)):
        if isinstance(each, Windowed):
            yield each, _needless(node, place)
        else:
            yield from _read(each)


@dataclass
class History:
    """What queries that join take from the past.

    Attributes:
        since: The first instant at which each of them is whole.
        newcomers: Those that take rows.
        changes: By newcomer, what its root has to say about the past.
        steps: The operators that have taken the rows, by their keys.
        homes: By join that has taken rows, the store that has them all; None if none has.
        failed: By newcomer, how often values of the past failed.
    """

    since: dict[str, int] = field(default_factory=dict)
    newcomers: set[str] = field(default_factory=set)
    changes: dict[str, Changes] = field(default_factory=dict)
    steps: dict[Key, Step] = field(default_factory=dict)
    homes: dict[Join, JoinStore | None] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        plan: RowPlan,
        fresh: Iterable[RowFinal],
        known: Iterable[Source],
        running: Mapping[Node, int],
        seen: Times,
        watermark: Callable[[Streams], int],
    ) -> History:
        """What some queries take that join now.

        Args:
            plan: The plan with these queries.
            fresh: The queries.
            known: What operators keep.
            running: The joins that go on, by `whole_joins`.
            seen: The largest time of each stream so far.
            watermark: The least watermark of some streams.
        """
        history, fresh = cls(), list(fresh)
        chosen = _chosen(plan, fresh, list(known))
        for final in fresh:
            history.since[final.name] = usual = first_whole(final.root, seen)
            earlier = _earlier(final.root, seen, chosen)
            shared = [running[each] for each in _nodes(final.root) if each in running]
            earlier = max(earlier, *shared, ALWAYS)
            if earlier < usual and _may_take(final):
                history.since[final.name] = earlier
                history.newcomers.add(final.name)
        taking = tuple(final for final in fresh if final.name in history.newcomers)
        if taking:
            history._replay(replace(plan, finals=taking), chosen, watermark)
        return history

    def _replay(
        self, plan: RowPlan, chosen: Mapping[Windowed, Source], watermark: Callable[[Streams], int]
    ) -> None:
        joins = shareable([final.root for final in plan.finals])
        graph = Graph(plan, {}, self.since, assigned=[-1] * len(joins), newcomers=self.newcomers)
        changes: list[Changes] = []
        failed: list[int] = []
        for step in graph.steps:
            if isinstance(step.node, Windowed):
                rows, errors = Rows.none(step.node.schema), 0
                if step.node in chosen:
                    stream = plan.streams[step.node.stream]
                    rows, errors = chosen[step.node].rows(step.node, stream)
                found = Changes.births(rows)
            else:
                bounds = [watermark(streams) for streams in step.clocks]
                found = step.operator.step([changes[each] for each in step.sources], bounds)
                errors = getattr(step.operator, "errors", 0)
                if is_eager(step.node):
                    # Others may have this operator already, and it tells their rows by such ids.
                    born = replace(found.born, ids=found.born.ids + _PAST)
                    found = replace(found, born=born)
            changes.append(found)
            failed.append(errors)
        self.changes = {name: changes[root] for name, root in graph.roots.items()}
        self.failed = {
            name: sum(failed[each] for each in graph.below(root))
            for name, root in graph.roots.items()
        }
        self.steps = {step.key: step for step in graph.steps}
        self.homes = {node: _store(node, chosen) for node in joins}


def _may_take(final: RowFinal) -> bool:
    """Whether a query may take rows of the past, if there are any.

    Which rows of a hot key were copied was decided by the windows there were before; and what a
    retroactive relation held before, nobody knows.
    """
    return not final.replicates and not any(leaf.retroactive for leaf in leaves(final.root))


def _nodes(node: Node) -> Iterator[Node]:
    """An operator and all below it."""
    yield node
    for each in inputs(node):
        yield from _nodes(each)


def _chosen(
    plan: RowPlan, fresh: Sequence[RowFinal], known: Sequence[Source]
) -> dict[Windowed, Source]:
    """The source of each leaf that has one: the one that reaches back farthest."""
    needless: dict[Windowed, frozenset[Bound]] = {}
    for final in fresh:
        for leaf, columns in _read(final.root):
            needless[leaf] = needless.get(leaf, columns) & columns
    found = {}
    for leaf, columns in needless.items():
        stream = plan.streams[leaf.stream]
        if leaf.range is None or leaf.retroactive:
            continue
        able = [each for each in known if each.serves(leaf, columns, stream)]
        if able:
            # A store is as good as any other, and joins may share it.
            found[leaf] = min(
                able, key=lambda each: (each.reach, not isinstance(each.operator, SharedJoin))
            )
    return found


def _store(node: Join, chosen: Mapping[Windowed, Source]) -> JoinStore | None:
    """The store that has all rows a join takes, if it could share it."""
    taken = [chosen.get(each) for each in inputs(node) if isinstance(each, Windowed)]
    shared = [each for each in taken if each and isinstance(each.operator, SharedJoin)]
    stores = {id(each.operator.store): each.operator.store for each in shared}
    if len(stores) != 1 or len(shared) < len(taken):
        # Some of its rows were taken from elsewhere, or nobody had them.
        return None
    (store,) = stores.values()
    places = [each.place for each in shared]
    return store if store.key == store_key(node) and places == [0, 1] else None


def first_whole(root: Node, seen: Times) -> int:
    """The first instant at which a query is whole of whose past nothing is kept."""
    read = leaves(root)
    latest = max((seen.get(leaf.stream, ALWAYS) for leaf in read), default=ALWAYS)
    return ALWAYS if latest == ALWAYS else latest + _span(root)


def _span(root: Node) -> int:
    """How long what began before may matter."""
    ranges = [leaf.range for leaf in leaves(root) if leaf.range is not None]
    # Whether a row has a partner in all its life depends on rows that ended in it.
    return sum(ranges) if has_whole(root) else max(ranges, default=1)


def _earlier(root: Node, seen: Times, chosen: Mapping[Windowed, Source]) -> int:
    """The first instant at which a query is whole that takes the rows of sources."""
    found = ALWAYS
    for leaf in leaves(root):
        latest = seen.get(leaf.stream, ALWAYS)
        reach = ALWAYS if latest == ALWAYS else latest + 1
        if leaf in chosen:
            reach = chosen[leaf].reach
        if reach > ALWAYS:
            lasts = _span(root) if has_whole(root) else leaf.range or 1
            found = max(found, reach + lasts - 1)
    return found
