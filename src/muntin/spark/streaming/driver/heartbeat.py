"""A heartbeat for a stream that has fallen silent: batches without rows, for windows that are due.

Spark starts no batch without news of a source. So a source of our own stands beside the stream, a
folder of the checkpoint: every file that is put there is a beat, which starts a batch, makes one
task run, and brings no row. Its offsets are Spark's like those of any source, and a batch that is
run again has the same beats. How far the clock moves such a batch is in its record.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from muntin.sinks.durable import make_folder, write_atomically
from muntin.spark.streaming.checkpoint.files import writing_to
from muntin.spark.streaming.checkpoint.records import BatchOutcome

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_logger = logging.getLogger("muntin.spark")
_FOLDER = "beats"
_KEPT = 16  # files; only the last of them can be read again
_STEP = 1.0  # seconds
Windows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Idleness:
    """When a stream counts as silent, and where the clock has brought it then.

    Attributes:
        limit: For how long no row must have come, in microseconds.
        lateness: How far the watermark stays behind.
        started: The clock when the run began, before which nobody listened; None for a run that
            takes in what there is: it knows at once that nothing has come.
    """

    limit: int
    lateness: int = 0
    started: int | None = None

    def moment(self, outcome: BatchOutcome, clock: int) -> int | None:
        """The largest event time plus the clock elapsed since; None while rows come.

        >>> idleness = Idleness(60)
        >>> heard = BatchOutcome(seen=1000, heard=5000)
        >>> idleness.moment(heard, 5059), idleness.moment(heard, 5060)
        (None, 1060)
        """
        if outcome.seen is None or outcome.heard is None:
            return None
        listening = max(outcome.heard, outcome.heard if self.started is None else self.started)
        return None if clock - listening < self.limit else outcome.seen + clock - outcome.heard

    def is_due(self, outcome: BatchOutcome, clock: int, windows: Windows) -> bool:
        """Whether the clock has reached the end of a window that may hold a row."""
        moment = self.moment(outcome, clock)
        if moment is None or outcome.seen is None or outcome.watermark is None:
            return False
        following = next_end(windows, outcome.watermark, outcome.seen)
        return following is not None and following <= moment - self.lateness


def next_end(windows: Windows, watermark: int, seen: int) -> int | None:
    """The first end after the watermark of a window that begins no later than the last row.

    Args:
        windows: The range, slide and phase of each window.
        watermark: Windows up to here are answered.
        seen: The time of the last row.

    >>> next_end(np.array([[20, 10, 0]]), 100, 104), next_end(np.array([[20, 10, 0]]), 120, 104)
    (110, None)
    """
    ranges, slides, phases = windows.T
    ends = ((watermark - phases) // slides + 1) * slides + phases
    held = ends[ends - ranges <= seen]
    return int(held.min()) if held.size else None


class Heartbeat:
    """The beats of one run.

    Args:
        root: The folder of the checkpoint.
        idleness: When the stream counts as silent; None where beats of runs before are to be
            read, and no others come.
        look: What is known after the last batch, and the windows of the queries that run.
    """

    def __init__(
        self,
        root: Path,
        idleness: Idleness | None,
        look: Callable[[], tuple[BatchOutcome, Windows]],
    ) -> None:
        self._folder, self._idleness, self._look = root / _FOLDER, idleness, look
        self._thread: Thread | None = None
        self._is_over = Event()
        with writing_to(root):
            make_folder(self._folder)

    def beside(self, frame: DataFrame) -> DataFrame:
        """A streaming DataFrame with the beats as another source, of no rows."""
        from pyspark.sql.functions import lit  # noqa: PLC0415  imported when it is used

        beats = frame.sparkSession.readStream.text(str(self._folder)).where("value = 'a row'")
        columns = [lit(None).cast(each.dataType).alias(each.name) for each in frame.schema.fields]
        # In front: where a plan has a source twice, Spark's logs of those behind it shift.
        return beats.select(*columns).union(frame)

    def prepare(self) -> None:
        """Beat once, before Spark's query begins, for a run that takes in what there is."""
        if self._idleness is not None and self._idleness.started is None:
            self._beat_if_due()

    def start(self) -> None:
        """Beat whenever the stream has been silent for long, and a window is due."""
        is_listening = self._idleness is not None and self._idleness.started is not None
        if is_listening and self._thread is None:
            self._thread = Thread(target=self._watch, name="muntin-heartbeat", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Beat no more."""
        self._is_over.set()

    def _watch(self) -> None:
        assert self._idleness is not None
        seconds = self._idleness.limit / 1e6
        batch = None
        while not self._is_over.wait(min(seconds / 4, _STEP)):
            # One beat for a batch, and a pause: there may be windows that end in quick succession.
            last = self._look()[0].batch
            try:
                if last != batch and self._beat_if_due():
                    batch = last
                    self._is_over.wait(seconds)
            except OSError as error:
                _logger.warning("open windows wait for rows, and not for the clock: %s", error)
                return

    def _beat_if_due(self) -> bool:
        assert self._idleness is not None
        outcome, windows = self._look()
        if not self._idleness.is_due(outcome, time.time_ns() // 1000, windows):
            return False
        for old in sorted(self._folder.glob("[0-9]*"))[:-_KEPT]:
            old.unlink(missing_ok=True)
        # Spark reads a name once: it must be one that was never there.
        write_atomically(self._folder / f"{time.time_ns():020d}", b"beat\n")
        return True
