"""A stream that queries join and leave at random, with restores, against recomputation."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.members import NEVER, Member, collect
from engine.rich_queries import RichQuery, rich_queries, rich_stream
from muntin.planner import build_plan
from muntin.queries import Query, queries
from muntin.streams import LiveEngine


def one(sql: str) -> Query:
    """The only query of a text."""
    (query,) = queries(sql)
    return query


def streamed(rng: random.Random, most: int) -> list[RichQuery]:
    """Random queries that a stream can answer."""
    pool = rich_queries(rng, most=most)
    return [query for query in pool if "ROWS" not in query.sql and "WATTR" not in query.sql]


def shaken(rng: random.Random, rows: int, by: int) -> pa.Table:
    """A random stream whose rows are out of order by a few ticks."""
    table = rich_stream(rng, rows=rows)
    late = [tick + rng.randrange(by) for tick in table["t"].to_pylist()]
    return table.take(sorted(range(rows), key=late.__getitem__))


@dataclass(frozen=True)
class Chances:
    """How often, from batch to batch, a query joins or leaves and the engine is restored."""

    join: float = 0.4
    leave: float = 0.2
    restore: float = 0.2


OFTEN = Chances()


def live(
    rng: random.Random,
    pool: Sequence[RichQuery],
    table: pa.Table,
    first: int,
    *,
    lateness: int,
    batch: int,
    chances: Chances = OFTEN,
    asked: Callable[[Query], Query] = lambda query: query,
    optimizer: Any = None,
    **options: Any,
) -> LiveEngine:
    """Feed a stream to random queries, and compare all that they answer with recomputation.

    ``first`` queries of the pool are there from the beginning; ``asked`` may change each. The
    engine is as it was before it was closed.
    """
    start = [Member(asked(one(q.sql)), -NEVER, q.close) for q in pool[:first]]
    members, active, waiting = list(start), list(start), list(pool[first:])
    sharing = {} if optimizer is None else {"sharer": optimizer}
    plan = build_plan([each.query for each in active], table.schema, "t", **sharing, **options)
    engine = LiveEngine(plan, lateness, optimizer=optimizer)
    kept, chain = [], list[bytes]()
    for rows in table.to_batches(max_chunksize=batch):
        if waiting and rng.random() < chances.join:
            wanted = waiting.pop()
            # Where the gaps of a newcomer begin is its own matter.
            query = asked(one(wanted.sql.removesuffix(" EMIT EMPTY")))
            seen = -NEVER if engine.seen is None else engine.seen
            active.append(Member(query, seen, wanted.close))
            members.append(active[-1])
            engine.add(query)
        leaving = rng.choice(active) if rng.random() < chances.leave and len(active) > 1 else None
        if leaving is not None and not leaving.query.emit_empty:
            active.remove(leaving)
            engine.remove(leaving.query.name)
            leaving.left = -NEVER if engine.watermark is None else engine.watermark
        if not chain or rng.random() < chances.restore / 2:
            chain = [engine.snapshot()]
        if rng.random() < chances.restore:
            chain.append(engine.snapshot(since=chain[-1]))
        if rng.random() < chances.restore:
            chain.append(engine.snapshot(since=chain[-1]))
            engine = LiveEngine.restore(engine.plan, chain, optimizer=optimizer)
        late = -NEVER if engine.watermark is None else engine.watermark
        kept.append(pa.Table.from_batches([rows]).filter(pc.greater_equal(rows["t"], late)))
        collect(active, engine.feed(rows))
    collect(active, engine.close())
    for member in members:
        plain = replace(member, query=replace(member.query, technique=None, prefer=None))
        plain.check(pa.concat_tables([table.slice(0, 0), *kept]), "t")
    return engine
