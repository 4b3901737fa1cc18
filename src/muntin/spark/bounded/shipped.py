"""A plan on its way to the workers, which unpack it once."""

from __future__ import annotations

import hashlib
import pickle
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from muntin.aggregates.registry import names, register
from muntin.aggregators.registry import admit, own
from muntin.engine.rows.stage_a import StageA
from muntin.plan.nodes import Final, SharedPlan
from muntin.queries.source import SourceText
from muntin.spark.bounded.messages import LIMITS, Limits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REMEMBERED = 4


@dataclass(frozen=True)
class Shipped:
    """A plan and its tables as bytes that every worker has."""

    broadcast: Any
    digest: str
    buckets: int
    limits: Limits = LIMITS

    def open(self) -> Unpacked:
        """The plan, ready to run in this process."""
        found = _unpacked.get(self.digest)
        if found is None:
            plan, tables, techniques = pickle.loads(self.broadcast.value)
            _register(plan)
            admit(techniques)
            found = _unpacked[self.digest] = Unpacked(plan, tables)
            while len(_unpacked) > _REMEMBERED:
                _unpacked.popitem(last=False)
        _unpacked.move_to_end(self.digest)
        return found


@dataclass(frozen=True)
class Unpacked:
    """A plan in a worker, and its stage A."""

    plan: SharedPlan
    tables: Mapping[str, pa.Table]
    stage_a: StageA = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stage_a", StageA(self.plan, self.tables))


_unpacked: OrderedDict[str, Unpacked] = OrderedDict()


def ship(
    session: SparkSession,
    plan: SharedPlan,
    tables: Mapping[str, pa.Table],
    buckets: int,
    limits: Limits,
) -> Shipped:
    """Send a plan to the workers, with the tables it joins."""
    joined = {join.table for relation in plan.relations for join in relation.joins}
    needed = {name: table for name, table in tables.items() if name in joined}
    data = packed(plan, needed)
    digest = hashlib.sha256(data).hexdigest()
    return Shipped(session.sparkContext.broadcast(data), digest, buckets, limits)


def packed(plan: SharedPlan, tables: Mapping[str, pa.Table]) -> bytes:
    """A plan and tables as bytes, without what only people read."""
    from pyspark import cloudpickle  # noqa: PLC0415  imported when it is used

    lean = replace(plan, finals=tuple(_lean(final) for final in plan.finals))
    # Aggregates and techniques that users register may live in their notebook: only cloudpickle
    # carries those.
    content = lean, tables, own(plan.techniques)
    data: bytes = cloudpickle.dumps(content)  # type: ignore[no-untyped-call]
    return data


def _lean(final: Final) -> Final:
    """A final without its query's syntax trees, most of a plan's bytes: all is bound already."""
    query = replace(
        final.query, select=(), where=None, group_by=(), having=None, joins=(), text=SourceText()
    )
    return replace(final, query=query)


def _register(plan: SharedPlan) -> None:
    """Make aggregates that a user has registered on the driver known here too."""
    for final in plan.finals:
        for lowering in final.lowerings:
            if lowering.aggregate.algebra.name.lower() not in names():
                register(lowering.aggregate.algebra)
