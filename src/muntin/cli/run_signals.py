"""Ctrl-C and SIGTERM: the first asks for a clean end, the next one ends at once."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any, Self

_WATCHED = (signal.SIGINT, signal.SIGTERM)


class Signals:
    """Takes note of signals while it is entered.

    Attributes:
        received: The number of the first signal; 0 before.
    """

    def __init__(self) -> None:
        self.received = 0
        self._before: dict[int, Any] = {}

    def install(self) -> None:
        """Watch from here on; once more after Spark has started, which brings its own handler."""
        for number in _WATCHED:
            signal.signal(number, self._receive)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.received:
            raise SystemExit(128 + number)
        self.received = number

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
