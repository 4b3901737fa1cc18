"""What a task sends to a bucket, cut into rows of Spark's and put together again."""

from __future__ import annotations

import random

import pandas as pd
import pytest

from muntin.spark.streaming.reports import NO_TIME, MapReport
from muntin.spark.streaming.tasks.stage_a import LONGEST, cut
from muntin.spark.streaming.tasks.stage_b import collected


@pytest.mark.parametrize("size", [0, 1, LONGEST, LONGEST + 1, 5 * LONGEST, 5 * LONGEST - 1])
def test_parts_are_short_and_make_up_the_whole(size: int) -> None:
    blob = random.Random(size).randbytes(size)
    parts = cut(blob)
    assert len(parts) == max(-(-size // LONGEST), 1)
    assert all(part is not None and len(part) <= LONGEST for part in parts)
    assert b"".join(part or b"" for part in parts) == blob


@pytest.mark.parametrize("seed", range(4))
def test_rows_in_any_order_and_in_any_frames_are_the_same(seed: int) -> None:
    rng = random.Random(seed)
    sent = {(0, 0): 3 * LONGEST + 5, (0, 11): 17, (1, 2): None, (1, 3): LONGEST + 1}
    blobs = {key: None if size is None else rng.randbytes(size) for key, size in sent.items()}
    rows = [
        (*key, part, data, NO_TIME if part or key[0] else 100 + key[1], None)
        for key, blob in blobs.items()
        for part, data in enumerate(cut(blob))
    ]
    rows.append((0, 4, 0, None, 90, MapReport(latest=90).to_bytes()))
    rng.shuffle(rows)
    columns = ["stream", "task", "part", "partials", "latest", "counts"]
    at = rng.randrange(len(rows) + 1)
    frames = [pd.DataFrame(some, columns=columns, dtype=object) for some in (rows[:at], rows[at:])]
    found = collected(frames)
    assert found.blobs == [blob for _, blob in sorted(blobs.items()) if blob is not None]
    assert found.latest == {0: 111}
    assert found.report.latest == 111
