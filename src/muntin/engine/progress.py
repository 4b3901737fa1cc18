"""What a run has seen, done and kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from muntin.display import html_facts
from muntin.engine.rows.stage_a import StageOutput
from muntin.engine.slices.finals.heads import is_head
from muntin.engine.state import State


@dataclass
class Statistics:
    """What a run has seen and done so far.

    Attributes:
        rows: All rows that came in.
        late_rows: Rows below the watermark, which were dropped.
        bad_rows: Rows without a time.
        errors: Per query, the values that failed: overflow, division by zero, a bad cast.
        partial_aggregations: Updates of partials by rows; one that several queries share is one.
        final_aggregations: Aggregations along time, which make windows of slices: combinations,
            subtractions and comparisons, for every group and accumulator where finals move on.
        cell_aggregations: Aggregations along cells, which make partials of a predicate of those of
            its cells, or slices of a query's own of the shared ones.
    """

    rows: int = 0
    late_rows: int = 0
    bad_rows: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    partial_aggregations: int = 0
    final_aggregations: int = 0
    cell_aggregations: int = 0

    def take(self, output: StageOutput) -> None:
        """Count what stage A made of a batch."""
        self.rows += output.rows
        self.late_rows += output.late_rows
        self.bad_rows += output.bad_rows
        self.partial_aggregations += output.updates
        self.errors.update(output.errors)


@dataclass(frozen=True)
class Progress:
    """A run at one moment: what `Statistics` counts, and what is kept.

    Attributes:
        watermark: Rows below this tick are late; None before the first.
        slices: Slices that are open, because some window that is not answered yet covers them;
            one that several sets of partials keep counts for each.
        cells: Entries kept: one for each slice, group and cell that rows fell into.
        groups: Groups that have entries, counted for each set of partials with groups.
        state_bytes: Bytes of all partials and keys.
        heads: Entries among ``cells`` that are heads of slices, which windows that end inside
            one read; only Cutty slicing has them, and they are no slices.
    """

    rows: int
    late_rows: int
    bad_rows: int
    errors: Counter[str]
    partial_aggregations: int
    final_aggregations: int
    cell_aggregations: int
    watermark: int | None
    slices: int
    cells: int
    groups: int
    state_bytes: int
    heads: int = 0

    @property
    def aggregations(self) -> int:
        """All of them: of rows, along cells and along time."""
        return self.partial_aggregations + self.cell_aggregations + self.final_aggregations

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        counts = {
            "rows": self.rows,
            "late rows": self.late_rows,
            "bad rows": self.bad_rows,
            "failed values": self.errors.total(),
            "slices": self.slices,
            "cells": self.cells,
            "groups": self.groups,
            "bytes of state": self.state_bytes,
            "partial aggregations": self.partial_aggregations,
            "final aggregations": self.final_aggregations,
            "cell aggregations": self.cell_aggregations,
        }
        facts = {name: f"{number:,}" for name, number in counts.items()}
        facts["watermark"] = "-" if self.watermark is None else f"{self.watermark:,}"
        return html_facts("Progress", facts)

    @classmethod
    def of(cls, statistics: Statistics, state: State) -> Progress:
        """What was counted so far, and what the state holds."""
        slices, heads = sum(store.slices for store in state.stores), 0
        if state.plan.slicing == "cutty":
            slices, heads = _slices_and_heads(state)
        return cls(
            **vars(statistics),
            watermark=state.watermark,
            slices=slices,
            heads=heads,
            cells=sum(store.entries for store in state.stores),
            groups=sum(store.groups for store in state.stores),
            state_bytes=sum(store.nbytes for store in state.stores),
        )


def _slices_and_heads(state: State) -> tuple[int, int]:
    """How many slices hold rows, and how many entries are heads."""
    slices, found = 0, 0
    for store in state.stores:
        starts = store.table().starts
        heads = is_head(starts, state.plan.slicings[store.node.slicing])
        slices += np.unique(starts[~heads]).size
        found += int(np.count_nonzero(heads))
    return slices, found


# What a batch counts for when the next one comes: half of all weight is on the last two.
_KEPT = 0.7


@dataclass(frozen=True)
class RecentRate:
    """Rows and ticks of recent batches, older ones counting for less and less.

    >>> RecentRate().after(30, 10).after(60, 10).rate
    4.764705882352941
    """

    rows: float = 0.0
    ticks: float = 0.0

    @property
    def rate(self) -> float | None:
        """Rows per tick; None before time has moved on."""
        return self.rows / self.ticks if self.ticks and self.rows else None

    def after(self, rows: int, ticks: int) -> RecentRate:
        """With another batch: its rows, and by how much it moved the largest event time.

        Rows of a batch that moves nothing count together with those of the next that does.
        """
        if not ticks:
            return RecentRate(self.rows + rows, self.ticks)
        return RecentRate(self.rows * _KEPT + rows, self.ticks * _KEPT + ticks)
