"""The first entry of a window is found in a few steps, whatever its place has kept."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from muntin.engine import LocalEngine
from muntin.engine.slices.sealed_log import SealedLog
from muntin.planner import build_plan
from muntin.queries import queries

SCHEMA = pa.schema([("t", pa.int64()), ("v", pa.int64())])
SLICES = 2000


def hops(log: SealedLog, since: int) -> int:
    """How many entries are looked at from a place's last one back to the first since a position."""
    first = int(log.trail.firsts[-1])
    position, count = int(log.lasts[0]), 0
    while True:
        count += 1
        leap = int(log._leaps.tail[position - first])
        if leap > 0 and position - leap >= since:
            position -= leap
            continue
        step = int(log._steps.tail[position - first])
        if step == 0 or position - step < since:
            assert position == since
            return count
        position -= step


@pytest.mark.parametrize("windows", [1, 2, 4])
def test_a_window_that_one_batch_filled_is_found_in_few_steps(windows: int) -> None:
    text = f"CREATE QUERY q AS SELECT sum(v) AS s FROM s [RANGE {SLICES} SLIDE 1]"
    engine = LocalEngine(build_plan(queries(text), SCHEMA, "t"), 0)
    bounds = [0, SLICES + 1, *range(SLICES + 101, (windows + 1) * SLICES, 100)]
    for low, high in pairwise(bounds):
        ticks = np.arange(low, high)
        due = engine.feed(pa.table([ticks, ticks], schema=SCHEMA))
    assert due["q"].column("s").to_pylist()[-1] == sum(range(high - 1 - SLICES, high - 1))
    moving = engine._state.stores[0].moving
    assert moving is not None
    log = moving.log
    # Skew-binary leaps take about two steps for each doubling.
    for since in range(log.begin, log.end, 97):
        assert hops(log, since) <= 3 * SLICES.bit_length()
