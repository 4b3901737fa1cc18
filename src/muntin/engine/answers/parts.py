"""Answers from several ranges of keys, brought together window by window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.engine.families import Family
from muntin.engine.partials import PartialBatch

Ints = npt.NDArray[np.int64]
Column: TypeAlias = pa.Array | pa.ChunkedArray

# A chunk of a result should have so many rows, or tables of it are slow to read.
_LONG = 256


@dataclass(frozen=True)
class Rows:
    """What a family answers, as users see it; runs are those of ``stage_b.Answer``.

    Run r has the rows from ``shown[r]`` on of ``columns``. Before HAVING it had those from
    ``rows[r]`` on, and as many are in ``failed``.
    """

    windows: Ints
    runs: Ints
    rows: Ints
    shown: Ints
    columns: Sequence[Column]
    failed: Ints | None


def are_worth(parts: Sequence[Sequence[PartialBatch]], asked: Sequence[Family]) -> bool:
    """Whether windows have rows enough for each part to be a chunk of their results."""
    starts = [batch.starts for batches in parts for batch in batches if batch.starts.size]
    if not starts:
        return False
    low, high = min(int(each.min()) for each in starts), max(int(each.max()) for each in starts)
    windows = sum(
        float((high - low + range_) // slide + 1)
        for family in asked
        for range_, slide in family.windows[:, :2].tolist()
    )
    entries = sum(each.size for each in starts)
    return len(parts) > 1 and _LONG * len(parts) * windows <= entries


def joined(parts: Sequence[Rows]) -> Rows:
    """The runs of all parts in order of query and window, each with the parts' rows in turn."""
    queries = np.concatenate(
        [np.repeat(np.arange(each.runs.size - 1), np.diff(each.runs)) for each in parts]
    )
    windows = np.concatenate([each.windows for each in parts])
    owners = np.repeat(np.arange(len(parts)), [each.windows.size for each in parts])
    places = np.concatenate([np.arange(each.windows.size) for each in parts])
    order = np.lexsort((owners, windows, queries))
    queries, windows = queries[order], windows[order]
    pieces = list(zip(owners[order].tolist(), places[order].tolist(), strict=True))
    fresh = np.ones(windows.size, np.bool_)
    fresh[1:] = (np.diff(queries) != 0) | (np.diff(windows) != 0)
    begins = np.flatnonzero(fresh)
    rows = _offsets([np.diff(each.rows) for each in parts], order, begins)
    shown = _offsets([np.diff(each.shown) for each in parts], order, begins)
    runs = np.searchsorted(queries[begins], np.arange(parts[0].runs.size))
    columns = [
        pa.chunked_array(
            [
                parts[owner].columns[number].slice(shown_[place], shown_[place + 1] - shown_[place])
                for owner, place in pieces
                for shown_ in [parts[owner].shown]
            ],
            type=column.type,
        )
        for number, column in enumerate(parts[0].columns)
    ]
    return Rows(windows[begins], runs, rows, shown, columns, _failed(parts, pieces))


def _offsets(counts: Sequence[Ints], order: Ints, begins: Ints) -> Ints:
    """The first row of each run, and one past the last, of how many each part has in order."""
    every = np.concatenate(([0], np.cumsum(np.concatenate(counts)[order])))
    return np.append(every[begins], every[-1])


def _failed(parts: Sequence[Rows], pieces: Sequence[tuple[int, int]]) -> Ints | None:
    if all(each.failed is None for each in parts):
        return None
    every = [
        np.zeros(int(each.rows[-1]), np.int64) if each.failed is None else each.failed
        for each in parts
    ]
    found = [np.empty(0, np.int64)]
    for owner, place in pieces:
        rows = parts[owner].rows
        found.append(every[owner][rows[place] : rows[place + 1]])
    return np.concatenate(found)
