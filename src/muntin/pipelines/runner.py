"""``pipelines.run``: the streams of a SQL file as runs in one Spark session."""

from __future__ import annotations

import glob
import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, cast

import muntin
from muntin import sinks
from muntin.errors import DataError, MuntinError
from muntin.pipelines import rate
from muntin.pipelines.fan_out import FanOutSink, LastRows, Takes, Watcher
from muntin.pipelines.handle import PipelineRun, TableWatcher
from muntin.pipelines.model import (
    Pipeline,
    RunSpec,
    SinkSpec,
    StreamSpec,
    TableSpec,
    plan_rows,
)
from muntin.sinks import Sink
from muntin.spark import SparkWarning
from muntin.spark import session as make_session
from muntin.spark.streaming.checkpoint.checkpoint import is_begun, is_complete
from muntin.spark.streaming.checkpoint.files import hold

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

    Streams that queries over rows connect are one run.

    A run that is started again with the same checkpoint resumes where it left off, with the queries
    that were added and dropped while it ran; what has changed in the file since is applied.

    Args:
        pipeline: What `read` gives.
        checkpoint: A folder of this pipeline's own; by default, a temporary one.
        once: Process what is there, and end.
        flush: At the end of what is there, answer the windows that are open, too. The
            checkpoint cannot be continued then.
        on_gap: What results that are missing from a sink do, as in `muntin.run`.
        session: The Spark session; the active one, or another that is started.
        screen: Where the results of queries go that no sink takes; by default, printed.
        watcher: Gets the batch, the name and the last row of each query that goes to a sink.
        beside: Gives one more sink for each stream, by its name; it gets all results.

    Raises:
        MuntinError: If anything cannot be opened; nothing runs then.
    """
    chosen = _runs(pipeline, checkpoint, once=once)
    root = _root(_temporary() if checkpoint is None else checkpoint)
    running = PipelineRun(pipeline, root, hold(root), flush=once and flush)
    try:
        spark = make_session("muntin") if session is None else session
        # Looked at before they are read: a change in between is seen as one.
        running.tables = TableWatcher(pipeline.tables)
        tables = {table.name: open_table(table) for table in pipeline.tables}
        for each in _incomplete(chosen, root) if once and flush else chosen:
            screened = sinks.console() if screen is None else screen
            more = None if beside is None else beside(each.name)
            sink, named = sinks_of_run(pipeline, each, screened, watcher, more)
            sink.check_outputs(_outputs(pipeline, each))
            running.sinks[each.name] = named
            opened = {stream.name: open_stream(spark, stream) for stream in each.streams}
            folder = _folder(root, each)
            trigger = "available_now" if once else None
            running.homes |= {stream.name.lower(): each.name for stream in each.streams}
            running.runs[each.name] = _start(each, opened, tables, sink, folder, trigger, on_gap)
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
    spec: RunSpec,
    opened: Mapping[str, Any],
    tables: Mapping[str, Any],
    sink: Sink[Any],
    folder: Path,
    trigger: str | None,
    on_gap: Literal["fail", "accept"],
) -> Any:
    first = spec.streams[0]
    several = len(spec.streams) > 1
    idle = {stream.name: stream.idle for stream in spec.streams if stream.idle is not None}
    by_clock = {
        stream.name: stream.advance_when_idle
        for stream in spec.streams
        if stream.advance_when_idle is not None
    }
    return muntin.run(
        opened if several else opened[first.name],
        list(spec.asked),
        {stream.name: stream.time for stream in spec.streams} if several else first.time,
        name=None if several else first.name,
        tables=tables,
        lateness={stream.name: stream.lateness for stream in spec.streams}
        if several
        else first.lateness,
        idle=(idle or None) if several else None,
        advance_when_idle=(by_clock or None) if several else first.advance_when_idle,
        trigger=trigger,
        sink=sink,
        checkpoint=folder,
        on_error=first.on_error,
        on_bad_row=first.on_bad_row,
        on_gap=on_gap,
        side_output=first.side_output,
        max_ahead=first.max_ahead,
        timezone=first.timezone,
        keeps=list(spec.keeps) or None,
    )


def _outputs(pipeline: Pipeline, spec: RunSpec) -> dict[str, str]:
    """How each query shows its results."""
    rows = plan_rows(spec.rows, pipeline.streams, pipeline.tables).finals
    windows = dict.fromkeys((query.name for query in spec.queries), "windows")
    return {**windows, **{final.name: final.shown for final in rows}}


def _runs(
    pipeline: Pipeline, checkpoint: str | os.PathLike[str] | None, *, once: bool
) -> list[RunSpec]:
    """What to run: streams with queries, and those that ran with some before."""
    root = Path(checkpoint).expanduser() if checkpoint is not None else None
    chosen = [
        spec
        for spec in pipeline.runs()
        if spec.asked or (root is not None and is_begun(_folder(root, spec)))
    ]
    if not chosen:
        raise MuntinError("there are no queries to run", hint="write CREATE QUERY ... AS ...")
    endless = [stream.name for spec in chosen for stream in spec.streams if stream.format == "rate"]
    if once and endless:
        raise MuntinError(
            f"stream {endless[0]} is generated as it runs, and has nothing to process once",
            hint="run it without --once, and stop it with Ctrl-C",
        )
    if root is not None:
        for spec in chosen:
            _check_connected(spec, root / STREAMS)
    return chosen


def _check_connected(spec: RunSpec, folder: Path) -> None:
    """Refuse a checkpoint in which streams ran with others than those of now."""
    names = {stream.name.lower() for stream in spec.streams}
    begun = [each.name for each in folder.glob("*") if is_begun(each)]
    for other in begun:
        if other != spec.name.lower() and names & set(other.split("+")):
            raise MuntinError(
                f"{spec.name} run together now, and the checkpoint is of {other}",
                hint="a checkpoint fixes which streams run together: start with another one",
            )


def _incomplete(specs: list[RunSpec], root: Path) -> list[RunSpec]:
    """Those whose open windows are not all answered; all, if none is left to be run.

    Where one failed at its end, the others may have come to theirs.
    """
    left = [spec for spec in specs if not is_complete(_folder(root, spec))]
    for spec in specs:
        if left and spec not in left:
            _logger.warning(
                "stream %s is complete: its open windows were answered by a run before, so rows "
                "that came since are not read",
                spec.name,
            )
    return left or specs


def _folder(root: Path, spec: RunSpec) -> Path:
    return root / STREAMS / spec.name.lower()


def _temporary() -> str:
    folder = tempfile.mkdtemp(prefix="muntin-checkpoint-")
    warnings.warn(
        f"the pipeline keeps its checkpoint in {folder}, a temporary folder: it cannot be "
        "continued for long. Give it a folder with checkpoint=",
        SparkWarning,
        stacklevel=3,
    )
    return folder


_KAFKA_HINT = (
    "give Spark its Kafka source: "
    "--conf spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:{version}"
)


def open_stream(session: Any, spec: StreamSpec) -> Any:
    """The stream, as ``muntin.run`` takes it: files that arrive, or a streaming DataFrame."""
    if spec.format == "rate":
        return _rate(session, spec)
    if spec.format == "kafka":
        return decoded(_kafka(session, spec), spec)
    path = cast("str", spec.path)
    _check_there(path, f"stream {spec.name}")
    if spec.format == "parquet":
        return muntin.files(path, "parquet", schema=spec.schema, **spec.spark_options())
    # Spark's reader makes NULLs of text that is no value, so that a torn line is one bad row.
    from muntin.spark.frames import spark_schema  # noqa: PLC0415  it brings pyspark

    reader = session.readStream.format(spec.format).schema(spark_schema(spec.schema))
    return reader.options(**spec.spark_options()).load(path)


def open_table(spec: TableSpec) -> Any:
    """The table, as files that are read when they are asked for, and then again."""
    _check_there(spec.path, f"table {spec.name}")
    return muntin.files(
        spec.path, cast("Any", spec.format), schema=spec.schema, **spec.spark_options()
    )


def _check_there(path: str, what: str) -> None:
    # What lies elsewhere, Spark looks up.
    if "://" not in path and not Path(path).exists() and not glob.glob(path, recursive=True):
        raise DataError(
            f"{what}: there is nothing at {path}",
            hint="create the folder first, or correct the path",
        )


def _rate(session: Any, spec: StreamSpec) -> Any:
    reader = session.readStream.format("rate")
    numbered = reader.option("rowsPerSecond", spec.options["rows_per_second"]).load()
    return rate.trades(numbered, symbols=spec.options["symbols"], seed=spec.options["seed"])


def _kafka(session: Any, spec: StreamSpec) -> Any:
    try:
        return session.readStream.format("kafka").options(**spec.spark_options()).load()
    except Exception as error:
        # Only Spark's own errors have a condition; others are no fault of the declaration.
        condition = getattr(error, "getCondition", lambda: None)()
        if condition is None:
            raise
        reason = str(error).strip().splitlines()[0]
        hint = _KAFKA_HINT.format(version=session.version)
        raise MuntinError(f"stream {spec.name}: {reason}", hint=hint) from error


def decoded(frame: Any, spec: StreamSpec) -> Any:
    """The declared columns, from the messages that a column ``value`` holds.

    A message that is not understood gives NULLs, so that it is a bad row.
    """
    from muntin.spark.frames import quoted, spark_schema  # noqa: PLC0415  it brings pyspark

    fields = spark_schema(spec.schema).fields
    columns = ", ".join(f"{quoted(each.name)} {each.dataType.simpleString()}" for each in fields)
    text = columns.replace("\\", "\\\\").replace("'", "\\'")
    there = f", map('timeZone', '{spec.timezone}')" if spec.timezone is not None else ""
    reader = f"from_{spec.options['value_format']}(CAST(value AS STRING), '{text}'{there})"
    return frame.selectExpr(f"{reader} AS message").select("message.*")


def make_sink(spec: SinkSpec, stream: str | None = None) -> Sink[Any]:
    """The sink that a declaration means.

    Args:
        spec: The declaration.
        stream: The stream whose results it takes, where a file has several runs: a folder of
            Parquet files belongs to one run.
    """
    options = spec.options
    if spec.format == "parquet":
        path = Path(options["path"])
        return sinks.parquet(path if stream is None else path / stream.lower())
    if spec.format == "duckdb":
        return sinks.duckdb(options["path"], live=options["live"])
    if spec.format == "postgres":
        return sinks.postgres(
            url_env=options["url_env"],
            schema=options["schema"],
            prefix=options["prefix"],
            live=options["live"],
        )
    if spec.format == "memory":
        return sinks.memory(options["max_rows"])
    return sinks.console(options["rows"])


def sinks_of_run(
    pipeline: Pipeline,
    spec: RunSpec,
    screen: Sink[Any],
    watcher: Watcher | None,
    beside: Sink[Any] | None = None,
) -> tuple[FanOutSink, dict[str, Sink[Any]]]:
    """Where the results of a run's queries go, and the sinks among it by name.

    Queries that no sink takes go to the screen, and so do those that join while it runs, unless
    a sink takes all. What is beside takes all in any case.
    """
    queries = [query.name for query in spec.asked]
    several = sum(bool(each.asked) for each in pipeline.runs()) > 1
    taken = {sink.name: _takes(sink) for sink in pipeline.sinks}
    named = {
        sink.name: make_sink(sink, spec.name if several else None)
        for sink in pipeline.sinks
        if sink.takes_all or any(taken[sink.name].is_taken(query) for query in queries)
    }
    routed = [name for sink in pipeline.sinks for name in sink.queries]
    to_screen = Takes.only(()) if _has_all(pipeline) else Takes.all_but(routed)
    parts: list[tuple[Takes, Sink[Any]]] = [(taken[name], sink) for name, sink in named.items()]
    parts.append((to_screen, screen))
    if watcher is not None:
        others = Takes.all() if _has_all(pipeline) else Takes.only(routed)
        parts.append((others, LastRows(watcher)))
    if beside is not None:
        parts.append((Takes.all(), beside))
    return FanOutSink(parts), named


def _takes(sink: SinkSpec) -> Takes:
    return Takes.all() if sink.takes_all else Takes.only(sink.queries)


def _has_all(pipeline: Pipeline) -> bool:
    return any(sink.takes_all for sink in pipeline.sinks)
