"""Spark's two stateful operators for Python, with the state of few groups and of many."""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from muntin.spark.streaming.driver.query import LOCAL_FILES
from muntin_bench.report import Section

_BUCKETS = 16
_BYTES = 25  # of state for a group and slice, about what a sum and a count take
_SLICES = 3  # of 10 minutes in slices of 5 are open at once
_WARM = 6
_CONF = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    **LOCAL_FILES,
}
Operator = Callable[[Any, int], Any]


def state_section(session: Any, groups: tuple[int, ...], batches: int) -> Section:
    """Batch times where state is opaque bytes in 16 buckets, all of which change in every batch.

    One operator writes a bucket's state as one value. The other keeps a value for each slice, and
    writes the last one only: the others are closed.
    """
    operators: dict[str, Operator] = {
        "applyInPandasWithState, one value": _one_value,
        "transformWithStateInPandas, one value a slice": _value_a_slice,
    }
    found: dict[str, list[float]] = {name: [] for name in operators}
    for count in groups:
        for name, operator in operators.items():
            found[name].append(_batch_seconds(session, operator, count, batches))
    rows = [(name, *(f"{seconds:.2f} s" for seconds in each)) for name, each in found.items()]
    columns = ("operator", *(f"{count:,} groups" for count in groups))
    return Section("stream, stateful operators alone, batch of one row", columns, tuple(rows))


def _batch_seconds(session: Any, operator: Operator, groups: int, batches: int) -> float:
    before = {name: session.conf.get(name, None) for name in _CONF}
    for name, value in _CONF.items():
        session.conf.set(name, value)
    try:
        with tempfile.TemporaryDirectory(prefix="muntin-bench-") as folder:
            return _measure(session, operator, groups, batches + _WARM, Path(folder))
    finally:
        for name, known in before.items():
            if known is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, known)


def _measure(session: Any, operator: Operator, groups: int, batches: int, folder: Path) -> float:
    (folder / "in").mkdir()
    for number in range(batches):
        path = folder / "in" / f"{number}.txt"
        path.write_text("row")
        os.utime(path, (1e9 + number, 1e9 + number))
    lines = session.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "in"))
    rows = lines.selectExpr(f"explode(sequence(0, {_BUCKETS - 1})) AS bucket", "value")
    writer = operator(rows, groups * _BYTES // _BUCKETS).writeStream.outputMode("append")
    writer = writer.foreachBatch(lambda frame, _: frame.collect())
    query = writer.option("checkpointLocation", str(folder / "ck")).trigger(availableNow=True)
    running = query.start()
    running.awaitTermination()
    times: list[float] = [
        each.durationMs["triggerExecution"] / 1000
        for each in running.recentProgress
        if each.numInputRows
    ]
    return statistics.median(times[_WARM:])


def _one_value(rows: Any, size: int) -> Any:
    def update(key: tuple[Any], frames: Iterable[Any], state: Any) -> Iterator[Any]:
        import pandas as pd  # noqa: PLC0415  imported in workers only

        count = sum(len(frame) for frame in frames)
        held = state.get[0] if state.exists else bytes(size * _SLICES)
        state.update((held,))
        yield pd.DataFrame({"n": [count]})

    grouped = rows.groupBy("bucket")
    return grouped.applyInPandasWithState(update, "n long", "data binary", "append", "NoTimeout")


def _value_a_slice(rows: Any, size: int) -> Any:
    grouped = rows.groupBy("bucket")
    return grouped.transformWithStateInPandas(_Slices(size), "n long", "append", "none")


class _Slices:
    """A stateful processor, as Spark calls it: only its methods matter."""

    def __init__(self, size: int) -> None:
        self._size = size

    def init(self, handle: Any) -> None:
        self._slices = handle.getMapState("slices", "slice long", "data binary")

    def handleInputRows(  # noqa: N802  Spark's name
        self, key: Any, rows: Iterator[Any], timers: Any
    ) -> Iterator[Any]:
        import pandas as pd  # noqa: PLC0415  imported in workers only

        del key, timers
        count = sum(len(frame) for frame in rows)
        for number in range(_SLICES - 1):
            if not self._slices.containsKey((number,)):
                self._slices.updateValue((number,), (bytes(self._size),))
        self._slices.updateValue((_SLICES - 1,), (bytes(self._size),))
        yield pd.DataFrame({"n": [count]})

    def handleExpiredTimer(self, *_: Any) -> Iterator[Any]:  # noqa: N802  Spark's name
        return iter(())

    def close(self) -> None:
        """Nothing is open."""
