"""What Muntin's parts log while a command runs, on the command's screen."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from muntin.cli.run_screen import Screen


class _ScreenHandler(logging.Handler):
    def __init__(self, screen: Screen) -> None:
        super().__init__(logging.INFO)
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        self._screen.say(record.getMessage(), record.levelname.lower())


@contextmanager
def logging_to(screen: Screen) -> Iterator[None]:
    """Show what is logged, and warnings, without their places in the code."""
    handler = _ScreenHandler(screen)
    logger = logging.getLogger("muntin")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: screen.say(str(message), "warning")
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
