"""The process that Spark forks its Python workers from, with what their tasks import loaded.

Spark starts ``python -m muntin.spark.environment.daemon pyspark.worker`` where a local session
says so. Its own daemon imports nothing, so every worker spends seconds on importing the same
modules. No thread may run when a worker is forked: what is loaded here starts none, except for
those of Arrow's allocator, which handles forks itself. Polars and DuckDB do start some, and are
left to the workers that use them.
"""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

LOADED = (
    "pandas",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyspark.worker",
    "muntin.spark.bounded.rows",
    "muntin.spark.bounded.tasks",
    "muntin.spark.streaming.tasks.stage_a",
    "muntin.spark.streaming.tasks.stage_b",
)


def load() -> None:
    """Import what tasks use."""
    for name in LOADED:
        # The task that needs what cannot be imported fails, and says so.
        with suppress(Exception):
            importlib.import_module(name)
    # Workers share these pages until somebody writes to them, as a collection would.
    gc.freeze()


def work(worker: Callable[..., int], *arguments: Any) -> int:
    """Be a worker, whose exit code it is, until the JVM that it works for is gone.

    What the worker has not sent by then is of no use, and no reason for a traceback.
    """
    try:
        return worker(*arguments)
    except (BrokenPipeError, ConnectionResetError):
        return 1


def main() -> None:
    """Load, then be Spark's daemon."""
    from pyspark import daemon  # noqa: PLC0415  pyspark is imported when it is used

    load()
    daemon.worker = partial(work, daemon.worker)
    daemon.manager()


if __name__ == "__main__":
    main()
