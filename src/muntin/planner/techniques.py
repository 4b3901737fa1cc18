"""The technique of every final: by which structure its windows are made of slices, and why.

Built-in parts that can be subtracted, or select, have one structure over the shared slices for
all queries, ranges and predicates. Others, and what a query asks for by name, have structures over
the slices of the query's own edges; queries with the same edges share one that takes several
ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from muntin.aggregates.algebra import FREQUENT, USER, Part
from muntin.aggregates.caps import UNSAID, Guarantees
from muntin.aggregates.registry import registered
from muntin.aggregators.choice import (
    SMALL,
    Algebra,
    Choice,
    Prefer,
    check_preference,
    choose_technique,
    legal_techniques,
    missing,
)
from muntin.aggregators.registry import info
from muntin.errors import MuntinError, Problem, QueryError
from muntin.plan.nodes import Final, Lowering, Partials, Slicing, Technique
from muntin.windows import Window

# What one structure over the shared slices does for all queries.
SHARED = ("running_totals", "slickdeque_noninv", "last_seen")
ASKED = "asked for"
# The accumulators that each lowering of a query reads.
_Read = tuple[tuple[int, ...], ...]
_VALUES = "all windows look the values of their slices up in one index"
# Aggregates that name different values; others need their number or their sum, and no more.
_COLLECTED = ("collect_set",)
_LISTS = "lists of frequent values are added and taken off slice by slice of the query's own"
_SEEN = "a value is marked where it was last seen: one move serves windows of every range"
_HEADS = "windows end inside Cutty slices, and are put together anew"


@dataclass(frozen=True)
class Preferences:
    """What queries are told that say nothing themselves: a technique, what to prefer, caps."""

    technique: str | None = None
    prefer: Prefer = "throughput"
    guarantees: Guarantees = UNSAID

    def __post_init__(self) -> None:
        check_preference(self.prefer)
        if self.technique is not None:
            info(self.technique)


def algebra_of(part: Part) -> Algebra:
    """What techniques may ask of a part.

    >>> algebra_of(Part("sum")).invertible, algebra_of(Part("max")).selective
    (True, True)
    """
    if part.kind.startswith(USER):
        return Algebra.of(registered(part.kind.removeprefix(USER)))
    if part.kind.startswith(FREQUENT):
        # Lists of slices are added and taken off as they are.
        return Algebra(part.kind, invertible=True)
    return Algebra(part.kind, part.invertible, part.selective, distinct=part.kind == "set")


def own_slices(window: Window) -> int:
    """How many slices of its own edges a window spans.

    >>> own_slices(Window(6, 2)), own_slices(Window(7, 2))
    (3, 7)
    """
    whole, rest = divmod(window.range, window.period)
    return 2 * whole + 1 if rest else whole


def with_techniques(
    finals: Sequence[Final],
    partials: Sequence[Partials],
    slicings: Sequence[Slicing],
    told: Preferences,
) -> tuple[tuple[Final, ...], tuple[Partials, ...]]:
    """Finals and partials that say by which techniques windows are answered."""
    chosen = _Techniques(finals, partials, slicings, told)
    named = tuple(chosen.final(final) for final in finals)
    return named, tuple(
        replace(node, is_driven=True) if place in chosen.driven else node
        for place, node in enumerate(partials)
    )


def _reads(final: Final) -> _Read:
    """The accumulators of each lowering of a query."""
    return tuple([lowering.accumulators for lowering in final.lowerings])


def _collects(final: Final) -> tuple[bool, ...]:
    """Which lowerings of a query name the values of a set, which marks do not."""
    return tuple([lowering.aggregate.name in _COLLECTED for lowering in final.lowerings])


class _Techniques:
    """The choice for all finals of a plan: once for all that read and span alike."""

    def __init__(
        self,
        finals: Sequence[Final],
        partials: Sequence[Partials],
        slicings: Sequence[Slicing],
        told: Preferences,
    ) -> None:
        self._partials, self._slicings, self._told = partials, slicings, told
        self._owning = [
            not all(each.part.shared for each in node.accumulators) for node in partials
        ]
        # The sizes of windows that are cut alike.
        self._sizes: dict[Hashable, set[int]] = {}
        self._made: dict[Hashable, Technique] = {}
        self._found: dict[Hashable, tuple[tuple[Technique, ...], ...]] = {}
        self.driven: set[int] = set()
        self._note(finals)

    def _note(self, finals: Sequence[Final]) -> None:
        """Take down the ranges of who reads what."""
        for final in finals:
            if self._owning[final.partials]:
                self._note_sizes(final)

    def _note_sizes(self, final: Final) -> None:
        size = own_slices(final.window)
        for lowering in final.lowerings:
            for index in lowering.accumulators:
                if not self._part(final, index).shared:
                    self._sizes.setdefault(self._group(final, lowering, index), set()).add(size)

    def final(self, final: Final) -> Final:
        """The final with a technique for each accumulator it reads."""
        asked = final.query.technique or self._told.technique
        alike: Hashable = asked, final.partials, _reads(final), _collects(final)
        if asked is None:
            edges = frozenset(final.window.edge_classes()) if self._owning[final.partials] else None
            members = tuple([lowering.member for lowering in final.lowerings]) if edges else None
            alike = alike, own_slices(final.window), self._prefer(final), edges, members
        if alike not in self._found:
            self._found[alike] = self._decided(final, asked)
        return final.by(self._found[alike])

    def _decided(self, final: Final, asked: str | None) -> tuple[tuple[Technique, ...], ...]:
        if asked is not None:
            self._check(final, asked)
        found = tuple(
            tuple(
                self._forced(asked) if asked else self._chosen(final, lowering, index)
                for index in lowering.accumulators
            )
            for lowering in final.lowerings
        )
        pairs = zip(final.lowerings, found, strict=True)
        owned = [
            self._part(final, index)
            for lowering, techniques in pairs
            for index, technique in zip(lowering.accumulators, techniques, strict=True)
            if technique.is_own
        ]
        # Built-in parts slide over bounded data by themselves, for all queries at once.
        if owned and (asked or any(part.kind.startswith((USER, FREQUENT)) for part in owned)):
            self.driven.add(final.partials)
        return found

    def _part(self, final: Final, index: int) -> Part:
        return self._partials[final.partials].accumulators[index].part

    def _prefer(self, final: Final) -> Prefer:
        return final.query.prefer or self._told.prefer

    def _group(self, final: Final, lowering: Lowering, index: int) -> Hashable:
        """Queries of one group have the same slices of their own."""
        edges = frozenset(final.window.edge_classes())
        return final.partials, index, lowering.member, edges, self._prefer(final)

    def _check(self, final: Final, asked: str) -> None:
        """Refuse a technique that some accumulator of the query cannot be kept by."""
        if self._has_heads(final):
            message = f"{asked} takes slices that end where windows do, and Cutty slices do not"
            raise QueryError([Problem(message, 'use slicing="pairs"', final.name)])
        if asked == "last_seen" and any(_collects(final)):
            message = "last_seen counts different values and adds them up, and does not name them"
            raise QueryError([Problem(message, "use panes, or name none", final.name)])
        parts = dict.fromkeys(self._part(final, i) for e in final.lowerings for i in e.accumulators)
        if any(part.kind.startswith(FREQUENT) for part in parts) and asked != "panes_inv":
            message = f"{asked} does not keep lists of frequent values"
            raise QueryError([Problem(message, "use panes_inv, or name none", final.name)])
        algebras = [algebra_of(part) for part in parts]
        try:
            lacking = [lack for each in algebras if (lack := missing(asked, each)) is not None]
        except MuntinError as error:
            raise QueryError([Problem(error.message, error.hint, final.name)]) from error
        if lacking:
            fitting = [
                name
                for name in legal_techniques(algebras[0])
                if all(missing(name, each) is None for each in algebras)
            ]
            hint = f"use one of {', '.join(fitting)}"
            raise QueryError([Problem(f"{asked} needs {lacking[0]}", hint, final.name)])

    def _forced(self, asked: str) -> Technique:
        # Marks of values serve all queries, and are there in one form only.
        is_own = asked != "last_seen"
        return self._kept((asked,), lambda: Technique(asked, ASKED, is_own=is_own))

    def _chosen(self, final: Final, lowering: Lowering, index: int) -> Technique:
        part = self._part(final, index)
        prefer = self._prefer(final)
        if part.kind.startswith(FREQUENT) and self._has_heads(final):
            message = "lists of frequent values take slices that end where windows do"
            raise QueryError([Problem(message, 'use slicing="pairs"', final.name)])
        if part.kind.startswith(FREQUENT):
            return self._kept(("lists",), lambda: Technique("panes_inv", _LISTS, is_own=True))
        if part.kind == "set" and lowering.aggregate.name not in _COLLECTED:
            return self._kept(("seen",), lambda: Technique("last_seen", _SEEN))
        if part.valued:
            return self._kept(("values",), lambda: Technique("panes", _VALUES))
        if not part.shared and self._has_heads(final):
            return self._kept(("heads",), lambda: Technique("panes", _HEADS))
        if not part.shared:
            sizes = tuple(sorted(self._sizes[self._group(final, lowering, index)]))
        else:
            # What all queries share is there for windows of any size.
            sizes = (max(own_slices(final.window), SMALL + 1),)

        def make() -> Technique:
            # One reason for all parts alike.
            found = _choice(replace(algebra_of(part), name="each"), sizes, prefer)
            shares = found.name in SHARED and part.shared
            return Technique(found.name, found.why, is_own=not shares)

        return self._kept((part.kind, sizes, prefer), make)

    def _kept(self, key: Hashable, make: Callable[[], Technique]) -> Technique:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def _has_heads(self, final: Final) -> bool:
        """Whether windows end inside slices."""
        return bool(self._slicings[self._partials[final.partials].slicing].marks)


@cache
def _choice(algebra: Algebra, sizes: tuple[int, ...], prefer: Prefer) -> Choice:
    return choose_technique(algebra, sizes, prefer=prefer)
