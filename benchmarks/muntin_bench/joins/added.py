"""One more join beside many over the same streams and key: what it costs, and what it gives.

The joins differ in windows, conditions and residual conditions, and share one store of rows. So a
join that gives few rows should add little, whatever it costs alone.
"""

from __future__ import annotations

from statistics import median
from time import process_time

import numpy as np
import pyarrow as pa

import muntin
from muntin_bench.progress import step
from muntin_bench.report import Check, Section

_RUNNING = 64
_ADDED = 16
_SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()})
_VALUES = 1000
# Of the joins that are added, the least value of the other side: all rows, or one in fifty.
_KINDS = {"as many rows as the others": 0, "one in fifty of them": _VALUES - _VALUES // 50}


def _query(name: str, number: int, least: int) -> str:
    """A join with windows and conditions of its own."""
    lengths = 40 + 10 * (number % 8), 30 + 10 * (number % 5)
    residual = f" AND a.v + {number} > b.v - {_VALUES}"
    return (
        f"CREATE QUERY {name} AS SELECT a.v AS x, b.v AS y FROM a [RANGE {lengths[0]}] "
        f"JOIN b [RANGE {lengths[1]}] ON a.k = b.k WHERE b.v >= {least}{residual}"
    )


def _batches(rows: int, count: int) -> list[dict[str, pa.Table]]:
    random = np.random.default_rng(3)
    found = []
    for number in range(count):
        own = {}
        for name in "ab":
            times = np.sort(random.integers(100 * number, 100 * (number + 1), rows))
            keys, values = random.integers(0, rows, rows), random.integers(0, _VALUES, rows)
            own[name] = pa.table([times, keys, values], schema=_SCHEMA)
        found.append(own)
    return found


def _cost(queries: list[str], batches: list[dict[str, pa.Table]]) -> tuple[float, dict[str, int]]:
    """CPU seconds of all batches but the first two, and the rows that each query gave in them."""
    stream = muntin.stream(queries, {"a": _SCHEMA, "b": _SCHEMA}, time="ts")
    seconds = 0.0
    given: dict[str, int] = {}
    for number, batch in enumerate(batches):
        begin = process_time()
        found = [stream.feed(batch[name], name) for name in "ab"]
        if number > 1:
            seconds += process_time() - begin
            for results in found:
                for name in results:
                    given[name] = given.get(name, 0) + len(results[name])
    return seconds, given


def added(rows: int, repeats: int, running: int = _RUNNING) -> tuple[Section, list[Check]]:
    """What joins add that give many rows or few, relative to one that runs alone."""
    batches = _batches(rows, 6)
    base = [_query(f"q{number}", number, 0) for number in range(running)]
    lines, ratios = [], {}
    for kind, least in _KINDS.items():
        step(f"{_ADDED} joins beside {running}, {kind}")
        # None is equal to one that runs: such would be the same operators.
        more = [_query(f"m{number}", number + running, least) for number in range(_ADDED)]
        runs = []
        for _ in range(repeats):
            alone, _ = _cost(more[:1], batches)
            before, _ = _cost(base, batches)
            after, given = _cost([*base, *more], batches)
            runs.append((alone, (after - before) / _ADDED))
        ratios[kind] = median(each / alone for alone, each in runs)
        one, extra = median(run[0] for run in runs), median(run[1] for run in runs)
        shown = sum(count for name, count in given.items() if name.startswith("m")) / _ADDED
        lines.append((kind, f"{shown:,.0f}", f"{one * 1e3:,.1f}", f"{extra * 1e3:,.1f}"))
    columns = ("a join that gives", "rows", "ms of CPU alone", f"ms beside {running}")
    many, few = _KINDS
    checks = [
        Check(f"a join of few rows beside {running} against alone", 0.5, ratios[few]),
        Check(f"a join of many rows beside {running} against alone", 1, ratios[many]),
    ]
    return Section("one more join over a store that many share", columns, tuple(lines)), checks
