"""A question fitted to a keep: every part, group and condition of it found among what is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
import pyarrow as pa
from sqlglot import exp

from muntin._typing import Ints
from muntin.errors import QueryError
from muntin.expressions import Bound, Evaluator, bind
from muntin.expressions.tree import Column
from muntin.plan.nodes import Accumulator
from muntin.plan.relations import relate
from muntin.planner.bound import BoundCall, BoundQuery
from muntin.planner.steps.bind import bind_query
from muntin.predicates import conjunction
from muntin.queries import Question, canonical_text
from muntin.queries.asking.questions import conjuncts, equality
from muntin.queries.sql.normalize import dotted, quote
from muntin.queries.sql.spellings import window_text
from muntin.synopses.cells import Wanted, implies, wanted_cells
from muntin.synopses.keeps.choice import GRAM_CALLS
from muntin.synopses.keeps.kept import Kept
from muntin.windows import Window

_SECOND = 1_000_000


class UnfitError(Exception):
    """A keep cannot answer a question: why, and how near it came."""

    def __init__(self, reason: str, near: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.near = near


@dataclass(frozen=True)
class FittedCall:
    """An aggregate of the question: where its parts are, and which condition takes its rows.

    One ``is_gram`` that is told from the buckets of a TimeGram.
    """

    call: BoundCall
    columns: tuple[int, ...]
    condition: int
    is_gram: bool = False


@dataclass(frozen=True)
class Fit:
    """A question as a keep answers it; its window and the values of ``keys`` come with the asking.

    Attributes:
        question: The question.
        kept: The keep.
        bound: Its groups, aggregates, outputs and HAVING, with names and types known.
        calls: Its aggregates.
        conditions: The cells of its WHERE, and of WHERE with each FILTER.
        key_condition: What the group columns must satisfy, beside ``keys``.
        keys: Group columns compared with a constant: the constant's word, and the column's place.
        groups: For each of its groups the place among the keep's, or what computes it from them.
    """

    question: Question
    kept: Kept
    bound: BoundQuery
    calls: tuple[FittedCall, ...]
    conditions: tuple[Wanted, ...]
    key_condition: Bound | None
    keys: tuple[tuple[int, int], ...]
    groups: tuple[int | Bound, ...]

    @cached_property
    def selector(self) -> Evaluator | None:
        """What tells whether group columns satisfy the condition on them."""
        return None if self.key_condition is None else Evaluator([self.key_condition])

    @cached_property
    def grouper(self) -> Evaluator:
        """What computes groups that are expressions over the keep's."""
        return Evaluator([each for each in self.groups if isinstance(each, Bound)])

    @cached_property
    def shower(self) -> Evaluator:
        """What makes the columns that are shown, and HAVING, of groups and aggregates."""
        having = () if self.bound.having is None else (self.bound.having,)
        return Evaluator([*(output.value for output in self.bound.outputs), *having])

    @cached_property
    def plain(self) -> tuple[int | None, ...]:
        """For each column shown, which aggregate it is as it stands; None for all others."""
        names = {each.call.name: place for place, each in enumerate(self.calls)}
        roots = [output.value.root for output in self.bound.outputs]
        return tuple(names.get(root.name) if isinstance(root, Column) else None for root in roots)

    @cached_property
    def straight(self) -> tuple[int, ...] | None:
        """The columns shown as places among groups and aggregates, if all are as they stand."""
        names = {name: place for place, name in enumerate(self.bound.lowered_schema.names)}
        roots = [output.value.root for output in self.bound.outputs]
        if self.bound.having is not None or not all(isinstance(root, Column) for root in roots):
            return None
        return tuple(names[root.name] for root in roots if isinstance(root, Column))

    @cached_property
    def places(self) -> Ints:
        """Where the parts of its aggregates are, ascending; the count of rows is the first."""
        return np.array(sorted({0, *(at for each in self.calls for at in each.columns)}))

    @cached_property
    def is_bounded(self) -> bool:
        """Whether some aggregate is never exact: counts of a TimeGram are, and nothing else."""
        return any(each.is_gram and each.call.aggregate.name != "count" for each in self.calls)

    @cached_property
    def is_finest(self) -> bool:
        """Whether its groups are the keep's, each once."""
        places = [each for each in self.groups if isinstance(each, int)]
        return len(self.groups) == len(places) == len(self.kept.node.grouping) == len({*places})

    def extreme(self, call: BoundCall, kind: str) -> int | None:
        """Where the keep has the minimum, maximum or count of an aggregate's argument."""
        for place, each in enumerate(self.kept.node.accumulators):
            if each.part.kind == kind and each.args == call.args[:1]:
                return place
        return None


def fit(
    question: Question,
    kept: Kept,
    tables: Mapping[str, pa.Schema],
    free: frozenset[int] = frozenset(),
) -> Fit:
    """Fit a question to a keep; ``free`` are the words of constants that may be others.

    Raises:
        QueryError: If the question makes no sense over the stream's columns.
        UnfitError: If the keep does not hold what it takes.
    """
    asked = replace(question.query, window=kept.keep.grid.window)
    plan = kept.plan
    bound = bind_query(asked, plan.source, plan.timeline, tables, plan.zone)
    relation, related = relate(asked, plan.source, tables, plan.zone)
    if question.query.time is not None and question.query.time != plan.timeline.column:
        raise UnfitError(f"it is kept by {plan.timeline.column}", 0)
    if relation.joins != kept.relation.joins:
        raise UnfitError("it does not join the same tables", 0)
    keys, on_keys, others = _split(related.where, kept, question, free)
    calls, conditions = _calls(bound, others, kept, relation.schema)
    _check_rows(bound, kept)
    key_condition = None
    if on_keys:
        node = reduce(lambda a, b: exp.And(this=a, expression=b), on_keys)
        key_condition = _bound(node, kept.key_schema, kept)
    groups = tuple(_group(each, kept) for each in bound.grouping)
    wanted = tuple(_wanted(condition, kept) for condition in conditions)
    return Fit(question, kept, bound, calls, wanted, key_condition, keys, groups)


def _split(
    where: exp.Expr | None, kept: Kept, question: Question, free: frozenset[int]
) -> tuple[tuple[tuple[int, int], ...], list[exp.Expr], list[exp.Expr]]:
    """Conditions on group columns, those with a free constant apart, and all others."""
    names = {name.lower(): place for name, place in kept.key_names.items()}
    held = {name.lower(): place for place, name in question.free.keys if place in free}
    keys: list[tuple[int, int]] = []
    on_keys: list[exp.Expr] = []
    others: list[exp.Expr] = []
    for each in [] if where is None else conjuncts(where):
        columns = {column.name.lower() for column in each.find_all(exp.Column)}
        pair = equality(each)
        if pair is not None and pair[0].name.lower() in held:
            name = pair[0].name.lower()
            keys.append((held[name], names[name]))
        elif columns and columns <= names.keys():
            on_keys.append(each)
        else:
            others.append(each)
    return tuple(keys), on_keys, others


def _calls(
    bound: BoundQuery, others: Sequence[exp.Expr], kept: Kept, schema: pa.Schema
) -> tuple[tuple[FittedCall, ...], list[Bound | None]]:
    where = None
    if others:
        node = reduce(lambda a, b: exp.And(this=a, expression=b), others)
        where = _bound(node, schema, kept)
    places = {each: place for place, each in enumerate(kept.node.accumulators)}
    conditions: dict[str, int] = {"": 0}
    listed: list[Bound | None] = [where]
    calls = []
    for call in bound.calls:
        needed = [Accumulator(each.part, each.args) for each in call.accumulators()]
        missing = [each for each in needed if each not in places]
        is_gram = bool(missing) and _is_in_gram(call, kept)
        if missing and not is_gram:
            raise UnfitError(f"it does not keep {_text(call)}", 2)
        key = "" if call.filter is None else call.filter.key
        if key not in conditions:
            conditions[key] = len(listed)
            listed.append(conjunction(where, call.filter))
        if is_gram and kept.gram is not None:
            columns: tuple[int, ...] = (kept.gram,)
        else:
            columns = tuple(places[each] for each in needed)
        calls.append(FittedCall(call, columns, conditions[key], is_gram))
    return tuple(calls), listed


def _is_in_gram(call: BoundCall, kept: Kept) -> bool:
    """Whether the buckets of a TimeGram tell an aggregate."""
    if kept.gram is None or call.aggregate.name not in GRAM_CALLS:
        return False
    return call.args == kept.node.accumulators[kept.gram].args


def _text(call: BoundCall) -> str:
    args = ", ".join(arg.key for arg in call.args) or "*"
    return f"{call.aggregate.name}({args})"


def _check_rows(bound: BoundQuery, kept: Kept) -> None:
    """Refuse a question about rows that the keep's own WHERE has left out."""
    (final,) = kept.plan.finals
    if not implies(bound.predicate, final.predicate):
        assert final.predicate is not None
        raise UnfitError(f"it holds only rows WHERE {final.predicate.key}", 1)


def _bound(node: exp.Expr, schema: pa.Schema, kept: Kept) -> Bound:
    return bind(node, schema, zone=kept.plan.zone)


def _group(group: Bound, kept: Kept) -> int | Bound:
    grouping = kept.node.grouping
    if group in grouping:
        return grouping.index(group)
    if group.columns and group.columns <= kept.key_names.keys():
        return group
    raise UnfitError(f"it is not grouped by {group.key}", 2)


def _wanted(condition: Bound | None, kept: Kept) -> Wanted:
    found = wanted_cells(kept.shape, condition)
    possible = kept.shape.wanted
    if possible is not None and possible.size:
        # Rows that the keep leaves out are in none of its cells.
        found = Wanted(found.inner | ~possible, found.outer | ~possible)
        idle = not found.inner[possible].any() and bool(found.outer[possible].all())
    else:
        idle = found.is_idle
    if idle and not found.is_exact:
        assert condition is not None
        raise UnfitError(f"it cannot tell rows apart by {condition.key}", 3)
    return found


def would_do(
    question: Question,
    near: Kept | None,
    span: int | None = None,
    slide: int | None = None,
    *,
    items: Sequence[str] = (),
    plain: bool = False,
) -> str:
    """The KEEP that would answer a question, as SQL; it keeps what a near one keeps too.

    One that joins other tables is near to nothing: there is a keep beside it then. ``items`` are
    aggregates that it has besides; one that is ``plain`` names no synopsis.
    """
    query = question.query
    joins = [join.sql() for join in query.joins]
    taken = "" if near is None else near.keep.name.lower()
    if near is not None and joins != [join.sql() for join in near.keep.query.joins]:
        near, span = None, None
    groups = (
        {canonical_text(group.node): None for group in near.keep.query.group_by} if near else {}
    )
    groups |= {canonical_text(group.node): None for group in query.group_by}
    cuts = {canonical_text(cut): None for cut in near.keep.cuts} if near else {}
    for each in [] if query.where is None else conjuncts(query.where):
        pair = equality(each)
        names = {canonical_text(column) for column in each.find_all(exp.Column)}
        if pair is not None and pair[1].is_string:
            groups |= {canonical_text(pair[0]): None}
        elif not names <= groups.keys():
            cuts |= {canonical_text(each): None}
    kept = [output.node for output in near.keep.query.select] if near else []
    listed = {canonical_text(node): None for node in kept}
    listed |= dict.fromkeys([*(call.key for call in query.calls), *items])
    window = query.window
    grid = slide or (near.keep.slide if near else _grid(window))
    longest = max(span or window.range, near.keep.span if near else 0)
    phase = near.keep.phase % grid if near else 0
    shown = window_text(Window(longest, grid, phase, unit=window.unit))
    name = near.keep.name if near else "recent" if taken != "recent" else "more"
    words = [f"CREATE KEEP {quote(name)} AS SELECT {', '.join([*groups, *listed])}"]
    alias = f" AS {quote(query.alias)}" if joins and query.alias else ""
    words += [f"FROM {dotted(query.source)}{alias} {shown}", *joins]
    if groups:
        words.append(f"GROUP BY {', '.join(groups)}")
    if cuts:
        words.append(f"CUT ({', '.join(cuts)})")
    text = " ".join(words)
    if near is not None and len(listed) == len(kept) and not plain:
        text += near.keep.options
    return text if near is None else text.replace("CREATE KEEP", "CREATE OR REPLACE KEEP", 1)


def _grid(window: Window) -> int:
    """Slices of a hundredth of a window; of times in whole seconds, which most columns have."""
    hundredth = max(window.range // 100, 1)
    if window.unit != "duration" or window.range < _SECOND:
        return hundredth
    return max(hundredth // _SECOND, 1) * _SECOND


def problems_of(error: QueryError) -> QueryError:
    """A question's problems, without the name that stands for it inside."""
    return QueryError([replace(problem, query=None) for problem in error.problems])
