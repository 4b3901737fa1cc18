"""Drivers that die at any moment, each a process: a restart goes on as if nothing had."""

from __future__ import annotations

from pathlib import Path

import pytest

from muntin.spark.environment.java import find_java
from spark.chaos import Kill, random_kills, torment


@pytest.mark.slow
def test_killed_drivers_leave_no_trace(tmp_path: Path) -> None:
    if find_java() is None:
        pytest.skip("no Java runtime")
    # In the middle of a batch, between its record and its commit, and when a sink has written
    # some files of a task and not the others; and before the outcome of a batch whose keeps are
    # committed.
    kills = [Kill("after the record", 2), Kill("after what is kept", 1), Kill("while writing", 1)]
    story = torment(tmp_path, 58, kills)
    assert [line.rpartition(": ")[2] for line in story] == ["-9"] * len(kills) + ["0"]


def test_kills_are_drawn_by_seed() -> None:
    drawn = [kill for seed in range(50) for kill in random_kills(seed, 4)]
    assert drawn == [kill for seed in range(50) for kill in random_kills(seed, 4)]
    assert {kill.worker for kill in drawn} == {True, False}
    assert len({kill.point for kill in drawn}) == 14
