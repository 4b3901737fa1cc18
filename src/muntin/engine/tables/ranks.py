"""Ranks of what depends on one joined table only: found once per row of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from muntin._typing import Bools, Ints, Ranks
from muntin.engine.tables.loops import Codes, gather
from muntin.expressions import Bound, Evaluator
from muntin.plan.nodes import Partials
from muntin.plan.selection import Cells, Mask
from muntin.predicates import Ranked

Places = Codes | Ints


class TableRanks:
    """The ranks of all rows of joined tables, by the dimensions that read one table only.

    Args:
        nodes: What is kept of the joined rows.
        tables: The stored rows of each table.

    A dimension that fails on some row of its table is left to be evaluated row by row.
    """

    def __init__(self, nodes: Sequence[Partials], tables: Sequence[pa.Table]) -> None:
        self._nodes = nodes
        shapes = [node.selection.shape for node in nodes if isinstance(node.selection, Cells)]
        dimensions = dict.fromkeys(each for shape in shapes for each in shape.dimensions)
        self._ranks: list[dict[Ranked, Ranks]] = [
            _ranked([each for each in dimensions if _reads(each.bound, table)], table)
            for table in tables
        ]

    def bounds(self) -> tuple[Bound, ...]:
        """The expressions that are evaluated for joined rows all the same."""
        known = {dimension.bound for ranks in self._ranks for dimension in ranks}
        found: dict[Bound, None] = {}
        for node in self._nodes:
            ranked = known if isinstance(node.selection, Cells) else set()
            found.update((each, None) for each in node.selection.bounds if each not in ranked)
            others = replace(node, selection=Mask())
            found.update((each, None) for each in others.bounds())
        return tuple(found)

    def kept(self) -> list[Bools | None]:
        """For each table, the rows that some predicate asks about; None for all."""
        return [_kept(self._nodes, ranks) for ranks in self._ranks]

    def at(self, places: Sequence[Places]) -> dict[Ranked, Callable[[], Ranks]]:
        """For each dimension what gives the ranks of joined rows, by their places in the tables."""
        return {
            dimension: partial(gather, stored, where)
            for ranks, where in zip(self._ranks, places, strict=True)
            for dimension, stored in ranks.items()
        }


def _kept(nodes: Sequence[Partials], ranks: Mapping[Ranked, Ranks]) -> Bools | None:
    if not ranks:
        return None
    kept: Bools = np.zeros(len(next(iter(ranks.values()))), np.bool_)
    for node in nodes:
        if not isinstance(node.selection, Cells):
            return None
        shape = node.selection.shape
        reached = shape.reach(ranks)
        if reached is None:
            return None
        kept |= reached[tuple(ranks[each] for each in shape.dimensions if each in ranks)]
    return kept


def _reads(bound: Bound, table: pa.Table) -> bool:
    return bool(bound.columns) and bound.columns <= set(table.column_names)


def _ranked(dimensions: Sequence[Ranked], table: pa.Table) -> dict[Ranked, Ranks]:
    if not dimensions:
        return {}
    evaluated = Evaluator([each.bound for each in dimensions])(table)
    return {
        dimension: dimension.of(each)
        for dimension, each in zip(dimensions, evaluated, strict=True)
        if each.errors is None
    }
