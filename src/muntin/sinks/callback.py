"""Results handed to a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from muntin.sinks.sink import DriverSink, SinkError

Receiver = Callable[[int, str, pa.Table], object]


class CallbackSink(DriverSink):
    """Calls a function on the driver, once for each query that has results in a batch.

    Delivery is at least once: after a crash, or when the function raises, the batch comes
    again with the same rows, so a receiver that must not act twice remembers the batch id.
    Queries come in the order of their names.

    Args:
        receiver: Gets the batch id, the name of the query and its rows. What it raises stops
            the run before the batch is committed.

    >>> sink = CallbackSink(lambda batch, query, table: print(batch, query, table.num_rows))
    >>> sink.commit(4, sink.writer().write(4, 0, {"spikes": pa.table({"value": [1, 2]})}))
    4 spikes 2
    """

    def __init__(self, receiver: Receiver) -> None:
        if not callable(receiver):
            raise SinkError(
                f"{receiver!r} cannot be called",
                hint="give a function of the batch id, the query's name and its rows",
            )
        self.receiver = receiver

    def deliver(self, batch_id: int, tables: Mapping[str, pa.Table]) -> None:
        """Call the function for every query."""
        for query, table in tables.items():
            try:
                self.receiver(batch_id, query, table)
            except Exception as error:
                raise SinkError(
                    f"the callback failed on batch {batch_id} of query {query}: {error!r}",
                    hint="the batch is not committed, and is delivered again when the run restarts",
                ) from error


def callback(receiver: Receiver) -> CallbackSink:
    """Hand every batch's results to ``receiver(batch_id, query, table)``."""
    return CallbackSink(receiver)
