"""How long workers take, step by step."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

_Item = TypeVar("_Item")


class Clock:
    """Seconds of this process's own work, by step: those of other processes do not count.

    >>> clock = Clock()
    >>> sum(clock.over(range(4), "count"))
    6
    >>> list(clock.seconds)
    ['count']
    """

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        """Time what is done inside."""
        begin = time.process_time()
        try:
            yield
        finally:
            self.seconds[step] += time.process_time() - begin  # type: ignore[assignment]

    def over(self, items: Iterable[_Item], step: str) -> Iterator[_Item]:
        """Time how long items take to come."""
        each = iter(items)
        while True:
            with self(step):
                item = next(each, None)
            if item is None:
                return
            yield item
