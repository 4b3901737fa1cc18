"""A SQL file that is running: its streams, and the queries that join and leave them."""

from __future__ import annotations

import glob
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from muntin.errors import MuntinError, UnknownQueryError, did_you_mean
from muntin.pipelines.model import Pipeline, TableSpec
from muntin.queries import (
    AnyQuery,
    CreateKeep,
    DropKeep,
    DropQuery,
    Keep,
    RowQuery,
    Statement,
    keep_statements,
    parse,
)
from muntin.queries.asking.questions import source_of
from muntin.windows import duration

if TYPE_CHECKING:
    from muntin.plan import SharedPlan
    from muntin.sinks import Sink
    from muntin.spark.streaming.checkpoint.files import CheckpointLock
    from muntin.spark.streaming.driver.handle import Run
    from muntin.spark.streaming.driver.progress import RunProgress
    from muntin.synopses import Answer

_logger = logging.getLogger("muntin.pipelines")
_STEP = 0.1  # seconds


class PipelineRun:
    """The runs of a SQL file's streams; made by ``pipelines.run``.

    Used as a context manager it is stopped at the end of the block.

    Attributes:
        pipeline: The file.
        checkpoint: The folder that holds the checkpoint of each stream.
        runs: The runs by the name of their stream, or of all streams that run together.
        homes: The run of each stream, by the stream's name in lower case.
        sinks: The sinks of each run, by their names.
        tables: What sees that tables have changed.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        checkpoint: Path,
        lock: CheckpointLock,
        *,
        flush: bool,
    ) -> None:
        self.pipeline, self.checkpoint, self.tables = pipeline, checkpoint, TableWatcher(())
        self.runs: dict[str, Run] = {}
        self.homes: dict[str, str] = {}
        self.sinks: dict[str, dict[str, Sink[Any]]] = {}
        self._lock, self._flush = lock, flush
        self._changing = Lock()
        self._refusals: dict[str, str] = {}
        self._ended: set[str] = set()

    def queries(self) -> dict[str, list[AnyQuery]]:
        """The queries of each run, as of its next batch."""
        return {name: list(run.queries()) for name, run in self.runs.items()}

    def progress(self) -> dict[str, RunProgress]:
        """How each stream goes."""
        return {name: run.progress() for name, run in self.runs.items()}

    def plan(self, stream: str) -> SharedPlan:
        """What the queries of a stream share."""
        return self._run_of(stream).plan()

    def add(self, sql: str) -> list[str]:
        """Let queries join the streams that their FROM names; the change is durable on return.

        ``CREATE OR REPLACE QUERY`` and ``DROP QUERY`` are understood too. All statements change
        one stream, so that all take effect, or none.

        Returns:
            The names of the queries that have joined.
        """
        with self._changing:
            names = [query.name for queries in self.queries().values() for query in queries]
            statements = parse(sql, 1, names)
            if not statements:
                raise MuntinError(
                    "the text contains no query", hint="write CREATE QUERY ... AS ..."
                )
            stream = self._stream_of(statements)
            self._check_free(stream, statements)
            self.runs[stream].add([_text(each) for each in statements])
        return [each.query.name for each in statements if not isinstance(each, DropQuery)]

    def drop(self, name: str) -> None:
        """Let a query leave; from the next batch on it answers nothing."""
        with self._changing:
            self.runs[self._home(name)].remove(name)

    def keep(self, sql: str) -> list[str]:
        """Keep something of one stream to be asked, or drop it; the change is durable on return.

        Returns:
            The names of what is kept from now on.
        """
        statements = keep_statements(sql)
        with self._changing:
            homes = {self._keep_home(each) for each in statements}
            if len(homes) > 1:
                message = f"the statements are about the streams {', '.join(sorted(homes))}"
                raise MuntinError(message, hint="change one stream at a time")
            self.runs[homes.pop()].keep(sql)
        return [each.keep.name for each in statements if isinstance(each, CreateKeep)]

    def keeps(self) -> dict[str, list[Keep]]:
        """What is kept of each stream."""
        return {name: run.keeps() for name, run in self.runs.items()}

    def keep_facts(self) -> dict[str, list[dict[str, Any]]]:
        """What is kept of each stream, and what it takes."""
        return {name: run.keep_facts() for name, run in self.runs.items()}

    def ask(self, sql: str, **options: Any) -> Answer:
        """Answer a question from what is kept of the stream that its FROM names."""
        source = source_of(sql)
        return self.runs[self._running(source)].ask(sql, **options)

    def _keep_home(self, statement: CreateKeep | DropKeep) -> str:
        if isinstance(statement, CreateKeep):
            return self._running(statement.keep.source)
        for stream, kept in self.keeps().items():
            if any(each.name.lower() == statement.name.lower() for each in kept):
                return stream
        known = [each.name for kept in self.keeps().values() for each in kept]
        hint = did_you_mean(statement.name, known) or "nothing is kept"
        raise UnknownQueryError(f"there is no keep named {statement.name}", hint=hint)

    def poll(self) -> bool:
        """See to tables that have changed and streams that have ended; whether all have.

        Raises:
            RunError: If a stream failed, with the reason. The others go on until `stop`.
        """
        self._refresh()
        for name, run in self.runs.items():
            if name not in self._ended and self._has_ended(run):
                self._ended.add(name)
        return len(self._ended) == len(self.runs)

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until all streams end, or so many seconds; whether they have ended."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.poll():
            if deadline is not None and time.monotonic() >= deadline:
                return False
            time.sleep(_STEP)
        return True

    def stop(self, *, flush: bool = False) -> None:
        """Finish the batches that run, and stop; the checkpoint can be continued.

        Args:
            flush: Answer the windows that are open, too; it cannot be continued then.
        """
        failures = []
        try:
            for run in self.runs.values():
                try:
                    run.stop(flush=flush)
                except Exception as error:
                    # The others end all the same.
                    failures.append(error)
        finally:
            self._lock.release()
        if failures:
            raise failures[0]

    def _has_ended(self, run: Run) -> bool:
        if not run.await_termination(0.001):
            return False
        if self._flush:
            run.stop(flush=True)
        return True

    def _refresh(self) -> None:
        for table in self.tables.changed():
            try:
                for run in self.runs.values():
                    run.refresh(table)
            except Exception as error:
                # A file that is half written is whole a moment later.
                self._refuse(table, error)
            else:
                self.tables.accept(table)
                self._refusals.pop(table, None)
                _logger.info("table %s is read again", table)

    def _refuse(self, table: str, error: Exception) -> None:
        reason = error.message if isinstance(error, MuntinError) else str(error).strip()
        if self._refusals.get(table) != reason:
            self._refusals[table] = reason
            _logger.warning("table %s stays as it was: %s", table, reason.partition("\n")[0])

    def _stream_of(self, statements: Sequence[Statement]) -> str:
        found = {
            home
            for each in statements
            for home in (
                [self._home(each.name)] if isinstance(each, DropQuery) else self._read(each.query)
            )
        }
        if len(found) > 1:
            raise MuntinError(
                f"the statements read the streams {', '.join(sorted(found))}",
                hint="change one stream at a time; those of a join must run together from the "
                "start",
            )
        return found.pop()

    def _read(self, query: AnyQuery) -> list[str]:
        """The runs of the streams that a query reads."""
        names = query.streams if isinstance(query, RowQuery) else [query.source]
        return [self._running(name) for name in names]

    def _running(self, source: str) -> str:
        if source.lower() in self.homes:
            return self.homes[source.lower()]
        hint = did_you_mean(source, self.homes)
        with suppress(MuntinError):
            stream = self.pipeline.stream(source)
            hint = f"no query of the file reads {stream.name}: write one there, and start again"
        raise MuntinError(f"there is no stream {source} running", hint=hint)

    def _run_of(self, stream: str) -> Run:
        return self.runs[self._running(self.pipeline.stream(stream).name)]

    def _home(self, name: str) -> str:
        """The stream that a query runs over."""
        names: dict[str, tuple[str, str]] = {}
        for stream, queries in self.queries().items():
            names |= {query.name.lower(): (query.name, stream) for query in queries}
        if name.lower() not in names:
            known = [each for each, _ in names.values()]
            hint = did_you_mean(name, known) or "muntin list shows those that run"
            raise UnknownQueryError(f"there is no query named {name}", hint=hint)
        return names[name.lower()][1]

    def _check_free(self, stream: str, statements: Sequence[Statement]) -> None:
        """Refuse names of other streams' queries: sinks and people know queries by their names."""
        for each in statements:
            with suppress(UnknownQueryError):
                if isinstance(each, DropQuery):
                    continue
                if self._home(each.query.name) != stream:
                    message = f"there is a query named {each.query.name} over another stream"
                    raise MuntinError(message, hint="use another name")

    def __repr__(self) -> str:
        streams = "; ".join(f"{name}: {progress}" for name, progress in self.progress().items())
        return f"<PipelineRun {streams}>"

    def _repr_html_(self) -> str:
        """The runs of all streams, for notebooks."""
        return "\n".join(
            f"<h4>{escape(name)}</h4>\n{run._repr_html_()}" for name, run in self.runs.items()
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _text(statement: Statement) -> str:
    if isinstance(statement, DropQuery):
        return f"DROP QUERY `{statement.name}`"
    text = statement.query.sql()
    return text.replace("CREATE", "CREATE OR REPLACE", 1) if statement.replace else text


Signature = frozenset[tuple[str, int, int]]


class TableWatcher:
    """Which tables have changed since they were read.

    Tables of other file systems are not looked at: asking for them each second may cost money.

    Args:
        tables: The tables; those without ``refresh`` are left alone.
        clock: Seconds that only grow.
    """

    def __init__(
        self, tables: Iterable[TableSpec], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._watched = [
            _Watched(table.name, table.path, duration(table.refresh) / 1e6, clock())
            for table in tables
            if table.refresh is not None and "://" not in table.path
        ]

    def changed(self) -> Iterator[str]:
        """The tables to read again; one that is not `accept`-ed is named again when it is due."""
        for each in self._watched:
            if self._clock() < each.due:
                continue
            each.due = self._clock() + each.interval
            each.found = signature(each.path)
            if each.found != each.read:
                yield each.name

    def accept(self, name: str) -> None:
        """Take note that a table has been read as it was when it was named."""
        for each in self._watched:
            if each.name == name:
                each.read = each.found


class _Watched:
    def __init__(self, name: str, path: str, interval: float, moment: float) -> None:
        self.name, self.path, self.interval = name, path, interval
        self.due = moment + interval
        self.read = self.found = signature(path)


def signature(path: str) -> Signature:
    """What tells whether files have changed: their names, sizes and times."""
    found = [Path(each) for each in glob.glob(path)] or [Path(path)]
    files = [file for each in found for file in ([each] if each.is_file() else _files(each))]
    signs = set()
    for file in files:
        try:
            status = file.stat()
        except OSError:
            # It is gone already; what takes its place is seen with the next look.
            continue
        signs.add((str(file), status.st_mtime_ns, status.st_size))
    return frozenset(signs)


def _files(folder: Path) -> Iterator[Path]:
    for file in folder.rglob("*"):
        if file.is_file() and not file.name.startswith((".", "_")):
            yield file
