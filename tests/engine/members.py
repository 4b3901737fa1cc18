"""Queries in a stream that others join and leave: what they answer, and what they must answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from muntin.planner import build_plan
from muntin.queries import Query
from muntin.testing import assert_same_rows, oracle

NEVER = 2**62


@dataclass
class Member:
    """A query in the stream: what was seen when it joined, and what it has answered."""

    query: Query
    seen: int
    close: Mapping[str, float]
    left: int = NEVER
    results: list[pa.Table] = field(default_factory=list)

    def check(self, rows: pa.Table, time: str) -> None:
        """Compare with recomputation: what is promised is there, and all that is there is right."""
        plan = build_plan([self.query], rows.schema, time)
        expected = oracle.answer(plan, self.query.name, rows)
        answered = pa.concat_tables([expected.slice(0, 0), *self.results])
        starts = expected["window_start"].cast(pa.int64())
        ends = expected["window_end"].cast(pa.int64())
        promised = pc.and_(pc.greater(starts, self.seen), pc.less_equal(ends, self.left))
        also = pc.is_in(starts, answered["window_start"].cast(pa.int64()).combine_chunks())
        assert_same_rows(answered, expected.filter(pc.or_(promised, also)), close=self.close)


def collect(active: Sequence[Member], due: Mapping[str, pa.Table]) -> None:
    """Give every query the results that it has due."""
    for member in active:
        if member.query.name in due:
            member.results.append(due[member.query.name])
