"""From the sinks that a file declares to the sink of one stream's run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from muntin import sinks
from muntin.pipelines.fan_out import FanOutSink, LastRows, Takes, Watcher
from muntin.pipelines.model import Pipeline, SinkSpec
from muntin.sinks import Sink


def make_sink(spec: SinkSpec, stream: str | None = None) -> Sink[Any]:
    """The sink that a declaration means.

    Args:
        spec: The declaration.
        stream: The stream whose results it takes, where a file has several: each stream is a run
            of its own, and a folder of Parquet files belongs to one run.
    """
    options = spec.options
    if spec.format == "parquet":
        path = Path(options["path"])
        return sinks.parquet(path if stream is None else path / stream.lower())
    if spec.format == "duckdb":
        return sinks.duckdb(options["path"])
    if spec.format == "postgres":
        return sinks.postgres(
            url_env=options["url_env"], schema=options["schema"], prefix=options["prefix"]
        )
    if spec.format == "memory":
        return sinks.memory(options["max_rows"])
    return sinks.console(options["rows"])


def sinks_of_stream(
    pipeline: Pipeline,
    stream: str,
    screen: Sink[Any],
    watcher: Watcher | None,
    beside: Sink[Any] | None = None,
) -> tuple[FanOutSink, dict[str, Sink[Any]]]:
    """Where the results of a stream's queries go, and the sinks among it by name.

    Queries that no sink takes go to the screen, and so do those that join while it runs, unless
    a sink takes all. What is beside takes all in any case.
    """
    queries = [query.name for query in pipeline.queries[stream]]
    several = sum(map(bool, pipeline.queries.values())) > 1
    taken = {sink.name: _takes(sink) for sink in pipeline.sinks}
    named = {
        sink.name: make_sink(sink, stream if several else None)
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
