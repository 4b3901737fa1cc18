"""What expiry looks at: the rows that end, however many are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from muntin.operators import RowEngine, appearances, distinct, spans
from muntin.operators.state import calendar, live_rows, newest, row_log, segments
from muntin.plan.operators import Difference, Distinct, Node, RowFinal, RowPlan
from operators.random_plans import SCHEMA, STREAMS, TIME, leaf
from operators.test_lifetimes import absent, pair

STEP, ROWS = 10, 30


class Looked:
    """How many entries and rows were looked at, sorted or moved, since the last question."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for module in (calendar, newest, row_log, segments):
            for name in ("_merged", "merged"):
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, self._counting(getattr(module, name)))
        real, cut = calendar.CalendarChunk.sorted, calendar.CalendarChunk.cut

        def sort(chunk: Any) -> Any:
            self.count += 0 if chunk.is_sorted else chunk.ends.size
            return real(chunk)

        def take(chunk: Any, begin: int, end: int) -> Any:
            # What is left is a view; what is due is looked at.
            self.count += end if begin == 0 else 0
            return cut(chunk, begin, end)

        monkeypatch.setattr(calendar.CalendarChunk, "sorted", sort)
        monkeypatch.setattr(calendar.CalendarChunk, "cut", take)
        ending, matches = appearances.ending, live_rows.matches

        def ended(*given: Any) -> Any:
            found = ending(*given)
            self.count += found.size
            return found

        def matched(*given: Any) -> Any:
            found = matches(*given)
            self.count += found.kept.size
            return found

        for module in (appearances, distinct, spans):
            monkeypatch.setattr(module, "ending", ended)
        monkeypatch.setattr(live_rows, "matches", matched)

    def _counting(self, real: Any) -> Any:
        def counted(parts: Any) -> Any:
            for part in parts:
                self.count += len(getattr(part, "ends", getattr(part, "numbers", ())))
                self.count += len(part) if isinstance(part, segments.Segment) else 0
            return real(parts)

        return counted


def rows(rng: np.random.Generator, number: int) -> pa.Table:
    times = np.sort(rng.integers(number * STEP, (number + 1) * STEP, ROWS))
    columns = {"ts": times, "k": rng.integers(0, 4000, ROWS) * 1.0, "s": ["x"] * ROWS}
    return pa.table(columns | {"v": [0] * ROWS}, schema=SCHEMA)


OPERATORS = {
    "join": pair,
    "absence": absent,
    "distinct": lambda a, b: Distinct(a),
    "values": lambda a, b: Difference(a, b, "except"),
    "bag": lambda a, b: Difference(a, b, "all"),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_expiry_looks_at_what_ends_and_not_at_what_is_kept(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = Looked(monkeypatch)
    found = {}
    for batches in (24, 240):
        length = batches * STEP
        root: Node = OPERATORS[name](leaf("a", length), leaf("b", length))
        output = "final" if root.label == "STR" else "append"
        engine = RowEngine(RowPlan(STREAMS, (RowFinal("q", root, TIME, output=output),)))
        rng = np.random.default_rng(4)
        # Until as many rows end as come, and then for one more window.
        for number in range(2 * batches):
            if number == batches:
                looked.count = 0
            mark = number * STEP
            given = {each: rows(rng, number) for each in "ab"}
            engine.feed(given, dict.fromkeys("abc", mark))
        kept = engine.statistics.kept["q"]
        found[batches] = (looked.count / batches, kept)
    (few, least), (many, most) = found.values()
    assert few > ROWS
    assert most > 4 * least
    # Rows of a window ten times as long are merged a few times more, by doubling; but they are not
    # looked at when others end.
    assert many < 4 * few, found
    assert many < most / 10, found


@pytest.mark.parametrize("how", ["absence", "except"])
def test_a_short_right_window_makes_few_segments(how: str) -> None:
    """Right rows stay for as long again as left rows live; partitions are as wide as that."""
    left, right = leaf("a", 100_000), leaf("b", 8)
    root: Node = absent(left, right) if how == "absence" else Difference(left, right, "except")
    engine = RowEngine(RowPlan(STREAMS, (RowFinal("q", root, TIME, output="final"),)))
    times = np.arange(5000) * 10
    columns = {"ts": times, "k": times % 997, "s": ["a"] * times.size, "v": times % 7}
    rows = pa.table(columns).select(SCHEMA.names).cast(SCHEMA)
    engine.feed({"a": rows.slice(0, 10), "b": rows}, {"a": 50_000, "b": 50_000})
    operator = engine._graph.steps[-1].operator
    assert len(operator._sides[1]) == 5000
    assert len(operator._sides[1].all()) < 20
