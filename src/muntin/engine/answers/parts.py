"""Answers from several ranges of keys, brought together window by window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.engine.answers.families import Family
from muntin.engine.slices.partials import PartialBatch

Column: TypeAlias = pa.Array | pa.ChunkedArray

# A chunk of a result should have so many rows, or tables of it are slow to read.
_LONG = 256
# Pieces of fewer rows, on average, are gathered row by row instead of being chunks.
_SHORT = 64


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
    pieces = owners[order], places[order]
    fresh = np.ones(windows.size, np.bool_)
    fresh[1:] = (np.diff(queries) != 0) | (np.diff(windows) != 0)
    begins = np.flatnonzero(fresh)
    rows = _offsets([np.diff(each.rows) for each in parts], order, begins)
    shown = _offsets([np.diff(each.shown) for each in parts], order, begins)
    runs = np.searchsorted(queries[begins], np.arange(parts[0].runs.size))
    columns = _columns(parts, *pieces)
    return Rows(windows[begins], runs, rows, shown, columns, _failed(parts, *pieces))


def _columns(parts: Sequence[Rows], owners: Ints, places: Ints) -> list[Column]:
    """The columns of all parts, piece by piece: a run of a part each."""
    columns = [[each.columns[number] for each in parts] for number in range(len(parts[0].columns))]
    if int(sum(each.shown[-1] for each in parts)) < _SHORT * owners.size:
        # Some answers have a run for each group: so short pieces are gathered row by row.
        rows = pa.array(_rows_of([each.shown for each in parts], owners, places))
        return [
            pa.chunked_array(
                [chunk for each in column for chunk in _chunks(each)], type=column[0].type
            )
            .combine_chunks()
            .take(rows)
            for column in columns
        ]
    listed = list(zip(owners.tolist(), places.tolist(), strict=True))
    shown = [each.shown.tolist() for each in parts]
    return [
        pa.chunked_array(
            [
                column[owner].slice(
                    shown[owner][place], shown[owner][place + 1] - shown[owner][place]
                )
                for owner, place in listed
            ],
            type=column[0].type,
        )
        for column in columns
    ]


def _chunks(column: Column) -> list[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _rows_of(offsets: Sequence[Ints], owners: Ints, places: Ints) -> Ints:
    """The rows of pieces, in turn, where the rows of all parts lie one part behind the other."""
    sizes = np.array([each.size - 1 for each in offsets])
    before = (np.cumsum([0, *(int(each[-1]) for each in offsets)])[:-1]).astype(np.int64)
    runs = (np.cumsum(sizes) - sizes)[owners] + places
    starts = np.concatenate(
        [each[:-1] + shift for each, shift in zip(offsets, before, strict=True)]
    )
    counts = np.concatenate([np.diff(each) for each in offsets])[runs]
    ends = np.cumsum(counts)
    found: Ints = np.repeat(starts[runs] - (ends - counts), counts) + np.arange(counts.sum())
    return found


def _offsets(counts: Sequence[Ints], order: Ints, begins: Ints) -> Ints:
    """The first row of each run, and one past the last, of how many each part has in order."""
    every = np.concatenate(([0], np.cumsum(np.concatenate(counts)[order])))
    return np.append(every[begins], every[-1])


def _failed(parts: Sequence[Rows], owners: Ints, places: Ints) -> Ints | None:
    if all(each.failed is None for each in parts):
        return None
    every = [
        np.zeros(int(each.rows[-1]), np.int64) if each.failed is None else each.failed
        for each in parts
    ]
    found: Ints = np.concatenate(every)[_rows_of([each.rows for each in parts], owners, places)]
    return found
