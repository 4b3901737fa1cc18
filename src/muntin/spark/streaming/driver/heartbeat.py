"""A heartbeat for a stream that has fallen silent: batches without rows, for windows that are due.

Spark starts no batch without news of a source. So a source of our own stands beside the stream, a
folder of the checkpoint: every file that is put there is a beat, which starts a batch, makes one
task run, and brings no row. Its offsets are Spark's like those of any source, and a batch that is
run again has the same beats. How far the clock moves such a batch is in its record.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from muntin.sinks.durable import make_folder, write_atomically
from muntin.spark.streaming.checkpoint.files import writing_to
from muntin.spark.streaming.checkpoint.records import BatchOutcome
from muntin.spark.streaming.driver.watermarks import Pace, Windows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_logger = logging.getLogger("muntin.spark")
_FOLDER = "beats"
_KEPT = 16  # files; only the last of them can be read again
_STEP = 1.0  # seconds


class Heartbeat:
    """The beats of one run.

    Args:
        root: The folder of the checkpoint.
        paces: How each stream moves. Where the clock moves none of them, beats of runs before are
            read, and no others come.
        look: What is known after the last batch, and the windows of each stream's queries.
    """

    def __init__(
        self,
        root: Path,
        paces: Sequence[Pace],
        look: Callable[[], tuple[BatchOutcome, Sequence[Windows]]],
    ) -> None:
        self._folder, self._paces, self._look = root / _FOLDER, paces, look
        limits = [pace.advance_when_idle for pace in paces]
        self._limit = min((each for each in limits if each is not None), default=None)
        self._is_listening = all(pace.started is not None for pace in paces)
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
        if self._limit is not None and not self._is_listening:
            self._beat_if_due()

    def start(self) -> None:
        """Beat whenever the stream has been silent for long, and a window is due."""
        if self._limit is not None and self._is_listening and self._thread is None:
            self._thread = Thread(target=self._watch, name="muntin-heartbeat", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Beat no more."""
        self._is_over.set()

    def _watch(self) -> None:
        assert self._limit is not None
        seconds = self._limit / 1e6
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
        clock = time.time_ns() // 1000
        outcome, windows = self._look()
        streams = zip(self._paces, outcome.streams, windows, strict=True)
        if not any(pace.is_due(each, clock, own) for pace, each, own in streams):
            return False
        for old in sorted(self._folder.glob("[0-9]*"))[:-_KEPT]:
            old.unlink(missing_ok=True)
        # Spark reads a name once: it must be one that was never there.
        write_atomically(self._folder / f"{time.time_ns():020d}", b"beat\n")
        return True
