"""What a run has seen, done and kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muntin.counts import Counts
from muntin.display import html_facts
from muntin.engine.slices.finals.heads import is_head
from muntin.engine.state import State


@dataclass(frozen=True, kw_only=True)
class Progress(Counts):
    """A run at one moment: what was counted, and what is kept.

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

    watermark: int | None
    slices: int
    cells: int
    groups: int
    state_bytes: int
    heads: int = 0

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
    def of(cls, counts: Counts, state: State) -> Progress:
        """What was counted so far, and what the state holds."""
        slices, heads = sum(store.slices for store in state.stores), 0
        if state.plan.slicing == "cutty":
            slices, heads = _slices_and_heads(state)
        return cls(
            **vars(counts),
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
