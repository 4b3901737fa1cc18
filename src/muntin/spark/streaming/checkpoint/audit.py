"""Whether the parts of a checkpoint are of one moment: our records, and Spark's own logs."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muntin.sinks import Sink, SinkError
from muntin.spark.streaming.checkpoint.arrivals import SparkLogs, marks
from muntin.spark.streaming.checkpoint.files import missing
from muntin.spark.streaming.checkpoint.records import BatchRecord, RecordLog
from muntin.spark.streaming.problems import RESTORE, CheckpointError

_PLANNED = (
    "results of the batch may be committed, so nothing was changed. Restore the folder spark of "
    "the checkpoint from a copy that has the offsets of the batch; or start with an empty "
    "checkpoint and another folder for results"
)


def check_moment(records: RecordLog, logs: SparkLogs, changes: int) -> None:
    """Refuse to start where a file is damaged or gone, or was put back as it was before.

    Spark plans a batch and notes its offsets; then come our record, our outcome and Spark's
    commit. So offsets, records and outcomes are at the batch of the last commit or one ahead.

    Args:
        records: Our records, and the outcomes beside them.
        logs: Spark's logs.
        changes: The version of the queries that the next batch runs with.
    """
    records.needed()  # it reads every file, and refuses what is damaged
    logs.check_readable()
    last, newest = logs.committed(), records.newest("record")
    for name, batch in (("spark/offsets", logs.planned()), ("batches", newest)):
        if not last <= batch <= last + 1:
            raise CheckpointError(
                f"the parts of the checkpoint do not belong together: {name} ends with batch "
                f"{batch}, and spark/commits with batch {last}",
                hint=RESTORE,
            )
    if records.newest("outcome") > newest:
        raise missing(records.path(newest + 1, "record"))
    if newest < 0:
        return
    record = records.record(newest)
    if record is not None and record.changes > changes:
        raise CheckpointError(
            f"the queries of the checkpoint are older than batch {newest}: version {changes}, and "
            f"the batch has version {record.changes}",
            hint=RESTORE,
        )
    records.before(last + 1)
    if last >= 0:
        _check_sources(records, logs, last)


def _check_sources(records: RecordLog, logs: SparkLogs, batch: int) -> None:
    record = records.record(batch)
    if record is None:
        raise missing(records.path(batch, "record"))
    check_offsets(record, logs.offsets(batch))
    if marks(logs, record.offsets) != tuple(record.arrivals):
        raise CheckpointError(
            f"{logs.folder / 'sources'} does not name the files that were read up to batch {batch}",
            hint=RESTORE,
        )


def check_repeat(record: BatchRecord, offsets: Sequence[str], arrivals: Sequence[str]) -> None:
    """Refuse a batch that is run again over other rows than those of its record."""
    check_offsets(record, offsets)
    if tuple(record.arrivals) != tuple(arrivals):
        raise CheckpointError(
            f"batch {record.batch} was planned before over other files than spark/sources names "
            "for it",
            hint=_PLANNED,
        )


def check_states(folder: Path, batch: int, tokens: Sequence[str], found: Mapping[int, str]) -> None:
    """Refuse a batch that did not start from the states that the batch before it left.

    Args:
        folder: Spark's part of the checkpoint.
        batch: The batch.
        tokens: What the outcome before says of each bucket's state; none before the first.
        found: What the batch has found, by bucket; empty for a bucket without a state.
    """
    wanted = dict(enumerate(tokens)) if tokens else dict.fromkeys(found, "")
    for bucket, token in wanted.items():
        if found.get(bucket, "") != token:
            raise CheckpointError(
                f"the state of bucket {bucket} in {folder / 'state'} is not what batch {batch - 1} "
                "left there: it was removed, replaced by an older one or swapped",
                hint=f"nothing of batch {batch} is committed; {RESTORE}",
            )


def check_offsets(record: BatchRecord, offsets: Sequence[str]) -> None:
    """Refuse a batch that Spark has planned over other rows than those of its record."""
    for number, (was, found) in enumerate(zip(record.offsets, offsets, strict=False)):
        if was != found:
            raise CheckpointError(
                f"batch {record.batch} was planned before, up to offset {was} of source {number}, "
                f"and spark/offsets has {found} for it: its rows are not the same",
                hint=_PLANNED,
            )
    if len(record.offsets) != len(offsets):
        raise CheckpointError(
            f"batch {record.batch} was planned before over {len(record.offsets)} sources, and "
            f"spark/offsets has {len(offsets)} for it",
            hint="continue with the source that the checkpoint was made with",
        )


_logger = logging.getLogger("muntin.spark")
# Stands for all places: the last batch that had results.
ANYWHERE = ""


@dataclass
class Delivery:
    """What a run has delivered to a sink.

    Attributes:
        sink: The sink.
        batches: The last batch that had something for each of its places, and for any.
    """

    sink: Sink[Any]
    batches: dict[str, int] = field(default_factory=dict)

    def commit(self, batch: int, entries: Sequence[Any]) -> None:
        """Commit a batch, and take note of it."""
        self.sink.commit(batch, entries)
        self.batches = self.after(batch, entries)

    def after(self, batch: int, entries: Sequence[Any]) -> dict[str, int]:
        """What is delivered once a batch is committed."""
        added = [ANYWHERE, *self.sink.places(entries)] if entries else []
        return self.batches | dict.fromkeys(added, batch)

    def resume(self, last_batch: int, run: str, *, accepts_gaps: bool) -> None:
        """Let the sink go on behind the last batch that is finished.

        Args:
            last_batch: The last batch that the run's checkpoint has finished; -1 for none.
            run: The name of the run.
            accepts_gaps: Whether results that are lost stay lost; otherwise they are refused.

        Raises:
            SinkError: If the sink lacks results of batches that are finished.
        """
        positions = self.sink.positions(run)
        # A place that is not known must have what the others were given.
        anywhere = self.batches.get(ANYWHERE, -1)
        wanted = {place: self.batches.get(place, anywhere) for place in positions}
        behind = {place: batch for place, batch in wanted.items() if positions[place] < batch}
        for place, batch in behind.items():
            told = _told(place, positions[place], batch)
            if not accepts_gaps:
                raise SinkError(
                    told,
                    hint="restore it from a copy; or start afresh, with an empty checkpoint and "
                    "another place for results; or continue without them, with on_gap='accept' "
                    "(--on-gap accept)",
                )
            _logger.warning("%s: the run continues without them", told)
        if behind:
            self.sink.skip_to(behind, run)
        self.sink.recover(last_batch, run=run)
        # Places that are not the sink's any more get nothing from here on.
        self.batches = wanted | ({ANYWHERE: anywhere} if anywhere >= 0 else {})


def _told(place: str, position: int, batch: int) -> str:
    """Which results are missing from a place.

    >>> _told("out", 3, 4)
    'results of batch 4 are missing from out, which holds those up to batch 3'
    >>> _told("out", -1, 4)
    'results up to batch 4 are missing from out, which holds none of this run'
    """
    if position < 0:
        return f"results up to batch {batch} are missing from {place}, which holds none of this run"
    span = f"batches {position + 1} to {batch}" if position + 1 < batch else f"batch {batch}"
    return f"results of {span} are missing from {place}, which holds those up to batch {position}"
