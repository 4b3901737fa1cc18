"""A plan in the making: what each step of the planner takes from those before it, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from muntin.errors import MuntinError, did_you_mean
from muntin.expressions import Bound
from muntin.expressions.zones import UTC, Zone
from muntin.plan.nodes import STRATEGIES, Axis, SharedPlan, Slicing, Strategy
from muntin.plan.relations import Relation
from muntin.plan.timeline import Timeline
from muntin.planner.bound import BoundQuery
from muntin.planner.owners import Sharer, Sharing, share_all
from muntin.planner.strategies import Tree
from muntin.planner.techniques import Preferences
from muntin.predicates import Analysis, analyze
from muntin.queries import Query
from muntin.windows.edges import Slicing as SlicingName
from muntin.windows.edges import check_slicing


@dataclass(frozen=True)
class Draft:
    """What is asked for, what is known of the rows, and what the steps have found so far.

    Attributes:
        queries: The queries.
        schema: The columns of the rows.
        timeline: The column of event times.
        tables: The columns of the tables that queries may join, by name.
        strategy: What queries may share.
        slicing: How windows are cut.
        zone: Where the local times are that expressions ask for.
        told: The technique of queries that name none, or what to choose it by.
        sharer: The rule that decides which queries are cut together.
        previous: The plan of the queries that run already.
        watermark: The time up to which the windows of those are answered.
        rate: Rows per tick, as far as it was measured.
        spreads: Whether values of queries without groups lie in all buckets, where they can.
        sample: Some joined rows of relations.
        bound: The queries with every name and type known; by ``bind``.
        sharing: The owner of each query's slices; by ``weigh``.
        slicings: How rows are cut, by axis and owner; by ``share``.
        trees: The sets of partials, with their cells; by ``cells``.
        plan: The plan; by ``assemble``.
    """

    queries: Sequence[Query]
    schema: pa.Schema
    timeline: Timeline
    tables: Mapping[str, pa.Schema] = field(default_factory=dict)
    strategy: Strategy = "cells"
    slicing: SlicingName = "pairs"
    zone: Zone = UTC
    told: Preferences = field(default_factory=Preferences)
    sharer: Sharer = share_all
    previous: SharedPlan | None = None
    watermark: int | None = None
    rate: float | None = None
    spreads: bool = False
    sample: Mapping[Relation, pa.Table] = field(default_factory=dict)
    bound: tuple[BoundQuery, ...] = ()
    sharing: Sharing = field(default_factory=lambda: Sharing(()))
    slicings: Mapping[Axis, Slicing] = field(default_factory=dict)
    trees: tuple[Tree, ...] = ()
    plan: SharedPlan | None = None
    # Conditions are analysed when rows are asked for and when cells are shared.
    _analyses: dict[tuple[Relation, tuple[Bound | None, ...]], Analysis] = field(
        default_factory=dict, repr=False
    )

    def __post_init__(self) -> None:
        check_slicing(self.slicing)
        if self.strategy not in STRATEGIES:
            hint = did_you_mean(str(self.strategy), STRATEGIES)
            raise MuntinError(
                f"there is no strategy {self.strategy!r}",
                hint=hint or f"use one of {', '.join(STRATEGIES)}",
            )
        if self.previous is not None and self.previous.zone != self.zone:
            raise MuntinError(
                f"the queries run in the time zone {self.previous.zone.name}, not in "
                f"{self.zone.name}",
                hint="plan them from the beginning in another one",
            )

    def analysis(self, relation: Relation, conditions: Sequence[Bound | None]) -> Analysis:
        """The analysis of conditions on the rows of a relation, which is made once."""
        key = relation, tuple(conditions)
        if key not in self._analyses:
            self._analyses[key] = analyze(conditions)
        return self._analyses[key]
