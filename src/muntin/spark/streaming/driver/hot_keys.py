"""The keys that most rows of a run have, and those that the next batch splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from muntin.operators.hot_keys import HotKey, KeyCounts
from muntin.operators.splits import KeySplit, Reached, SplitKey, decided, heats_of
from muntin.plan.routes import RoutedPlan, SplitGroup
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.checkpoint.records import StreamOutcome
from muntin.spark.streaming.reports import BatchReport


class HotKeys:
    """Counts keys from batch to batch.

    What is counted is not kept from start to start. What is split is: it stands in the records.
    """

    def __init__(self, buckets: Buckets) -> None:
        self._lanes = min(buckets.partitions, buckets.count)
        self._counts: dict[str, KeyCounts] = {}
        self._labels: dict[str, str] = {}
        self._splits: tuple[SplitKey, ...] = ()
        self._groups: dict[str, SplitGroup] = {}

    def count(
        self, plan: RoutedPlan | None, splits: Sequence[Mapping[str, Any]], reports: BatchReport
    ) -> None:
        """Take note of the keys that a batch has seen, and of those it has split."""
        if plan is None:
            return
        self._counts = {name: self._counts.get(name, KeyCounts()) for name in sorted(plan.met)}
        self._labels = {
            name: plan.labels.get(plan.feeds[name].clock, name) for name in self._counts
        }
        self._groups = {each.name: each for each in plan.groups}
        self._splits = tuple(SplitKey(**each) for each in splits)
        for report in reports:
            for name, (seen, counts) in report.hot.items():
                if name in self._counts:
                    self._counts[name].add(counts, seen)

    @property
    def hottest(self) -> dict[str, tuple[HotKey, ...]]:
        """The keys that most of the recent rows have, by stream and what it is joined by."""
        found = {self._labels[name]: each.hottest() for name, each in list(self._counts.items())}
        return {name: each for name, each in found.items() if each}

    @property
    def splitting(self) -> dict[str, tuple[KeySplit, ...]]:
        """The keys that the last batch has split, by what is joined."""
        found: dict[str, tuple[KeySplit, ...]] = {}
        groups = self._groups
        for each in self._splits:
            if each.group in groups:
                spread = groups[each.group].streams[each.spread]
                told = KeySplit(each.key, spread, each.phase)
                found[each.group] = (*found.get(each.group, ()), told)
        return found

    def split(
        self,
        plan: RoutedPlan,
        before: Sequence[Mapping[str, Any]],
        streams: Sequence[StreamOutcome],
    ) -> tuple[dict[str, Any], ...]:
        """The keys that the next batch splits.

        Args:
            plan: Its plan.
            before: Those of the batch before.
            streams: Where the streams are.
        """
        if not plan.groups:
            return ()
        known = dict(zip(plan.asked.streams, streams, strict=True))
        times = {name: Reached(each.seen, each.watermark) for name, each in known.items()}
        rows = {name: each.rows for name, each in known.items()}
        heats = heats_of(plan, self._counts, rows)
        splits = [SplitKey(**each) for each in before]
        found = decided(plan.groups, splits, times, heats, self._lanes)
        return tuple(asdict(each) for each in found)
