"""The last step of a batch: shares of aggregates over joins, merged and written on the driver.

Buckets have some keys of a join each. All of them answer the same windows in the same batch, since
W is decided before it, so that what they have of a group is all there is of it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import uuid4

import pyarrow as pa

from muntin.counts import Counts
from muntin.engine.joined import merged
from muntin.plan.routes import RoutedPlan
from muntin.sinks import Writer
from muntin.spark.streaming.reports import BatchReport
from muntin.spark.streaming.tasks.row_bucket import unpacked_share


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
    if not results:
        return
    # Whichever bucket is the last: it has rows of all streams, as all that are shared.
    last = ordered[-1]
    last.written = [*last.written, *writer.write(batch, f"d{uuid4().hex}", results)]
    for name, table in results.items():
        last.results[name] = last.results.get(name, 0) + table.num_rows
    last.counts += Counts(errors=errors)
