"""The rows of one relation: a batch joined with its tables, and what the plan reads of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from muntin._typing import Ints
from muntin.engine.rows.selection import Ranking, Scope
from muntin.engine.tables.ranks import TableRanks
from muntin.engine.tables.relations import Joiner
from muntin.errors import DataError
from muntin.expressions import Evaluator
from muntin.plan.nodes import SharedPlan
from muntin.plan.relations import Relation

# As many rows as are worth a look before they are read in earnest.
SAMPLE_ROWS = 1 << 15


@dataclass(frozen=True)
class Read:
    """Values of a batch's joined rows, which of its rows they come from, and failed keys."""

    scope: Scope
    rows: Ints | None
    errors: Counter[str]


class Reader:
    """Evaluates what the plan needs of one relation, batch by batch."""

    def __init__(self, plan: SharedPlan, number: int, tables: Mapping[str, pa.Table]) -> None:
        self._bounds = plan.expressions(number)
        self._readers = [
            final.name for final in plan.finals if plan.partials[final.partials].relation == number
        ]
        relation = plan.relations[number]
        if relation.joins:
            columns = frozenset().union(*(bound.columns for bound in self._bounds))
            self._join: Joiner | None = joiner(relation, tables, columns)
            every = (*plan.partials, *(each.node for each in plan.combined))
            nodes = [node for node in every if node.relation == number]
            self._ranks = TableRanks(nodes, self._join.tables)
            self._bounds = self._ranks.bounds()
            read = frozenset().union(*(bound.columns for bound in self._bounds))
            self._join.narrow(read, self._ranks.kept())
        else:
            self._join = None
        self._evaluate = Evaluator(self._bounds)

    def __call__(self, batch: pa.Table) -> Read:
        """The values of a batch."""
        if self._join is None:
            return Read(self._scope(batch), None, Counter())
        joined = self._join(batch)
        errors = Counter[str]()
        if joined.errors:
            errors = Counter(dict.fromkeys(self._readers, joined.errors))
        return Read(self._scope(joined.batch, self._ranks.at(joined.places)), joined.rows, errors)

    def _scope(self, rows: pa.Table, ranked: Ranking | None = None) -> Scope:
        values = dict(zip(self._bounds, self._evaluate(rows), strict=True))
        return Scope(rows.num_rows, values, ranked)


def joiner(relation: Relation, tables: Mapping[str, pa.Table], columns: frozenset[str]) -> Joiner:
    """What joins batches with the tables of a relation."""
    for join in relation.joins:
        if join.table not in tables:
            raise DataError(
                f"the rows of table {join.table!r} are not given",
                hint=f'give them with tables={{"{join.table}": ...}}',
            )
    return Joiner(relation, tables, columns)


def sample_rows(
    batch: pa.Table, relations: Iterable[Relation], tables: Mapping[str, pa.Table] | None = None
) -> dict[Relation, pa.Table]:
    """Some joined rows of each relation, for a plan to weigh its choices with."""
    some = batch.slice(0, SAMPLE_ROWS)
    found = {}
    for relation in relations:
        rows = some
        if relation.joins:
            every = frozenset(relation.schema.names)
            rows = joiner(relation, tables or {}, every)(some).batch.slice(0, SAMPLE_ROWS)
        found[relation] = rows
    return found
