"""The last step of a batch: shares of buckets, merged and written on the driver.

Buckets have some keys of a join each, or some values of a query without groups. All of them answer
the same windows in the same batch, since W is decided before it, so that what they have of a group,
or of a window, is all there is of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pyarrow as pa

from muntin.counts import Counts
from muntin.engine.answers.front import Answered
from muntin.engine.answers.shares import ShareMerger
from muntin.engine.joined import merged
from muntin.plan.routes import RoutedPlan
from muntin.sinks import Writer
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.checkpoint.records import BatchRecord
from muntin.spark.streaming.driver.plans import Planner
from muntin.spark.streaming.reports import BatchReport, BucketReport, unpacked_share


class BatchMerger:
    """Merges the shares of batches; what a plan takes for that is made once."""

    def __init__(self, planner: Planner, buckets: Buckets) -> None:
        self._planner, self._buckets = planner, buckets
        self._mergers: dict[str, ShareMerger] = {}

    def __call__(
        self,
        record: BatchRecord,
        reports: BatchReport,
        rows: RoutedPlan | None,
        writer: Writer[Any],
    ) -> None:
        """Show the groups that several buckets have rows of, and the windows of spread values.

        ``rows`` is the plan of queries over rows, if the batch has one.
        """
        if rows is not None and rows.spanning:
            merge_shares(rows, record.batch, reports, writer)
        for number, stream in enumerate(record.streams):
            own = reports.of_buckets(self._buckets.of_stream(number))
            if any(report.spread for report in own):
                merge_spread(self._merger(record, stream.plan), record.batch, own, writer)

    def _merger(self, record: BatchRecord, plan: str) -> ShareMerger:
        if plan not in self._mergers:
            running = {stream.plan for stream in record.streams}
            kept = {name: each for name, each in self._mergers.items() if name in running}
            made = ShareMerger(self._planner.named(plan), self._buckets.count)
            self._mergers = kept | {plan: made}
        return self._mergers[plan]


def merge_shares(plan: RoutedPlan, batch: int, reports: BatchReport, writer: Writer[Any]) -> None:
    """Show what several buckets have of one group; a report says what was written, and counted."""
    ordered = sorted(reports, key=lambda each: each.bucket)
    results: dict[str, pa.Table] = {}
    errors: Counter[str] = Counter()
    for final in plan.asked.joined:
        shares = [unpacked_share(each.shares[final.name]) for each in ordered
                  if final.name in each.shares]  # fmt: skip
        if not shares:
            continue
        gaps = [each.gaps[final.name] for each in ordered if final.name in each.gaps]
        answered = merged(final, shares, max(gaps, default=None))
        results[final.name] = answered.table
        if answered.errors:
            errors[final.name] = answered.errors
    # Whichever bucket is the last: it has rows of all streams, as all that are shared.
    _write(ordered, batch, Answered(results, errors=errors), writer)


def merge_spread(
    merger: ShareMerger, batch: int, reports: BatchReport, writer: Writer[Any]
) -> None:
    """Show windows of queries without groups whose values several buckets of a stream have.

    The reports are those of the stream's buckets.
    """
    ordered = sorted(reports, key=lambda each: each.bucket)
    shares = {
        report.bucket % merger.buckets: {
            family: unpacked_share(data) for family, data in report.spread.items()
        }
        for report in ordered
        if report.spread
    }
    if shares:
        _write(ordered, batch, merger(shares), writer)


def _write(
    ordered: Sequence[BucketReport], batch: int, answered: Answered, writer: Writer[Any]
) -> None:
    """Write what was merged; the report of the last bucket says so."""
    if not answered.tables:
        return
    last = ordered[-1]
    last.written = [*last.written, *writer.write(batch, f"d{uuid4().hex}", answered.tables)]
    for name, table in answered.tables.items():
        last.results[name] = last.results.get(name, 0) + table.num_rows
    last.counts += Counts(errors=answered.errors)
