"""The side output: rows that are late or bad, exactly once where the sink is."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from muntin.errors import DataError
from muntin.sinks import ParquetSink, Sink, callback, parquet

# What the side output calls the two kinds of rows, where a sink has queries.
LATE_ROWS = "late_rows"
BAD_ROWS = "bad_rows"

SideOutput = Sink[Any] | str | os.PathLike[str] | Callable[[int, str, pa.Table], object]


def read_side_output(given: SideOutput | None, sink: Sink[Any]) -> Sink[Any] | None:
    """The sink that a folder, a function or a sink means; not the one that results go to.

    >>> read_side_output("aside", parquet("out")).root.name
    'aside'
    """
    if given is None:
        return None
    if isinstance(given, Sink):
        found = given
    elif isinstance(given, str | os.PathLike):
        found = parquet(given)
    elif callable(given):
        found = callback(given)
    else:
        raise DataError(
            f"the side output is of type {type(given).__name__}",
            hint="give a sink, a folder, or a function of the batch id, the kind of rows and rows",
        )
    both = (found, sink)
    if found is sink or (_folder(found) is not None and len({_folder(each) for each in both}) == 1):
        raise DataError(
            "the side output goes where the results go", hint="give each a folder of its own"
        )
    return found


def _folder(sink: Sink[Any]) -> object:
    return sink.root if isinstance(sink, ParquetSink) else None
