"""Rows that wait for the watermark: what comes in any order goes on in order."""

from __future__ import annotations

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.operators.rows import NONE, Changes, Rows, concat

# As many runs as are worth a look each with every batch.
_RUNS = 16


class Pending:
    """The rows of one edge that begin at or after the watermark, in runs sorted by start.

    Ends wait as well. Operators that run below the watermark themselves give none that has to;
    relations do.
    """

    STATE = ("_runs", "_ended", "_at")

    def __init__(self) -> None:
        self._runs: list[Rows] = []
        self._ended = self._at = NONE

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def held(self) -> list[Rows]:
        """The rows that wait."""
        return list(self._runs)

    def release(self, changes: Changes, watermark: int) -> Changes:
        """The rows that begin before the watermark, in order of start, then of end, and ends."""
        rows = changes.born
        ended, at = self._ends(changes, watermark)
        if len(rows):
            self._runs.append(_in_order(rows))
        due, kept = [], []
        for run in self._runs:
            cut = int(np.searchsorted(run.start, watermark))
            if cut:
                due.append(run.slice(0, cut))
            if cut < len(run):
                kept.append(run.slice(cut, len(run)).owned() if cut else run)
        self._runs = kept if len(kept) < _RUNS else _merged(kept)
        if not due:
            return Changes(rows.slice(0, 0), ended, at)
        return Changes(_sorted(due), ended, at)

    def _ends(self, changes: Changes, watermark: int) -> tuple[Ints, Ints]:
        ended, at = changes.ended, changes.at
        if self._ended.size:
            ended, at = np.concatenate((self._ended, ended)), np.concatenate((self._at, at))
        if not (at >= watermark).any():
            self._ended = self._at = NONE
            return ended, at
        due = at < watermark
        self._ended, self._at = ended[~due], at[~due]
        return ended[due], at[due]


def _in_order(rows: Rows) -> Rows:
    """The rows in order of start, then of end; most come so."""
    if is_in_order(rows.start, rows.end):
        return rows
    return rows.take(np.lexsort((rows.end, rows.start)))


def _sorted(runs: list[Rows]) -> Rows:
    """The rows of some runs, each in order, in order."""
    return runs[0] if len(runs) == 1 else _in_order(concat(runs))


def _merged(runs: list[Rows]) -> list[Rows]:
    """Fewer runs: the smaller half of them as one, so that a row is moved few times."""
    by_size = sorted(runs, key=len)
    half = len(runs) // 2
    return [*by_size[half:], _sorted(by_size[:half])]


@compiled
def is_in_order(start: Ints, end: Ints) -> bool:
    """Whether rows are in order of start, then of end."""
    for i in range(1, start.size):
        if start[i] < start[i - 1] or (start[i] == start[i - 1] and end[i] < end[i - 1]):
            return False
    return True
