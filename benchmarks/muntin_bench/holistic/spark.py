"""Spark's own `window()` as a side of the benchmark: it copies rows, as DuckDB's users do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from muntin_bench.holistic.benchmark import Window


_FEW = 1000


class SparkSide:
    """A session that has the rows in memory; seconds are those of its Java process."""

    def __init__(self, session: Any, table: pa.Table) -> None:
        self._session = session
        frame = session.createDataFrame(table)
        rows = frame.selectExpr("timestamp_millis(ts) AS ts", "v", "p", "vol").cache()
        rows.count()
        rows.createOrReplaceTempView("t")
        few = session.createDataFrame(table.slice(0, _FEW))
        few.selectExpr("timestamp_millis(ts) AS ts", "v", "p", "vol").createOrReplaceTempView("few")

    def answer(self, call: str, window: Window) -> tuple[float, list[tuple[Any, ...]]]:
        """Processor seconds of one query, and its answers by window end."""
        # Spark's windows begin at multiples of their slide, ours end there.
        sizes = (window.range, window.slide, -window.range % window.slide)
        bounds = ", ".join(f"'{size} milliseconds'" for size in sizes)
        texts = [
            f"SELECT unix_millis(window.end) AS w, {call} AS a FROM {rows} "
            f"WHERE vol >= {window.least} GROUP BY window(ts, {bounds}) ORDER BY w"
            for rows in ("few", "t")
        ]
        # Once over few rows, for what is compiled on first use.
        self._session.sql(texts[0]).toArrow()
        begin = self._processor_seconds()
        found = self._session.sql(texts[1]).toArrow()
        taken = self._processor_seconds() - begin
        columns = [column.to_pylist() for column in found.columns]
        return taken, list(zip(*columns, strict=True))

    def _processor_seconds(self) -> float:
        # Python only waits; what Spark does, it does in Java.
        process = self._session._jvm.java.lang.ProcessHandle.current()  # noqa: SLF001
        return float(process.info().totalCpuDuration().get().toNanos()) / 1e9


@contextmanager
def spark_side(table: pa.Table, *, wanted: bool) -> Iterator[SparkSide | None]:
    """Spark over the rows, if it is wanted."""
    if not wanted:
        yield None
        return
    from muntin.spark.session import session  # noqa: PLC0415 - it starts Java

    with session(config={"spark.driver.memory": "4g"}) as running:
        yield SparkSide(running, table)
