"""A crash at every single step of writing, committing and compacting."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from muntin.sinks import parquet
from sinks import stream_of_results as stream

BATCHES = 4
STEPS = [
    *((Path, name) for name in ("replace", "unlink", "mkdir", "open")),
    (os, "fsync"),
    (pq, "write_table"),
]


class Crash(BaseException):
    """The process is gone: not an error that code handles."""


class Clock:
    """Counts steps that change the disk; from a given one on, each of them fails."""

    def __init__(self, last: int | None) -> None:
        self.last = last
        self.steps = 0

    def guard(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            if self.last is not None and self.steps >= self.last:
                raise Crash
            self.steps += 1
            return step(*args, **kwargs)

        return counted


def run(folder: Path, done: list[int]) -> None:
    sink = parquet(folder, compact_every=None)
    sink.recover(done[-1], run="r")
    for batch in range(done[-1] + 1, BATCHES):
        stream.run_batch(sink, batch)
        done.append(batch)
        if batch:
            sink.compact()


def crashing(folder: Path, done: list[int], last: int | None) -> int:
    clock = Clock(last)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("muntin.sinks.files.compaction.FAN_IN", 2)
        patch.setattr("muntin.sinks.files.compaction.choose.__kwdefaults__", {"fan_in": 2})
        patch.setattr("muntin.sinks.durable._THREADS", 1 << 30)
        for owner, name in STEPS:
            patch.setattr(owner, name, clock.guard(getattr(owner, name)))
        try:
            run(folder, done)
        except Crash:
            assert last is not None
        else:
            assert last is None
    return clock.steps


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> int:
    folder = tmp_path_factory.mktemp("undisturbed") / "out"
    total = crashing(folder, [-1], None)
    assert stream.assert_whole(folder) == BATCHES - 1
    assert any(folder.glob("*/c*.parquet"))
    return total


@pytest.mark.parametrize("share", range(4))
def test_every_crash_is_recovered_from(tmp_path: Path, steps: int, share: int) -> None:
    assert steps > 100
    for last in range(share, steps, 4):
        folder = tmp_path / f"out{last}"
        done = [-1]
        crashing(folder, done, last)
        if (folder / "_muntin.json").exists():
            assert done[-1] <= stream.last_committed(folder) <= done[-1] + 1
            stream.assert_whole(folder)
        run(folder, done)
        assert stream.assert_whole(folder) == BATCHES - 1
