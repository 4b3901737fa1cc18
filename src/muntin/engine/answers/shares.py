"""Answers put together from the shares of all buckets, where values are spread over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregates.algebra import Lowered
from muntin.aggregates.columns.holistic.shares import lower_shares
from muntin.engine.answers.families import Family
from muntin.engine.answers.front import Answered, Answerer
from muntin.engine.answers.stage_b import Answer
from muntin.plan.nodes import SharedPlan
from muntin.plan.shares import lies_in_all

# By the number of a family, what a bucket has of it: a table of shares.
Shares = dict[int, pa.Table]
_QUERY, _WINDOW = "query", "window"


def take_shares(plan: SharedPlan, answered: Answered) -> Shares:
    """Take the shares out of a bucket's answers, those of a family of queries together.

    ``plan`` is that of all buckets. A row has the place of its query, the number of its window,
    and what the bucket has of it.
    """
    found: dict[int, list[int]] = {}
    for place, final in enumerate(plan.finals):
        if final.name in plan.spread_queries and final.name in answered.tables:
            found.setdefault(plan.families[place], []).append(place)
    shares = {}
    for family, places in found.items():
        tables = [answered.tables.pop(plan.finals[place].name) for place in places]
        rows = [table.num_rows for table in tables]
        if any(rows):
            shares[family] = _share(plan, np.repeat(places, rows), tables)
    return shares


def _share(plan: SharedPlan, queries: Ints, tables: Sequence[pa.Table]) -> pa.Table:
    """The tables of several queries as one; ``queries`` are the places of each row's."""
    first = plan.finals[queries[0]]
    timeline = plan.slicings[plan.partials[first.partials].slicing].timeline
    # Queries may name the bounds of their windows.
    names = tables[0].column_names
    same = [each if each.column_names == names else each.rename_columns(names) for each in tables]
    whole = pa.concat_tables(same).combine_chunks()
    _, slides, phases = plan.windows[queries].T
    numbers = (timeline.to_ticks(_whole(whole.column(1))).to_numpy() - phases) // slides
    columns = [pa.array(queries), pa.array(numbers), *whole.columns[2:]]
    return pa.table(columns, [_QUERY, _WINDOW, *names[2:]])


class ShareMerger:
    """Puts the shares of all buckets together, and shows queries' answers.

    Every bucket answers the same windows in the same batch, and each value is in one bucket. The
    bucket that is home to a query has all of its windows. ``buckets`` is how many there are.
    """

    def __init__(self, plan: SharedPlan, buckets: int) -> None:
        self._plan, self.buckets = plan, buckets
        self._answerer = Answerer(plan)
        self._members: dict[int, list[int]] = {}
        for place, family in enumerate(plan.families):
            self._members.setdefault(family, []).append(place)

    def __call__(self, shares: Mapping[int, Shares]) -> Answered:
        """The answers of all queries, from the shares of buckets by their numbers."""
        answered = Answered()
        for number in sorted({family for each in shares.values() for family in each}):
            first = self._plan.finals[self._members[number][0]]
            node = self._plan.partials[first.partials]
            home = shares.get(node.home_in(self.buckets), {}).get(number)
            if home is not None:
                others = [
                    each[number]
                    for bucket, each in sorted(shares.items())
                    if number in each and each[number] is not home
                ]
                self._answer(number, [_Piece.of(each) for each in (home, *others)], answered)
        return answered

    def _answer(self, number: int, pieces: Sequence[_Piece], answered: Answered) -> None:
        """Answer the queries of a family; the first piece is from home."""
        home, plan = pieces[0], self._plan
        places = [place for place in self._members[number] if place in home.bounds]
        finals = tuple(plan.finals[place] for place in places)
        windows = np.column_stack((plan.windows[places], np.zeros((len(places), 2), np.int64)))
        family = Family(finals, windows)
        rows = [home.rows_of(piece) for piece in pieces]
        values, failed = [], None
        for lowering in finals[0].lowerings:
            if not lies_in_all(plan.partials[finals[0].partials], lowering):
                values.append(_whole(home.table.column(lowering.name)))
                continue
            columns = [_whole(piece.table.column(lowering.name)) for piece in pieces]
            given = list(zip(rows, columns, strict=True))
            lowered = lower_shares(lowering.aggregate, home.windows.size, given)
            values.append(lowered.values)
            failed = _failed(failed, lowered)
        batch = pa.RecordBatch.from_arrays(values, schema=finals[0].schema)
        runs = np.array([home.bounds[place][0] for place in places] + [home.windows.size])
        every = np.arange(home.windows.size + 1)
        self._answerer.show(family, Answer(home.windows, runs, every, batch, failed), answered)


@dataclass(frozen=True)
class _Piece:
    """What one bucket has of a family: its windows, and by query where these are."""

    table: pa.Table
    windows: Ints
    bounds: dict[int, tuple[int, int]]

    @classmethod
    def of(cls, table: pa.Table) -> _Piece:
        queries, windows = (
            table.column(name).to_numpy().astype(np.int64) for name in (_QUERY, _WINDOW)
        )
        found, firsts = np.unique(queries, return_index=True)
        ends = np.append(firsts[1:], queries.size).tolist()
        bounds = dict(zip(found.tolist(), zip(firsts.tolist(), ends, strict=True), strict=True))
        return cls(table, windows, bounds)

    def rows_of(self, other: _Piece) -> Ints:
        """The rows of the other's windows among one's own."""
        rows = np.empty(other.windows.size, np.int64)
        for query, (low, high) in other.bounds.items():
            first, last = self.bounds[query]
            own, asked = self.windows[first:last], other.windows[low:high]
            found = np.searchsorted(own, asked)
            assert np.array_equal(own[np.minimum(found, own.size - 1)], asked)
            rows[low:high] = first + found
        return rows


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _failed(failed: Ints | None, lowered: Lowered) -> Ints | None:
    """How many aggregates of each row failed so far."""
    if lowered.errors is None:
        return failed
    flags: Ints = lowered.errors.to_numpy(zero_copy_only=False).astype(np.int64)
    return flags if failed is None else failed + flags
