"""How many bytes the engine keeps for a group, from one group to a million."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from muntin.engine import LocalEngine, Progress
from muntin.planner import build_plan
from muntin.queries import queries
from muntin_bench.report import Plot, Section

_SECONDS = 600
_WINDOW = "[RANGE '600 seconds' SLIDE '300 seconds']"
_SETS = {
    "one query": f"SELECT k, sum(v) FROM s {_WINDOW} GROUP BY k",
    "four predicates": ";".join(
        f"SELECT k, sum(v) FROM s {_WINDOW} WHERE v > {constant} GROUP BY k"
        for constant in (90, 100, 110, 120)
    ),
}


def memory(groups: Sequence[int]) -> tuple[Section, Plot]:
    """Feed each group two rows on average, over two slices, and ask for the size of the state."""
    rows: list[tuple[str, ...]] = []
    lines: dict[str, tuple[tuple[float, float], ...]] = {}
    for label, text in _SETS.items():
        for count in groups:
            found = kept(text, count)
            size = found.state_bytes / count
            rows.append(
                (
                    f"{label}, {count:,} groups",
                    f"{found.slices:,}",
                    f"{found.cells:,}",
                    f"{found.state_bytes:,}",
                    f"{size:,.0f}",
                )
            )
            lines[label] = (*lines.get(label, ()), (float(count), size))
    columns = ("queries, groups", "slices", "cells", "bytes", "bytes per group")
    section = Section("state by number of groups", columns, tuple(rows))
    return section, Plot("memory", "State of the engine", "groups", "bytes per group", lines)


def kept(text: str, groups: int, seed: int = 0) -> Progress:
    """What an engine holds once it has seen the rows of that many groups."""
    random = np.random.default_rng(seed)
    keys = np.concatenate([np.arange(groups), random.integers(0, groups, groups)])
    times = np.sort(random.integers(0, _SECONDS * 1_000_000, keys.size))
    table = pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us")),
            "k": pa.array(random.permutation(keys)),
            "v": pa.array(random.normal(105, 15, keys.size)),
        }
    )
    engine = LocalEngine(build_plan(queries(text), table.schema, "ts"))
    engine.feed(table)
    return engine.progress()
