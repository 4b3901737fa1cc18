"""What every sink is: a writer that goes to the tasks, and a commit on the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import pyarrow as pa

Entry = TypeVar("Entry")


class Writer(ABC, Generic[Entry]):
    """The half of a sink that runs in tasks: small, picklable, without state.

    Any number of attempts may write the results of one task. Each returns entries that say
    what it wrote, and only those of one attempt are committed; so an attempt must not change
    what another has written, and nothing it writes may be visible before the commit.
    """

    @abstractmethod
    def write(
        self, batch_id: int, attempt_id: int | str, results: Mapping[str, pa.Table]
    ) -> list[Entry]:
        """Write one task's results, durably, and say what was written.

        Args:
            batch_id: The batch, counted from 0.
            attempt_id: What tells this attempt from others of the same application.
            results: A table for each query; empty ones may be left out.
        """


class Sink(ABC, Generic[Entry]):
    """Where results go.

    The order of calls is: ``recover`` once, ``declare`` at the start and whenever the set of
    queries changes, and for every batch ``write`` in each task and then ``commit`` on the
    driver; at the end ``close``. After a crash the last batch is run again with the same
    results, so a commit must be safe to repeat. A batch without results may not be committed
    at all. All methods but the writer's run on the driver, one at a time.

    To add a sink, derive from this class in one file, and say in its docstring what a reader
    sees when a batch is repeated.
    """

    @abstractmethod
    def writer(self) -> Writer[Entry]:
        """The half that runs in tasks."""

    @abstractmethod
    def commit(self, batch_id: int, entries: Sequence[Entry]) -> None:
        """Make a batch's results visible, all at once, as often as the batch is repeated.

        Args:
            batch_id: The batch; never lower than one that was committed, repeats aside.
            entries: What the successful attempts of all its tasks returned, in any order.
        """

    def places(self, entries: Sequence[Entry]) -> set[str]:
        """The names of the places that keep these entries; none for a sink that keeps nothing.

        A sink with places is held to them: a run goes on only where each has all results so far.
        """
        del entries
        return set()

    def positions(self, run: str) -> Mapping[str, int]:
        """The last batch of a run that is committed in each of the sink's places; -1 for none.

        It is asked before anything else, and changes nothing.
        """
        del run
        return {}

    def skip_to(self, batches: Mapping[str, int], run: str) -> None:
        """Take all batches up to these, by place, for committed: they are lost, and that is known.

        Args:
            batches: The batches, by the names of some of the sink's places.
            run: The name of the run.
        """

    def recover(self, last_batch: int, *, run: str = "") -> None:
        """Undo what was written and not committed; called before the first batch.

        Args:
            last_batch: The last batch that the run's checkpoint has finished; -1 for none.
            run: A name that stays with the checkpoint, so that no other run writes here.
        """

    def declare(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Take note of queries and the columns of their results, before any result."""

    def close(self) -> None:
        """Finish what goes on in the background."""
