"""Results behind the checkpoint: batches whose rows no restart gives again, and that are gone.

A batch's outcome says what was delivered: for each place that keeps results, the last batch that
had some for it. A place may be ahead of that, by the batch that a crash cut short. One that is
behind has lost results. What counts is the place's own note of its batches: rows that somebody
deletes there on purpose leave it as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from muntin.sinks import Sink, SinkError

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
                    hint="restore it from a copy; or start anew, with an empty checkpoint and "
                    "another place for results; or go on without them, with on_gap='accept' "
                    "(--on-gap accept)",
                )
            _logger.warning("%s: the run goes on without them", told)
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
