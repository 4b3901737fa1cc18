"""Random plans of operators over rows with lifetimes, and random streams to run them on."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from muntin.expressions import Bound, bind_text
from muntin.operators import RowEngine
from muntin.plan.operators import (
    Column,
    Difference,
    Distinct,
    Exists,
    Join,
    Node,
    RowFinal,
    RowPlan,
    Select,
    StreamSchema,
    Union,
    Windowed,
    leaves,
)
from muntin.plan.timeline import Timeline

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.float64()), ("s", pa.string()), ("v", pa.int64())])
TIME = Timeline("ts", pa.int64())
STREAMS = {name: StreamSchema(SCHEMA, TIME) for name in ("a", "b", "c")}
NUMBERS = (None, float("nan"), -0.0, 0.0, 1.0, 1.0, 2.0)
TEXTS = (None, "", "a", "b", "longer than eight bytes")


def bound(text: str, schema: pa.Schema = SCHEMA) -> Bound:
    """An expression over a stream's columns."""
    return bind_text(text, schema)


def leaf(stream: str, length: int | None, where: str | None = None, v: str = "v") -> Windowed:
    """The rows of a stream with the columns k, s and v."""
    columns = tuple(Column(name, bound(text)) for name, text in (("k", "k"), ("s", "s"), ("v", v)))
    return Windowed(stream, length, None if where is None else bound(where), columns)


def renamed(node: Node, names: Sequence[str], texts: Sequence[str] | None = None) -> Select:
    """A node with other names for its columns, or other columns."""
    texts = texts or node.schema.names
    columns = tuple(
        Column(name, bound(text, node.schema)) for name, text in zip(names, texts, strict=True)
    )
    return Select(node, None, columns)


def joined(rng: random.Random, nodes: Sequence[Node]) -> Node:
    """A join of nodes with the columns k, s and v."""
    sides = [renamed(node, [f"{name}{i}" for name in "ksv"]) for i, node in enumerate(nodes)]
    places = rng.choice([(0,), (1,), (0, 1), (2,)])
    join = Join(tuple(sides), (places,) * len(nodes))
    if rng.random() < 0.4:
        join = replace(join, residual=bound("v0 < v1 OR s0 = s1", join.schema))
    last = len(nodes) - 1
    return renamed(join, ["k", "s", "v"], ["k0", f"s{last}", f"v0 + v{last}"])


def exists(rng: random.Random, left: Node, right: Node) -> Node:
    """A row while a partner is there or not, or NOT IN."""
    sides = (renamed(left, ["k0", "s0", "v0"]), renamed(right, ["k1", "s1", "v1"]))
    null_aware = rng.random() < 0.4
    keys = [(0,), (1,), (2,), (0, 1), (1, 0)] if null_aware else [(), (0,), (1,), (0, 1)]
    places = rng.choice(keys)
    node = Exists(*sides, (places, places), negated=rng.random() < 0.6, null_aware=null_aware)
    if rng.random() < 0.4:
        schema = pa.schema([*node.left.schema, *node.right.schema])
        node = replace(node, residual=bound("v0 <= v1", schema))
    return renamed(node, ["k", "s", "v"])


def grown(rng: random.Random, size: int) -> Node:
    """A random tree of so many operators."""
    if size == 0:
        length = None if rng.random() < 0.05 else rng.choice([1, 3, 5, 8, 12])
        where = rng.choice([None, None, "v > 0", "k = 1 OR s = 'a'"])
        return leaf(
            rng.choice("abc"), length, where, rng.choice(["v", "v % 2", "CAST(0 AS BIGINT)"])
        )
    kind = rng.choice(["select", "distinct", "join", "join", "exists", "difference", "union"])
    if kind == "select":
        node = grown(rng, size - 1)
        return Select(
            node,
            bound("v < 3 OR k IS NULL", node.schema),
            renamed(node, "ksv", ["k", "s", "v % 3"]).columns,
        )
    if kind == "distinct":
        return Distinct(renamed(grown(rng, size - 1), ["k", "s", "v"], ["k", "s", "v % 2"]))
    first = rng.randrange(size)
    nodes = [grown(rng, first), grown(rng, size - 1 - first)]
    if kind == "join":
        if rng.random() < 0.3:
            nodes.append(grown(rng, 0))
        return joined(rng, nodes)
    if kind == "exists":
        return exists(rng, *nodes)
    if kind == "union":
        return Union(tuple(nodes))
    return Difference(*nodes, rng.choice(["all", "except", "intersect"]))


def lasting(rng: random.Random) -> Node:
    """A random tree whose windows all have a length: others are never whole."""
    while True:
        found = grown(rng, rng.randrange(1, 5))
        if all(each.range is not None for each in leaves(found)):
            return found


def strict(node: Node) -> bool:
    """Whether its label says that rows may end before their time."""
    return node.label == "STR"


def finals(rng: random.Random, root: Node, name: str) -> list[RowFinal]:
    """A root shown in every way."""
    slide = rng.choice([1, 2, 3, 5, 7])
    windowed = {"slide": slide, "phase": rng.randrange(slide), "range": 12}
    return [
        RowFinal(f"{name}_rows", root, TIME, output="final" if strict(root) else "append"),
        RowFinal(f"{name}_final", root, TIME, output="final"),
        RowFinal(f"{name}_changes", root, TIME, output="changes"),
        RowFinal(f"{name}_slide", root, TIME, **windowed),
        RowFinal(f"{name}_restore", root, TIME, restore=True, **windowed),
        RowFinal(f"{name}_in", root, TIME, show="istream", **windowed),
        RowFinal(f"{name}_out", root, TIME, show="dstream"),
    ]


def table(rows: Sequence[tuple[object, ...]]) -> pa.Table:
    """Rows of a stream."""
    columns = list(zip(*rows, strict=True)) or [[] for _ in SCHEMA]
    return pa.table([pa.array(columns[i], each.type) for i, each in enumerate(SCHEMA)], SCHEMA)


def stream(rng: random.Random, count: int, span: int) -> list[tuple[object, ...]]:
    """Rows at random times, in order."""
    rows = [
        (rng.randrange(span), rng.choice(NUMBERS), rng.choice(TEXTS), rng.randrange(4))
        for _ in range(count)
    ]
    return sorted(rows, key=lambda row: row[0])


def batches(
    rng: random.Random, tables: dict[str, list[tuple[object, ...]]], lateness: int
) -> Iterator[tuple[dict[str, pa.Table], dict[str, int]]]:
    """Rows as they arrive, out of order within the lateness, and the watermarks."""
    arrivals = {
        name: sorted(rows, key=lambda row: row[0] + rng.randrange(lateness + 1))
        for name, rows in tables.items()
    }
    done = dict.fromkeys(tables, 0)
    latest: dict[str, int] = {}
    silent = rng.choice([None, None, *tables])
    while any(done[name] < len(rows) for name, rows in arrivals.items() if name != silent):
        batch = {}
        for name, rows in arrivals.items():
            count = 0 if name == silent else rng.choice([0, 1, 2, 5, 20])
            batch[name] = rows[done[name] : done[name] + count]
            done[name] += len(batch[name])
            for row in batch[name]:
                latest[name] = max(latest.get(name, row[0]), row[0])
        yield (
            {name: table(rows) for name, rows in batch.items() if rows},
            {name: time - lateness for name, time in latest.items()},
        )
    if silent is not None:
        yield {silent: table(arrivals[silent])}, {}


def run(
    plan: RowPlan,
    feeds: Iterator[tuple[dict[str, pa.Table], dict[str, int]]],
    restores: random.Random | None = None,
) -> dict[str, pa.Table]:
    """All results of a plan over some batches, with the engine restored now and then."""
    engine = RowEngine(plan)
    found: dict[str, list[pa.Table]] = {final.name: [] for final in plan.finals}

    def take(results: dict[str, pa.Table]) -> None:
        for name, each in results.items():
            found[name].append(each)

    for batch, watermarks in feeds:
        take(engine.feed(batch, watermarks))
        if restores is not None and restores.random() < 0.3:
            engine = RowEngine.restore(plan, engine.snapshot())
    take(engine.close())
    return {name: pa.concat_tables(parts) for name, parts in found.items()}
