"""The rows of one relation: a batch joined with its tables, and what the plan reads of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.engine.relations import Joiner
from muntin.engine.selecting import Scope
from muntin.errors import DataError
from muntin.expressions import Evaluator
from muntin.plan.nodes import SharedPlan
from muntin.plan.relations import Relation
from muntin.plan.sampling import SAMPLE_ROWS, Sampler

Ints = npt.NDArray[np.int64]


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
        self._evaluate = Evaluator(self._bounds)
        self._readers = [
            final.name for final in plan.finals if plan.partials[final.partials].relation == number
        ]
        relation = plan.relations[number]
        columns = frozenset().union(*(bound.columns for bound in self._bounds))
        self._join = joiner(relation, tables, columns) if relation.joins else None

    def __call__(self, batch: pa.Table) -> Read:
        """The values of a batch."""
        rows, errors = None, Counter[str]()
        if self._join is not None:
            joined = self._join(batch)
            batch, rows = joined.batch, joined.rows
            if joined.errors:
                errors = Counter(dict.fromkeys(self._readers, joined.errors))
        values = dict(zip(self._bounds, self._evaluate(batch), strict=True))
        return Read(Scope(batch.num_rows, values), rows, errors)


def joiner(relation: Relation, tables: Mapping[str, pa.Table], columns: frozenset[str]) -> Joiner:
    """What joins batches with the tables of a relation."""
    for join in relation.joins:
        if join.table not in tables:
            raise DataError(
                f"the rows of table {join.table!r} are not given",
                hint=f'give them with tables={{"{join.table}": ...}}',
            )
    return Joiner(relation, tables, columns)


def sampler(batch: pa.Table, tables: Mapping[str, pa.Table] | None = None) -> Sampler:
    """Gives joined rows of relations, for a plan to weigh its choices with."""
    some = batch.slice(0, SAMPLE_ROWS)

    def joined(relation: Relation) -> pa.Table:
        if not relation.joins:
            return some
        return joiner(relation, tables or {}, frozenset(relation.schema.names))(some).batch

    return joined
