"""Rows of streams joined with tables, for row queries that read them so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pyarrow as pa

from muntin.engine.tables.relations import Joiner
from muntin.plan.operators import RowPlan, Windowed, leaves


class TableFeeds:
    """What joins batches of streams with tables as they are then, for each leaf of a plan.

    Args:
        plan: The row queries.
        tables: The tables by name.
        errors: Counts the keys that fail, by query; such a key finds nothing.
    """

    def __init__(self, plan: RowPlan, tables: Mapping[str, pa.Table], errors: Counter[str]) -> None:
        found: dict[str, list[Windowed]] = {}
        self._queries: dict[str, set[str]] = {}
        for final in plan.finals:
            for leaf in leaves(final.root):
                if leaf.relation is not None:
                    found.setdefault(leaf.feed, []).append(leaf)
                    self._queries.setdefault(leaf.feed, set()).add(final.name)
        self._joiners: dict[str, tuple[str, Joiner]] = {}
        for feed, members in found.items():
            first = members[0]
            assert first.relation is not None
            columns = {plan.streams[first.stream].timeline.column}
            for leaf in members:
                bounds = [each.value for each in leaf.columns]
                bounds += [] if leaf.where is None else [leaf.where]
                columns |= {name for each in bounds for name in each.columns}
            self._joiners[feed] = first.stream, Joiner(first.relation, tables, columns)
        self._errors = errors

    def join(self, batches: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """The joined rows of some batches, by what leaves call them."""
        joined = {}
        for feed, (stream, joiner) in self._joiners.items():
            if stream in batches:
                found = joiner(batches[stream])
                joined[feed] = found.batch
                self._errors.update(dict.fromkeys(self._queries[feed], found.errors))
        return joined
