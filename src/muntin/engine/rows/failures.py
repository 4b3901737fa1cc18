"""Values that failed, counted for the queries that wanted them."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

import numpy as np

from muntin._typing import Bools
from muntin.engine.rows.selection import Scope
from muntin.expressions import Bound
from muntin.plan.nodes import Final, Partials, SharedPlan
from muntin.plan.selection import Cells, Mask
from muntin.predicates import Cells as FoundCells
from muntin.predicates import Shape


def count_errors(
    plan: SharedPlan, relation: int, placed: list[Bools], scope: Scope
) -> Counter[str]:
    """Values that failed, per query, on the rows for which the query wanted them.

    ``placed`` says for each slicing which rows of a relation lie in one of its slices.
    """
    counts: Counter[str] = Counter()
    if all(evaluated.errors is None for evaluated in scope.values.values()):
        return counts
    rows = {
        place: _Rows(node, placed[node.slicing], scope)
        for place, node in enumerate(plan.partials)
        if node.relation == relation
    }
    for final in plan.finals:
        if final.partials not in rows:
            continue
        failed = _failed(final, rows[final.partials], scope)
        if failed:
            counts[final.name] = failed
    return counts


def _failed(final: Final, rows: _Rows, scope: Scope) -> int:
    selected = rows.selected(final.member, final.predicate)
    wanted: dict[Bound, Bools] = dict.fromkeys(final.grouping, selected)
    count = rows.failing(final.member, final.predicate)
    filters: dict[Bound, int] = {}
    for lowering in final.lowerings:
        passing = selected
        if lowering.filter is not None:
            passing = rows.passing(lowering.member, selected, lowering.filter)
            filters[lowering.filter] = lowering.member
        for arg in lowering.args:
            wanted[arg] = wanted.get(arg, passing) | passing
    # A filter is tested on the rows that the predicate selects, and fails there.
    for bound, member in filters.items():
        count += rows.failing_filter(member, selected, bound, rows.failing_rows(final))
    for bound, where in wanted.items():
        errors = scope.values[bound].errors
        if errors is not None:
            count += int(np.count_nonzero(errors.to_numpy(zero_copy_only=False) & where))
    return count


class _Rows:
    """Which rows of a batch the members of one selection accept, and where they fail."""

    def __init__(self, node: Partials, placed: Bools, scope: Scope) -> None:
        self.selection = node.selection
        self.placed = placed
        self.scope = scope

    def selected(self, member: int, predicate: Bound | None) -> Bools:
        """The rows that count for a query."""
        if isinstance(self.selection, Cells):
            return self.placed & self._cells(member)
        return self.placed if predicate is None else self.placed & self.scope.mask(predicate)

    def passing(self, member: int, selected: Bools, condition: Bound) -> Bools:
        """The rows that pass a FILTER as well."""
        if isinstance(self.selection, Cells):
            return selected & self._cells(member)
        if isinstance(self.selection, Mask):
            return selected & self.scope.mask(condition)
        joint = self.selection.predicates[member]
        return selected if joint is None else selected & self.scope.mask(joint)

    def failing(self, member: int, predicate: Bound | None) -> int:
        """On how many rows the predicate of a query fails."""
        return int(np.count_nonzero(self._failing(member, predicate) & self.placed))

    def failing_rows(self, final: Final) -> Bools:
        """The rows on which the predicate of a query fails."""
        return self._failing(final.member, final.predicate)

    def failing_filter(self, member: int, selected: Bools, condition: Bound, before: Bools) -> int:
        """On how many selected rows a FILTER fails."""
        if isinstance(self.selection, Mask):
            return int(np.count_nonzero(self._errors(condition) & selected))
        joint = self._failing(member, self._joint(member)) & self.placed & ~before
        return int(np.count_nonzero(joint))

    def _joint(self, member: int) -> Bound | None:
        if isinstance(self.selection, Cells | Mask):
            return None
        return self.selection.predicates[member]

    def _failing(self, member: int, predicate: Bound | None) -> Bools:
        if isinstance(self.selection, Cells):
            fails: Bools = self._failures[self._found.ids, member]
            return fails
        return np.zeros(self.scope.rows, np.bool_) if predicate is None else self._errors(predicate)

    def _errors(self, bound: Bound) -> Bools:
        errors = self.scope.values[bound].errors
        if errors is None:
            return np.zeros(self.scope.rows, np.bool_)
        flags: Bools = errors.to_numpy(zero_copy_only=False)
        return flags

    def _cells(self, member: int) -> Bools:
        holds: Bools = self._truth[self._found.ids, member]
        return holds

    @property
    def _shape(self) -> Shape:
        assert isinstance(self.selection, Cells)
        return self.selection.shape

    @cached_property
    def _found(self) -> FoundCells:
        return self._shape.cells(self.scope.ranks(self._shape), self.scope.rows)

    @cached_property
    def _truth(self) -> Bools:
        return self._shape.truth(self._found.ranks)

    @cached_property
    def _failures(self) -> Bools:
        return self._shape.failures(self._found.ranks)
