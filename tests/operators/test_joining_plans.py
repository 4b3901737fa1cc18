"""Random plans whose queries join and leave an engine, each right from its first whole instant.

Roots come again, so that queries find operators that run, rows that others keep, and stores with
room for few conditions; streams come and go with the queries that read them.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from muntin.operators import RowEngine
from muntin.operators.joins import shared_join
from muntin.plan.operators import (
    Difference,
    Distinct,
    Exists,
    Join,
    Node,
    RowFinal,
    RowPlan,
    Windowed,
    has_whole,
    leaves,
)
from muntin.testing import row_oracle as oracle
from operators.random_plans import STREAMS, batches, finals, lasting, leaf, stream, table


def windowed(rng: random.Random, place: int) -> Windowed:
    """One of a few leaves, some of which have less columns."""
    where = rng.choice([None, None, None, "v > 0"])
    found = leaf(rng.choice("ab"), rng.choice([3, 3, 8, 8, 12]), where, rng.choice(["v", "v % 2"]))
    columns = tuple(replace(each, name=f"{each.name}{place}") for each in found.columns)
    return replace(found, columns=columns[: rng.choice([2, 3, 3, 3])])


def root_of(rng: random.Random) -> Node:
    """A single operator over leaves, as most SQL gives, or a random tree."""
    if rng.random() < 0.3:
        return lasting(rng)
    one, other = windowed(rng, 0), windowed(rng, 1)
    kind = rng.choice(["join", "join", "join", "exists", "exists", "distinct", "difference"])
    if kind == "distinct":
        return Distinct(one)
    if kind == "difference":
        return Difference(one, replace(one, stream="b"), rng.choice(["all", "except", "intersect"]))
    places = rng.choice([(0,), (1,), (0, 1)])
    if kind == "join":
        return Join((one, other), (places, places))
    return Exists(one, other, (places, places), negated=rng.random() < 0.6)


def plan_of(shown: list[RowFinal]) -> RowPlan:
    """The queries, and only the streams that they read."""
    read = {each.stream for final in shown for each in leaves(final.root)}
    return RowPlan({name: each for name, each in STREAMS.items() if name in read}, tuple(shown))


class Run:
    """An engine that queries join and leave, and what each of them has shown."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._roots: list[Node] = []
        self.queries = self._drawn("first")
        self.since: dict[str, int | None] = {final.name: None for final in self.queries}
        self.found: dict[str, list[pa.Table]] = {}
        self.sooner = 0
        self._seen: dict[str, int] = {}
        self._marks: dict[str, int] = {}
        self._engine = RowEngine(plan_of(self.queries))

    def _drawn(self, name: str) -> list[RowFinal]:
        rng, found = self._rng, []
        for number in range(rng.choice([1, 1, 2, 3])):
            again = self._roots and rng.random() < 0.4
            self._roots.append(rng.choice(self._roots) if again else root_of(rng))
            shown = finals(rng, self._roots[-1], f"{name}x{number}")
            found += rng.sample([each for each in shown if "restore" not in each.name], 2)
        return found

    def change(self, name: str) -> None:
        """Let some queries leave, and others join."""
        rng, fresh = self._rng, self._drawn(name)
        stay = [final for final in self.queries if rng.random() < 0.8]
        self.queries = rng.sample([*stay, *fresh], len(stay) + len(fresh))
        plan = plan_of(self.queries)
        self._engine.see({each: t for each, t in self._seen.items() if each in plan.streams})
        self._engine.adopt(plan)
        for final in fresh:
            since = self.since[final.name] = self._engine.since(final.name)
            usual = self._usual(final)
            assert since is None or (usual is not None and since <= usual)
            self.sooner += since != usual

    def _usual(self, final: RowFinal) -> int | None:
        read = leaves(final.root)
        seen = [self._seen[each.stream] for each in read if each.stream in self._seen]
        ranges = [each.range for each in read if each.range is not None]
        lasting = sum(ranges) if has_whole(final.root) else max(ranges, default=1)
        return max(seen) + lasting if seen else None

    def feed(self, batch: dict[str, pa.Table], watermarks: dict[str, int]) -> None:
        """Rows of those streams that some query reads; the others' times are known all the same."""
        for name, rows in batch.items():
            self._seen[name] = max([self._seen.get(name, -1), *rows["ts"].to_pylist()])
        self._marks.update(watermarks)
        read = self._engine.plan.streams
        given = {name: rows for name, rows in batch.items() if name in read}
        marks = {name: mark for name, mark in self._marks.items() if name in read}
        self._take(self._engine.feed(given, marks))
        if self._rng.random() < 0.3:
            self._engine = RowEngine.restore(self._engine.plan, self._engine.snapshot())

    def close(self) -> None:
        """All that is left."""
        self._take(self._engine.close())

    def _take(self, results: dict[str, pa.Table]) -> None:
        for name, shown in results.items():
            self.found.setdefault(name, []).append(shown)


def check(final: RowFinal, since: int | None, shown: pa.Table, tables: dict[str, pa.Table]) -> None:
    """What a query showed, against all that there was from an instant on."""
    whole = oracle.answers(plan_of([final]), final.root, tables)
    if final.slide is None and final.show == "rows":
        cut = [
            replace(each, begin=each.begin if since is None else max(each.begin, since))
            for each in whole
            if each.end is None or since is None or each.end > since
        ]
        oracle.check_lifetimes(cut, oracle.replayed(shown) if "op" in shown.column_names else shown)
        return
    horizon = max((each.begin for each in whole), default=0)
    leads = 1 if final.slide is None else 2
    begin = -20 if since is None else since + (final.slide is not None)
    step, phase = final.slide or 1, final.phase if final.slide else 0
    ends = [time for time in range(begin, horizon + 1) if (time - phase) % step == 0]
    expected: Counter[Any] = oracle.windows(final, whole, ends)
    if since is not None and final.show == "istream":
        # What is new at the first end was there before, for all that the query knows.
        expected = Counter({key: n for key, n in expected.items() if key[0] != ends[0]})
    got = Counter((times[-1], values) for times, values in oracle.shown(shown, leads))
    assert Counter({key: n for key, n in got.items() if key[0] <= horizon}) == expected


@pytest.mark.parametrize("seed", range(24))
def test_queries_join_and_leave(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(shared_join, "MOST_CONDITIONS", rng.choice([1, 2, 3, 62]))
    rows = {name: stream(rng, rng.choice([10, 25, 40]), 40) for name in STREAMS}
    run = Run(rng)
    for number, (batch, watermarks) in enumerate(batches(rng, rows, rng.choice([0, 3, 8]))):
        if number and rng.random() < 0.5:
            run.change(f"n{number}")
        run.feed(batch, watermarks)
    run.close()
    tables = {name: table(each) for name, each in rows.items()}
    for final in run.queries:
        check(final, run.since[final.name], pa.concat_tables(run.found[final.name]), tables)
