"""The constants by which row queries are weighed: what operators take per row in and per row out.

Operators run in the engine over plans that give few rows or many, and the CPU time of each of
their steps is noted with what went in and came out. Of each kind the two constants are those that
fit best.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from time import process_time_ns
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from muntin.expressions import bind_text
from muntin.operators import RowEngine
from muntin.operators.distinct import Pieces
from muntin.operators.exists import Presence
from muntin.operators.joins.join import WindowJoin
from muntin.operators.joins.strict_join import StrictJoin
from muntin.operators.select import Leaf
from muntin.plan.operators import (
    Column,
    Distinct,
    Exists,
    Join,
    Node,
    RowFinal,
    RowPlan,
    StreamSchema,
    Windowed,
)
from muntin.plan.timeline import Timeline
from muntin.planner.rows.rewritings.costs import CONSTANTS
from muntin_bench.progress import step
from muntin_bench.report import Check, Section

_SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()})
_TIME = Timeline("ts", pa.int64())
_STREAMS = {name: StreamSchema(_SCHEMA, _TIME) for name in "abc"}
# What is paid per row that comes in, and where it can be told apart, per row that goes out.
_KINDS: dict[type, tuple[str, ...]] = {
    Leaf: ("read",),
    WindowJoin: ("join_in", "join_out"),
    StrictJoin: ("strict_in", "strict_out"),
    Presence: ("exists_in", "exists_out"),
    Pieces: ("distinct_in",),
}
# Nanoseconds, what came in, what went out.
_Points = dict[type, list[tuple[int, ...]]]


def _leaf(stream: str, length: int, least: int = 0) -> Windowed:
    columns = tuple(Column(f"{stream}.{name}", bind_text(name, _SCHEMA)) for name in ("k", "v"))
    where = bind_text(f"v >= {least}", _SCHEMA) if least else None
    return Windowed(stream, length, where, columns)


def _plans() -> list[Node]:
    """Each operator with few rows that go out, and with many."""
    found: list[Node] = []
    for length in (20, 100, 300):
        a, b, c = (_leaf(name, length, 500 if length == 100 else 0) for name in "abc")
        join = Join((a, b), ((0,), (0,)))
        short = Exists(a, _leaf("c", 20), ((0,), (0,)), negated=True)
        long = Exists(a, c, ((0,), (0,)))
        strict = [Join((each, b), ((0,), (0,))) for each in (short, long)]
        found += [join, short, long, *strict, Distinct(a), Exists(join, c, ((0,), (0,)))]
    return found


def _batches(rows: int, count: int, keys: int) -> list[dict[str, pa.Table]]:
    chance = np.random.default_rng(7)
    found = []
    for number in range(count):
        own = {}
        for name in "abc":
            times = np.sort(chance.integers(100 * number, 100 * (number + 1), rows))
            values = chance.integers(0, keys, rows), chance.integers(0, 1000, rows)
            own[name] = pa.table([times, *values], schema=_SCHEMA)
        found.append(own)
    return found


def _watched(engine: RowEngine, points: _Points) -> None:
    """Note what each step of each operator takes."""
    for each in engine._graph.steps:  # noqa: SLF001 - what is measured is inside
        operator = each.operator
        kind = type(operator)
        if kind not in _KINDS:
            continue
        name = "read" if kind is Leaf else "step"
        call = getattr(operator, name)

        def timed(given: Any, *rest: Any, call: Any = call, own: list[Any] = points[kind]) -> Any:
            begin = process_time_ns()
            found = call(given, *rest)
            taken = process_time_ns() - begin
            if rest:
                coming = sum(len(one.born) + one.ended.size for one in given)
            else:
                coming = given.num_rows if given is not None else 0
            own.append((taken, coming, len(found.born) + found.ended.size))
            return found

        setattr(operator, name, timed)


def measured(rows: int, repeats: int) -> dict[str, float]:
    """Nanoseconds per row of each constant."""
    points: _Points = defaultdict(list)
    for keys in (rows * 8, rows):
        batches = _batches(rows, 24, keys)
        for root in _plans():
            for _ in range(repeats):
                own: _Points = defaultdict(list)
                # DISTINCT that shows changes counts its rows, and is another operator.
                output: Literal["append", "changes"]
                output = "append" if isinstance(root, Distinct) else "changes"
                final = RowFinal("q", root, _TIME, output=output)
                engine = RowEngine(RowPlan(_STREAMS, (final,)))
                _watched(engine, own)
                for number, batch in enumerate(batches):
                    engine.feed(batch, dict.fromkeys("abc", 100 * (number + 1)))
                for kind, found in own.items():
                    # Windows are full by then, and kernels compiled.
                    late = found[len(found) // 3 :]
                    points[kind].append(tuple(map(sum, zip(*late, strict=True))))
    constants: dict[str, float] = {}
    for kind, found in points.items():
        constants |= zip(_KINDS[kind], _fitted(found, len(_KINDS[kind])), strict=True)
    return constants


def _fitted(points: list[tuple[int, ...]], count: int) -> list[float]:
    """The constants that explain the times best, each workload counting alike."""
    taken, *passed = (np.array(each, float) for each in zip(*points, strict=True))
    design = np.stack([each / taken for each in passed[:count]], axis=1)
    found, *_ = np.linalg.lstsq(design, np.ones(taken.size), rcond=None)
    return [float(each) for each in found]


def constants(quick: bool) -> tuple[list[Section], list[Check]]:
    """What is measured here beside what plans are weighed by."""
    step("constants of row operators")
    found = measured(1000 if quick else 5000, 1 if quick else 3)
    ratios = {name: found[name] / planned for name, planned in CONSTANTS.items()}
    typical = median(ratios.values())
    lines = [
        (name, f"{CONSTANTS[name]:,.0f}", f"{found[name]:,.0f}", f"{ratio / typical:.2f}")
        for name, ratio in ratios.items()
    ]
    columns = ("constant", "in the planner, ns", "here, ns", "relative to the others")
    worst = max(max(ratio / typical, typical / max(ratio, 1e-9)) for ratio in ratios.values())
    check = Check("constants of row operators, relative to one another", 4, worst)
    return [Section("CPU per row of operators over rows", columns, tuple(lines))], [check]
