"""A driver that dies at any moment leaves nothing half done: a restart goes on as if it had not."""

from __future__ import annotations

from pathlib import Path

import pytest

from muntin.spark.java import find_java
from spark.chaos import torment


@pytest.mark.slow
@pytest.mark.parametrize("seed", [58])
def test_killed_drivers_leave_no_trace(tmp_path: Path, seed: int) -> None:
    if find_java() is None:
        pytest.skip("no Java runtime")
    torment(tmp_path, seed, kills=2)
