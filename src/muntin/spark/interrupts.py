"""Ctrl-C while calls of the JVM are under way."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def ctrl_c() -> Iterator[Callable[[], None]]:
    """What raises the ``KeyboardInterrupt`` of a block, between two calls of the JVM.

    PySpark's own handler cancels all jobs, in the middle of whatever call is under way: the batch
    fails, and the call with it. A handler of the user's is left alone, as are other threads than
    the main one, which get no signals.
    """
    pressed = threading.Event()

    def check() -> None:
        if pressed.is_set():
            raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not _is_replaced(before):
        yield check
        return

    def press(number: int, frame: Any) -> None:
        pressed.set()

    signal.signal(signal.SIGINT, press)
    try:
        yield check
    finally:
        # A session that was started meanwhile has put its own there.
        if signal.getsignal(signal.SIGINT) is press:
            signal.signal(signal.SIGINT, before)
    # It may have come when the block had looked for the last time.
    check()


def _is_replaced(handler: Any) -> bool:
    module = getattr(handler, "__module__", None) or ""
    return handler is signal.default_int_handler or module.startswith("pyspark.")
