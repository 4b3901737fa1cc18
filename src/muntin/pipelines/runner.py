"""``pipelines.run``: every stream of a SQL file as a run of its own, in one Spark session."""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import muntin
from muntin import sinks
from muntin.errors import MuntinError
from muntin.pipelines.fan_out import Watcher
from muntin.pipelines.model import Pipeline, StreamSpec
from muntin.pipelines.opening import open_stream, open_table
from muntin.pipelines.refreshing import TableWatcher
from muntin.pipelines.running import PipelineRun
from muntin.pipelines.sink_making import sinks_of_stream
from muntin.sinks import Sink
from muntin.spark import SparkWarning
from muntin.spark import session as make_session
from muntin.spark.streaming.checkpoint import is_begun, is_complete
from muntin.spark.streaming.lock import hold

_logger = logging.getLogger("muntin.pipelines")
STREAMS = "streams"


def run(
    pipeline: Pipeline,
    checkpoint: str | os.PathLike[str] | None = None,
    *,
    once: bool = False,
    flush: bool = True,
    on_gap: Literal["fail", "accept"] = "fail",
    session: Any = None,
    screen: Sink[Any] | None = None,
    watcher: Watcher | None = None,
    beside: Callable[[str], Sink[Any]] | None = None,
) -> PipelineRun:
    """Run a SQL file: each stream that has queries is a run with a checkpoint of its own.

    A run that is started again with the same checkpoint goes on where it was, with the queries
    that were added and dropped while it ran; what has changed in the file since is applied.

    Args:
        pipeline: What `read` gives.
        checkpoint: A folder of this pipeline's own; a temporary one unless said otherwise.
        once: Take in what is there, and end.
        flush: At the end of what is there, answer the windows that are open, too. The
            checkpoint cannot be continued then.
        on_gap: What results that are missing from a sink do, as in `muntin.run`.
        session: The Spark session; the active one, or another that is started.
        screen: Where the results of queries go that no sink takes; printed unless said otherwise.
        watcher: Gets the batch, the name and the last row of each query that goes to a sink.
        beside: Gives one more sink for each stream, by its name; it gets all results.

    Raises:
        MuntinError: If anything cannot be opened; nothing runs then.
    """
    chosen = _streams(pipeline, checkpoint, once=once)
    root = _root(_temporary() if checkpoint is None else checkpoint)
    running = PipelineRun(pipeline, root, hold(root), flush=once and flush)
    try:
        spark = make_session("muntin") if session is None else session
        # Looked at before they are read: a change in between is seen as one.
        running.tables = TableWatcher(pipeline.tables)
        tables = {table.name: open_table(table) for table in pipeline.tables}
        for stream in _incomplete(chosen, root) if once and flush else chosen:
            screened = sinks.console() if screen is None else screen
            more = None if beside is None else beside(stream.name)
            sink, named = sinks_of_stream(pipeline, stream.name, screened, watcher, more)
            running.sinks[stream.name] = named
            source = open_stream(spark, stream)
            folder = _folder(root, stream)
            trigger = "available_now" if once else None
            running.runs[stream.name] = _start(
                pipeline, stream, source, tables, sink, folder, trigger, on_gap
            )
    except BaseException:
        running.stop()
        raise
    return running


def check_checkpoint(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder that cannot be written to, or that another run holds.

    `run` does so too, but those who start Spark for it need not wait for that.
    """
    hold(_root(folder)).release()


def _root(folder: str | os.PathLike[str]) -> Path:
    return Path(folder).expanduser().absolute()


def _start(
    pipeline: Pipeline,
    stream: StreamSpec,
    source: Any,
    tables: Mapping[str, Any],
    sink: Sink[Any],
    folder: Path,
    trigger: str | None,
    on_gap: Literal["fail", "accept"],
) -> Any:
    return muntin.run(
        source,
        list(pipeline.queries[stream.name]),
        stream.time,
        name=stream.name,
        tables=tables,
        lateness=stream.lateness,
        advance_when_idle=stream.advance_when_idle,
        trigger=trigger,
        sink=sink,
        checkpoint=folder,
        on_error=stream.on_error,
        on_bad_row=stream.on_bad_row,
        on_gap=on_gap,
        side_output=stream.side_output,
        max_ahead=stream.max_ahead,
        timezone=stream.timezone,
    )


def _streams(
    pipeline: Pipeline, checkpoint: str | os.PathLike[str] | None, *, once: bool
) -> list[StreamSpec]:
    """The streams to run: those with queries, and those that ran with some before."""
    known = Path(checkpoint).expanduser() / STREAMS if checkpoint is not None else None
    chosen = [
        stream
        for stream in pipeline.streams
        if pipeline.queries[stream.name]
        or (known is not None and is_begun(known / stream.name.lower()))
    ]
    if not chosen:
        raise MuntinError("there are no queries to run", hint="write CREATE QUERY ... AS ...")
    endless = [stream.name for stream in chosen if stream.format == "rate"]
    if once and endless:
        raise MuntinError(
            f"stream {endless[0]} is made up as it goes, and has nothing to take in once",
            hint="run it without --once, and stop it with Ctrl-C",
        )
    return chosen


def _incomplete(streams: list[StreamSpec], root: Path) -> list[StreamSpec]:
    """Those whose open windows are not all answered; all, if none is left to be run.

    Where one stream failed at its end, the others may have come to theirs.
    """
    left = [stream for stream in streams if not is_complete(_folder(root, stream))]
    for stream in streams:
        if left and stream not in left:
            _logger.warning(
                "stream %s is complete: its open windows were answered by a run before, so rows "
                "that came since are not read",
                stream.name,
            )
    return left or streams


def _folder(root: Path, stream: StreamSpec) -> Path:
    return root / STREAMS / stream.name.lower()


def _temporary() -> str:
    folder = tempfile.mkdtemp(prefix="muntin-checkpoint-")
    warnings.warn(
        f"the pipeline keeps its checkpoint in {folder}, a temporary folder: it cannot be "
        "continued for long. Give it a folder with checkpoint=",
        SparkWarning,
        stacklevel=3,
    )
    return folder
