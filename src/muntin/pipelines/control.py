"""A local socket through which other processes of the same user change a running pipeline.

Requests and answers are JSON, one per line. A request names a ``command``; an answer is ``ok`` with
what was asked for, or not ``ok`` with a ``message`` and a ``hint``.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

from muntin.errors import MuntinError, did_you_mean
from muntin.pipelines.handle import PipelineRun
from muntin.queries import AnyQuery
from muntin.spark.streaming.driver.progress import RunProgress
from muntin.synopses import Answer

_logger = logging.getLogger("muntin.pipelines")
FOLDER, NAME = "control", "socket"
MAX_LINE = 32 << 20  # bytes; SQL files have fewer
PATIENCE = 120.0  # seconds: a query that reads another column waits for a batch to end
# Addresses of sockets have some 104 bytes on all systems, less than many a path.
_LONGEST = 100
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)

Handler = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class ControlError(MuntinError):
    """No pipeline answers there, or it cannot do what was asked."""


def socket_path(checkpoint: Path) -> Path:
    """Where the socket of a pipeline lies, in a folder that only its owner may enter."""
    return checkpoint / FOLDER / NAME


class ControlServer:
    """Answers requests in threads of its own, until it is closed.

    Args:
        checkpoint: The folder of the pipeline, which the caller holds the lock of: a socket that
            is there was left by a process that has ended.
        handler: What answers a request; a MuntinError that it raises is an answer too.
    """

    def __init__(self, checkpoint: Path, handler: Handler) -> None:
        self._path, self._handler = socket_path(checkpoint), handler
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path.parent.chmod(0o700)
        self._path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with _short(self._path) as address:
            self._socket.bind(address)
        self._path.chmod(0o600)
        self._socket.listen(16)
        Thread(target=self._serve, name="muntin-control", daemon=True).start()

    def close(self) -> None:
        """Stop answering, and remove the socket."""
        self._path.unlink(missing_ok=True)
        # Closing alone would not wake the thread that accepts.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                caller, _ = self._socket.accept()
            except OSError:
                return
            Thread(target=self._answer, args=(caller,), daemon=True).start()

    def _answer(self, caller: socket.socket) -> None:
        with caller, suppress(OSError), caller.makefile("rwb") as lines:
            caller.settimeout(PATIENCE)
            while line := lines.readline(MAX_LINE + 1):
                lines.write(_encoded(self._respond(line)))
                lines.flush()
                if len(line) > MAX_LINE:
                    return

    def _respond(self, line: bytes) -> dict[str, Any]:
        try:
            if len(line) > MAX_LINE:
                raise ControlError("the request is too long", hint=f"up to {MAX_LINE:,} bytes")
            request = json.loads(line)
            if not isinstance(request, dict):
                raise ControlError("the request is not a JSON object", hint='{"command": "list"}')
            return {"ok": True, **self._handler(request)}
        except MuntinError as error:
            return {"ok": False, "message": error.message, "hint": error.hint}
        except ValueError as error:
            return {"ok": False, "message": f"the request is no JSON: {error}", "hint": None}
        except Exception as error:
            _logger.warning("a request failed: %r", error)
            return {"ok": False, "message": f"{type(error).__name__}: {error}", "hint": None}


def ask(checkpoint: Path, request: Mapping[str, Any]) -> dict[str, Any]:
    """Ask the pipeline that runs with a checkpoint.

    Raises:
        ControlError: If none runs there, or it refuses.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.settimeout(PATIENCE)
        _connect(caller, checkpoint)
        try:
            with caller.makefile("rwb") as lines:
                lines.write(_encoded(request))
                lines.flush()
                answer: dict[str, Any] = json.loads(lines.readline())
        except (OSError, ValueError):
            message = f"the pipeline in {checkpoint} ended before it answered"
            raise ControlError(message, hint="muntin list says whether it runs") from None
    if not answer.pop("ok"):
        raise ControlError(answer["message"], hint=answer["hint"])
    return answer


def is_running(checkpoint: Path) -> bool:
    """Whether a pipeline answers there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        try:
            _connect(caller, checkpoint)
        except ControlError:
            return False
        return True


def _connect(caller: socket.socket, checkpoint: Path) -> None:
    path = socket_path(checkpoint)
    try:
        with _short(path) as address:
            caller.connect(address)
    except PermissionError:
        hint = "only the user who started a pipeline may change it"
        raise ControlError(f"{path} belongs to another user", hint=hint) from None
    except OSError:
        raise ControlError(
            f"nothing runs with the checkpoint {checkpoint}",
            hint="start it with muntin run FILE.sql, or name its folder with --checkpoint",
        ) from None


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """An address of a socket that is short enough, whatever its path."""
    names = (os.path.relpath(path), str(path))
    shortest = min(names, key=lambda each: len(os.fsencode(each)))
    if len(os.fsencode(shortest)) <= _LONGEST:
        yield shortest
        return
    with tempfile.TemporaryDirectory(prefix="muntin-") as folder:
        link = Path(folder) / "to"
        link.symlink_to(path.parent.absolute(), target_is_directory=True)
        yield str(link / path.name)


def _encoded(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"


class Commands:
    """The commands ``list``, ``add``, ``drop`` and ``ask`` over a running pipeline."""

    def __init__(self, running: PipelineRun) -> None:
        self._running = running
        self._commands: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "list": self._list,
            "add": self._add,
            "drop": self._drop,
            "ask": self._ask,
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
        progress, kept = self._running.progress(), self._running.keep_facts()
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
                    "keeps": [
                        {**each, "errors": progress[name].errors.get(f"keep {each['name']}", 0)}
                        for each in kept[name]
                    ],
                }
                for name, queries in self._running.queries().items()
            ],
        }

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        options = {key: request[key] for key in ("isolation", "timeout", "max_rows")}
        return shown_answer(self._running.ask(_word(request, "sql"), **options))

    def _add(self, request: Mapping[str, Any]) -> dict[str, Any]:
        sql = _word(request, "sql")
        if is_about_keeps(sql):
            return {"added": self._running.keep(sql), "replaced": {}}
        before = self._by_name()
        added = self._running.add(sql)
        progress, replaced = self._running.progress(), {}
        for name, (stream, query) in self._by_name().items():
            if name in before and before[name][1] != query:
                replaced[query.name] = _seen(progress[stream])
        return {"added": added, "replaced": replaced}

    def _by_name(self) -> dict[str, tuple[str, AnyQuery]]:
        return {
            query.name.lower(): (stream, query)
            for stream, queries in self._running.queries().items()
            for query in queries
        }

    def _drop(self, request: Mapping[str, Any]) -> dict[str, Any]:
        name = _word(request, "name")
        self._running.drop(name)
        return {"dropped": name}


def is_about_keeps(sql: str) -> bool:
    """Whether a text creates or drops keeps, rather than queries."""
    words = [word.upper() for word in _COMMENT.sub(" ", sql).split()[:4]]
    return "KEEP" in words[1:2] or words[1:4] == ["OR", "REPLACE", "KEEP"]


def shown_answer(answer: Answer) -> dict[str, Any]:
    """An answer as JSON holds it: its rows, and what it is worth."""
    rows = [{key: _plain(value) for key, value in row.items()} for row in answer.table.to_pylist()]
    return {"columns": answer.table.column_names, "answer": rows, **answer.facts()}


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return str(value)


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
