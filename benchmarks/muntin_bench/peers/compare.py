"""Answers of all sides compared before any time is reported: keys and counts exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from muntin.errors import MuntinError
from muntin_bench.peers.questions import Aggregate, Spec

# Peers round at every addition of a float; this is far above what that adds up to here.
CLOSE = 1e-9
_QUERIES, _WINDOWS, _GROUPS = 3, 4, 3


class AnswersDifferError(MuntinError, AssertionError):
    """A side whose answers are not those of the others: nothing of it may be timed."""


def check_same(
    side: str,
    found: Mapping[str, pa.Table],
    wanted: Mapping[str, pa.Table],
    queries: Sequence[Spec],
) -> int:
    """Refuse answers that differ from the wanted ones; returns how many rows were compared.

    Keys and counts must be equal, sums within a relative error of 1e-9. The order of rows does
    not matter.
    """
    compared = 0
    for query in queries:
        if query.name not in found:
            raise _differ(side, query, "has no answer")
        theirs, ours = (_sorted(tables[query.name], query) for tables in (found, wanted))
        if theirs.height != ours.height:
            raise _differ(side, query, f"has {theirs.height:,} rows, not {ours.height:,}")
        for place, name in enumerate(query.columns):
            close = place > len(query.groups) and ours[name].dtype.is_float()
            _check_column(side, query, (name, close), theirs, ours)
        compared += ours.height
    return compared


def _sorted(table: pa.Table, query: Spec) -> pl.DataFrame:
    frame = pl.DataFrame(pl.from_arrow(table.select(list(query.columns))))
    return frame.sort("window_start", *query.groups)


def _check_column(
    side: str, query: Spec, column: tuple[str, bool], theirs: pl.DataFrame, ours: pl.DataFrame
) -> None:
    name, close = column
    found, wanted = theirs[name], ours[name]
    if close:
        same = np.isclose(found.cast(pl.Float64).to_numpy(), wanted.to_numpy(), CLOSE, 0)
    else:
        pairs = zip(found.cast(wanted.dtype).to_list(), wanted.to_list(), strict=True)
        same = np.array([own == other for own, other in pairs], np.bool_)
    wrong = np.flatnonzero(~same)
    if wrong.size:
        row = int(wrong[0])
        keys = ours.select("window_start", *query.groups).row(row)
        raise _differ(side, query, f"{name} is {found[row]}, not {wanted[row]}, at {keys}")


def _differ(side: str, query: Spec, what: str) -> AnswersDifferError:
    return AnswersDifferError(
        f"answers of {side} differ: query {query.name} {what}",
        hint=f"nothing of this side is timed; the query was {query.sql}",
    )


def check_recomputed(
    side: str, found: Mapping[str, pa.Table], rows: pa.Table, queries: Sequence[Spec]
) -> int:
    """Compare a few windows of a few queries with sums over their rows; returns how many."""
    frame = pl.DataFrame(pl.from_arrow(rows))
    ticks = frame["ts"].cast(pl.Int64).to_numpy()
    step = max(len(queries) // _QUERIES, 1)
    return sum(
        _check_windows(side, found[query.name], query, frame, ticks) for query in queries[::step]
    )


def _check_windows(
    side: str, answers: pa.Table, query: Spec, frame: pl.DataFrame, ticks: npt.NDArray[np.int64]
) -> int:
    chosen = _sorted(answers, query)
    starts = chosen["window_start"].unique().sort()
    # The first and the last are those that hold rows in a part of the window only.
    places = np.unique(np.linspace(0, starts.len() - 1, _WINDOWS).round().astype(int))
    outside = frame.filter((pl.col("ts").cast(pl.Int64) < starts[0]) & _where(query))
    if starts.len() and outside.height:
        raise _differ(side, query, f"leaves out the windows before {starts[0]}")
    compared = 0
    for start in starts.gather(places.tolist()).to_list():
        first, last = np.searchsorted(ticks, [start, start + query.range])
        held = frame.slice(first, last - first).filter(_where(query))
        own = chosen.filter(pl.col("window_start") == start)
        compared += _check_groups(side, query, own, held)
    return compared


def _where(query: Spec) -> pl.Expr:
    return pl.sql_expr(query.where) if query.where else pl.lit(True)


def _check_groups(side: str, query: Spec, own: pl.DataFrame, held: pl.DataFrame) -> int:
    """All groups must be there; the values of some are computed from their rows."""
    keys = list(query.groups)
    groups = held.select(keys).unique().height if keys else 1
    if own.height != groups:
        raise _differ(side, query, f"has {own.height} rows in a window of {groups} groups")
    some = own.gather_every(max(own.height // _GROUPS, 1))
    for row in some.iter_rows(named=True):
        rows = held.filter(*(pl.col(key) == row[key] for key in keys)) if keys else held
        for each in query.aggregates:
            value = _recomputed(rows, each)
            given = row[each.name]
            same = given == value
            if isinstance(value, float) and given is not None:
                same = math.isclose(given, value, rel_tol=CLOSE)
            if not same:
                raise _differ(side, query, f"{each.name} is {row[each.name]}, not {value}")
    return some.height


def _recomputed(rows: pl.DataFrame, each: Aggregate) -> Any:
    """What an aggregate of rows is, one row after the other."""
    held = rows.filter(pl.sql_expr(each.where)) if each.where else rows
    if each.function == "count":
        return held.height
    values = held[each.column].to_list()
    if each.function == "distinct":
        return len(set(values))
    if each.function == "top":
        return sorted(values, reverse=True)[:10]
    if not values:
        return None
    if each.function in ("min", "max"):
        return min(values) if each.function == "min" else max(values)
    total = math.fsum(values)
    return total / len(values) if each.function == "avg" else total


def check_hottest(
    side: str, found: Mapping[str, pa.Table], wanted: Mapping[str, pa.Table], query: Spec
) -> None:
    """The second half of NEXMark's query 5, done in the same way for all sides."""
    theirs, ours = (hottest(tables[query.name]) for tables in (found, wanted))
    if not theirs.equals(ours):
        raise _differ(side, query, "has other hottest auctions")


def hottest(answers: pa.Table) -> pl.DataFrame:
    """The auctions with the most bids of every window, from their counts."""
    frame = pl.DataFrame(pl.from_arrow(answers)).select("window_start", "auction", "n")
    most = pl.col("n").max().over("window_start")
    kept = frame.filter(pl.col("n") == most).cast(pl.Int64)
    return kept.sort("window_start", "auction")
