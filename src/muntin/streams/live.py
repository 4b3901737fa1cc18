"""The local engine with a replanner: queries join, leave and move while it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import pyarrow as pa

from muntin.engine import LocalEngine
from muntin.errors import DataError, UnknownQueryError, did_you_mean
from muntin.plan import SharedPlan
from muntin.planner import Moment, Replanner
from muntin.planner.continuity import dated
from muntin.planner.owners import Reviewer
from muntin.queries import Query


class LiveEngine(LocalEngine):
    """A local engine whose queries join and leave between batches.

    An ``optimizer`` (:class:`muntin.planner.Optimizer`) decides which queries of a stream share
    slices, and decides again when queries join or leave and after batches. It changes no answer.

    >>> from muntin.planner import build_plan
    >>> from muntin.queries import queries
    >>> (first,) = queries("CREATE QUERY q1 AS SELECT sum(v) AS s FROM t [RANGE 4 SLIDE 2]")
    >>> (second,) = queries("CREATE QUERY q2 AS SELECT sum(v) AS s FROM t [RANGE 4 SLIDE 4]")
    >>> engine = LiveEngine(build_plan([first], pa.schema({"ts": "int64", "v": "int64"}), "ts"), 0)
    >>> answers = engine.feed(pa.table({"ts": [1, 2], "v": [10, 20]}))
    >>> engine.add(second)
    >>> engine.feed(pa.table({"ts": [8], "v": [30]}))["q2"].to_pydict()
    {'window_start': [0], 'window_end': [4], 's': [30]}
    """

    def __init__(
        self,
        plan: SharedPlan,
        lateness: int | None = None,
        *,
        tables: Mapping[str, pa.Table] | None = None,
        optimizer: Reviewer | None = None,
        threads: int = 1,
    ) -> None:
        super().__init__(plan, lateness, tables=tables, threads=threads)
        self._replanner = Replanner.of(plan, optimizer)

    @classmethod
    def restore(
        cls,
        plan: SharedPlan,
        data: bytes | Sequence[bytes],
        *,
        tables: Mapping[str, pa.Table] | None = None,
        optimizer: Reviewer | None = None,
    ) -> Self:
        """An engine for the same plan in the state of a snapshot, as of a local engine."""
        engine = super().restore(plan, data, tables=tables)
        engine._replanner = Replanner.of(plan, optimizer)  # noqa: SLF001 - its own class's
        return engine

    def feed(self, batch: pa.Table | pa.RecordBatch) -> dict[str, pa.Table]:
        """Take in a batch; the new results of queries that have windows due.

        After it, queries move to other trees where that is due.
        """
        results = super().feed(batch)
        if self.lateness is not None:
            with self._changing():
                if self._replanner.is_due(self._now):
                    self.replace(self._queries)
        return results

    def add(self, query: Query) -> None:
        """Add a query, from the next batch on.

        It answers at least every window that starts after the largest event time so far, and
        earlier ones if the kept slices hold all their rows. No other query's answers change by a
        bit. A query of the same name is replaced.
        """
        if not isinstance(query, Query):
            raise DataError(
                f"what joins is a query, not a {type(query).__name__}",
                hint="parse SQL text with muntin.queries.queries(text), and add each of them",
            )
        others = [q for q in self._queries if q.name.lower() != query.name.lower()]
        self.replace([*others, query])

    def remove(self, name: str) -> None:
        """Remove a query: it answers nothing more."""
        kept = [query for query in self._queries if query.name.lower() != name.lower()]
        if len(kept) == len(self.plan.finals):
            known = [query.name for query in kept]
            raise UnknownQueryError(f"there is no query {name!r}", hint=did_you_mean(name, known))
        self.replace(kept)

    def replace(self, queries: Sequence[Query]) -> None:
        """Run these queries from the next batch on: all of them, or none if one is refused.

        Those that run already keep what they have; of the others holds what :meth:`add` says.
        """
        schemas = {name: table.schema for name, table in self.tables.items()}
        plan = self._replanner.plan(list(queries), schemas, self._now)
        self.adopt(dated(plan, self.seen))

    @property
    def _now(self) -> Moment:
        return Moment(self.plan, self.watermark, self.recent.rate)

    @property
    def _queries(self) -> list[Query]:
        return [final.query for final in self.plan.finals]
