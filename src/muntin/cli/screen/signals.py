"""Ctrl-C and SIGTERM: the first asks for a clean end, the next one ends at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import Popen
from traceback import walk_tb
from types import FrameType, TracebackType
from typing import Any, Self

from muntin.cli.files import SIGNALLED

_WATCHED = (signal.SIGINT, signal.SIGTERM)


class Signals:
    """Takes note of signals while it is entered.

    Attributes:
        received: The number of the first signal; 0 before.
        is_insisted: Whether another one came, which ends at once.
    """

    def __init__(self) -> None:
        self.received = 0
        self.is_insisted = False
        self._is_starting = False
        self._before: dict[int, Any] = {}

    def install(self) -> None:
        """Watch from here on; once more after Spark has started, which brings its own handler."""
        for number in _WATCHED:
            signal.signal(number, self._receive)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        del frame
        is_first = not self.received
        self.received = self.received or number
        self.is_insisted = not is_first
        if self._is_starting or self.is_insisted:
            raise SystemExit(SIGNALLED + number)

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Let the first signal end a block at once: there is no batch yet that could be lost.

        A process that the block was about to start is ended too: a JVM that finds nobody to serve
        fills the screen with its frames, and stays.
        """
        self._is_starting = True
        try:
            yield
        except SystemExit as end:
            for frame, _ in walk_tb(end.__traceback__):
                for value in frame.f_locals.values():
                    if isinstance(value, Popen):
                        value.kill()
            raise
        finally:
            self._is_starting = False

    def __enter__(self) -> Self:
        self._before = {number: signal.getsignal(number) for number in _WATCHED}
        self.install()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
