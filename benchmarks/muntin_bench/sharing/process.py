"""A process of its own that is kept to one core, for sides that are measured on one."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from muntin.errors import MuntinError
from muntin_bench import progress

T = TypeVar("T")
# Read by polars, numba and the libraries under numpy when they are loaded.
_THREADS = ("POLARS_MAX_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class OneCore:
    """Calls functions in the other process; what they cache stays there between calls."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """The result of a module's function; its error is raised here."""
        self._connection.send((function, args))
        try:
            failed, result = self._connection.recv()
        except EOFError:
            raise MuntinError(
                "the measuring process ended", hint="it may have run out of memory"
            ) from None
        if failed:
            raise AssertionError(f"in the measuring process: {result}")
        answer: T = result
        return answer


@contextmanager
def one_core() -> Iterator[OneCore]:
    """A process with one thread a library, bound to one core where the system can do that.

    >>> with one_core() as process:
    ...     process.call(max, 3, 5)
    5
    """
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, progress.running()), daemon=True)
    with _confined():
        process.start()
    theirs.close()
    try:
        yield OneCore(ours)
    finally:
        ours.close()
        process.join()


@contextmanager
def _confined() -> Iterator[None]:
    """Settings that a child process inherits at its start."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    if cores:
        os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        if cores:
            os.sched_setaffinity(0, cores)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _serve(connection: Connection, benchmark: progress.Started | None) -> None:
    progress.begin(benchmark)
    while True:
        try:
            function, args = connection.recv()
        except EOFError:
            return
        try:
            connection.send((False, function(*args)))
        except Exception:
            connection.send((True, traceback.format_exc()))
