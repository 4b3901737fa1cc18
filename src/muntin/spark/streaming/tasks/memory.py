"""States of buckets in a worker's memory, from batch to batch."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class KeptState:
    """A state in a worker's memory, what it was written as, its plan, and about how large it is."""

    written: str
    plan: str
    state: Any
    size: int


class WorkerStates:
    """States of buckets that this worker has seen, so that they are not read again and again.

    One is used only if the state that Spark hands over is the very one, or goes back to it,
    whatever attempts and restarts there have been.
    """

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, int], KeptState] = OrderedDict()

    def take(self, key: tuple[str, int]) -> KeptState | None:
        """The state, which is not kept any longer: it is about to change."""
        return self._held.pop(key, None)

    def put(self, key: tuple[str, int], kept: KeptState, room: int) -> None:
        """Keep a state, and as many others as there is room for."""
        self._held[key] = kept
        while len(self._held) > 1 and sum(each.size for each in self._held.values()) > room:
            self._held.popitem(last=False)


worker_states = WorkerStates()
