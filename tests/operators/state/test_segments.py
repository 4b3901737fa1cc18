"""Segments of a join's rows: what a probe finds, how few there are, and how often rows move."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from muntin.operators import rows as threaded
from muntin.operators.rows import Rows
from muntin.operators.state import segments as module
from muntin.operators.state.radix_sort import order_of
from muntin.operators.state.segments import Segment, Segments, matches

LOWEST = np.iinfo(np.int64).min


def rows(start: np.ndarray, life: np.ndarray | int) -> Rows:
    ids = np.arange(start.size)
    return Rows((pa.array(ids),), ids, start.astype(np.int64), (start + life).astype(np.int64))


def brute(held: list[tuple[int, int, int]], asked: list[tuple[int, int, int]]) -> list[tuple]:
    return sorted(
        (i, max(a, s), min(b, e))
        for i, (h, a, b) in enumerate(asked)
        for key, s, e in held
        if h == key and max(a, s) < min(b, e)
    )


@pytest.mark.parametrize("spread", [1, 7, 1 << 62])
def test_a_probe_finds_all_that_live_together(spread: int) -> None:
    """Hashes that are all the same, few, and of all values; the lowest there is among them."""
    rng = np.random.default_rng(spread % 97)
    side = Segments(40)
    held: list[tuple[int, int, int]] = []
    watermark = 0
    for _ in range(30):
        size = int(rng.integers(1, 60))
        hashes = rng.integers(-spread, spread, size)
        hashes[rng.random(size) < 0.1] = LOWEST
        batch = rows(np.sort(rng.integers(watermark, watermark + 20, size)), rng.integers(1, 40))
        side.add(Segment.of(hashes, batch), watermark)
        held += zip(hashes.tolist(), batch.start.tolist(), batch.end.tolist(), strict=True)
        watermark += 8
        side.evict(watermark)
        asking = rng.integers(-spread, spread, 20)
        asking[:3] = [each for each, _, _ in held[-3:]] * (3 // min(len(held), 3))
        start = rng.integers(watermark, watermark + 20, 20)
        order, _ = order_of(asking, start)
        asking, start = asking[order], start[order]
        end = start + int(rng.integers(1, 30))
        found = sorted(
            pair
            for segment in side.all()
            for each in [matches(segment, asking, start, end)]
            for pair in zip(
                each.asking.tolist(), each.start.tolist(), each.end.tolist(), strict=True
            )
        )
        asked = list(zip(asking.tolist(), start.tolist(), end.tolist(), strict=True))
        # Rows that ended below the watermark meet nobody any more, dropped or not.
        assert found == brute([each for each in held if each[2] > watermark], asked)


@pytest.mark.parametrize("life", [1, 30, 5000])
def test_threads_find_the_pairs_of_one(life: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of one key may be cut in the middle, and need not ask in order of time."""
    rng = np.random.default_rng(life)
    count = 3000
    held = rng.integers(0, 40, count)
    batch = rows(rng.integers(0, 5000, count), rng.integers(1, life + 1, count))
    segment = Segment.of(held, batch)
    asking, start = np.sort(rng.integers(0, 50, count)), rng.integers(0, 5000, count)
    end = start + rng.integers(1, life + 1, count)
    monkeypatch.setattr(module, "_PART", 64)
    monkeypatch.setattr(threaded, "_MANY", 0)
    one, two = (matches(segment, asking, start, end, threads) for threads in (1, 2))
    assert list(zip(one.asking, one.kept, one.start, one.end, strict=True)) == list(
        zip(two.asking, two.kept, two.start, two.end, strict=True)
    )
    kept = zip(segment.hashes.tolist(), segment.start.tolist(), segment.end.tolist(), strict=True)
    asked = zip(asking.tolist(), start.tolist(), end.tolist(), strict=True)
    found = zip(two.asking.tolist(), two.start.tolist(), two.end.tolist(), strict=True)
    assert sorted(found) == brute(list(kept), list(asked))


def test_segments_are_few_and_rows_move_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = 0
    real = module.merged

    def counted(parts: list[Segment]) -> Segment:
        nonlocal moved
        moved += sum(map(len, parts))
        return real(parts)

    monkeypatch.setattr(module, "merged", counted)
    rng = np.random.default_rng(5)
    for batches in (32, 320):
        moved, size, side = 0, 40, Segments(batches * 10)
        for number in range(3 * batches):
            start = np.sort(rng.integers(number * 10, number * 10 + 10, size))
            hashes = rng.integers(-(1 << 62), 1 << 62, size)
            side.add(Segment.of(hashes, rows(start, batches * 10)), number * 10)
            side.evict(number * 10)
            assert len(side.all()) <= 10 + np.log2(batches)
            assert len(side) <= 1.2 * size * (batches + 1)
        # As often as the batches of a partition can be doubled, and once when it is sealed.
        assert moved <= (2 + np.log2(batches / 8)) * 3 * batches * size


def test_large_segments_are_merged_many_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of a large segment moves once for every sixteenfold of batches in a partition."""
    monkeypatch.setattr(module, "_SMALL", 64)
    moved = 0
    real = module.merged

    def counted(parts: list[Segment]) -> Segment:
        nonlocal moved
        moved += sum(map(len, parts))
        return real(parts)

    monkeypatch.setattr(module, "merged", counted)
    size = 100
    for batches, moves, most in ((80, 0, 10 * 10), (800, 1, 10 * 24)):
        moved, side = 0, Segments(batches * 10)
        for number in range(2 * batches):
            start = np.full(size, number * 10)
            hashes = np.arange(size) * number
            side.add(Segment.of(hashes, rows(start, batches * 10)), number * 10)
            side.evict(number * 10)
            assert len(side.all()) <= most
        assert moved <= moves * 2 * batches * size
