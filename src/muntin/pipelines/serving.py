"""What a running pipeline answers to the commands of other processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from muntin.errors import did_you_mean
from muntin.pipelines.control import ControlError
from muntin.pipelines.running import PipelineRun
from muntin.queries import Query
from muntin.spark.streaming.progress import RunProgress


class Commands:
    """The commands ``list``, ``add`` and ``drop`` over a running pipeline."""

    def __init__(self, running: PipelineRun) -> None:
        self._running = running
        self._commands: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "list": self._list,
            "add": self._add,
            "drop": self._drop,
        }

    def __call__(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a request."""
        name = str(request.get("command"))
        if name not in self._commands:
            hint = did_you_mean(name, self._commands)
            raise ControlError(f"there is no command {name!r}", hint=hint)
        return self._commands[name](request)

    def _list(self, request: Mapping[str, Any]) -> dict[str, Any]:
        del request
        progress = self._running.progress()
        return {
            "file": self._running.pipeline.file,
            "streams": [
                {
                    "name": name,
                    **numbers(progress[name]),
                    "queries": [
                        {
                            "name": query.name,
                            "results": progress[name].results.get(query.name, 0),
                            "errors": progress[name].errors.get(query.name, 0),
                            "sinks": [s.name for s in self._running.pipeline.sinks_of(query.name)],
                            "sql": query.sql(),
                        }
                        for query in queries
                    ],
                }
                for name, queries in self._running.queries().items()
            ],
        }

    def _add(self, request: Mapping[str, Any]) -> dict[str, Any]:
        sql = _word(request, "sql")
        before = self._by_name()
        added = self._running.add(sql)
        progress, replaced = self._running.progress(), {}
        for name, (stream, query) in self._by_name().items():
            if name in before and before[name][1] != query:
                replaced[query.name] = _seen(progress[stream])
        return {"added": added, "replaced": replaced}

    def _by_name(self) -> dict[str, tuple[str, Query]]:
        return {
            query.name.lower(): (stream, query)
            for stream, queries in self._running.queries().items()
            for query in queries
        }

    def _drop(self, request: Mapping[str, Any]) -> dict[str, Any]:
        name = _word(request, "name")
        self._running.drop(name)
        return {"dropped": name}


def numbers(progress: RunProgress) -> dict[str, Any]:
    """How a stream goes, for machines; times are in the ticks of its time column."""
    return {
        "batches": progress.batches,
        "rows": progress.rows,
        "late_rows": progress.late_rows,
        "bad_rows": progress.bad_rows,
        "watermark": progress.watermark,
        "lag": progress.lag,
        "state_bytes": progress.state_bytes,
        "batch_seconds": progress.batch_seconds,
    }


def _seen(progress: RunProgress) -> int | str | None:
    """The largest event time so far, as text where it is a time."""
    if progress.seen is None or progress.lag is None:
        return progress.seen
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=progress.seen)
    except OverflowError:
        return progress.seen
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def _word(request: Mapping[str, Any], key: str) -> str:
    value = request.get(key)
    if not isinstance(value, str):
        raise ControlError(f"the request has no {key}", hint=f"give {key} as text")
    return value
