"""The newest record of each key, whatever segments it and older ones lie in."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from muntin.operators.rows import Rows
from muntin.operators.state.keys import hash_columns
from muntin.operators.state.live_rows import by_end
from muntin.operators.state.newest import Newest, all_of, newest_of
from muntin.operators.state.segments import Segment

LIFETIME = 40


def records(keys: np.ndarray, latest: np.ndarray, shown: np.ndarray) -> Segment:
    columns = (pa.array(keys),)
    hashes, _ = hash_columns(columns, keys.size)
    return by_end(hashes, Rows(columns, latest, latest, shown))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("count", [5, 3000, 12_000])
def test_the_newest_is_found(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    held, kept = Newest(LIFETIME), {}
    hashes, _ = hash_columns((pa.array(np.arange(count)),), count)
    order = np.argsort(hashes)
    for now in range(0, 120, 3):
        touched = set(rng.permutation(count)[: rng.integers(1, count)].tolist())
        over = {key for key, ends in kept.items() if ends[0] < now}
        for key in over:
            shown, latest = kept.pop(key)
            if latest > shown:
                kept[key] = latest, latest
        for key in touched:
            shown, latest = kept.get(key, (now + LIFETIME - 20, 0))
            kept[key] = shown, max(latest, now + LIFETIME)
        changed = np.array([*((touched | over) & kept.keys())])
        ends = np.array([kept[key] for key in changed.tolist()])
        held.keep(records(changed, ends[:, 1].copy(), ends[:, 0].copy()), now - 1)
        held.compact(len(kept), now)
        assert len(held) <= 2 * len(kept)
        segments = held.all()
        newest = newest_of(segments, hashes[order], now)
        places = newest.places
        assert set(places[places >= 0].tolist()) <= set(all_of(segments, np.sort(hashes), now))
        given = order.tolist(), places.tolist(), newest.end.tolist(), newest.start.tolist()
        found = {key: ends for key, place, *ends in zip(*given, strict=True) if place >= 0}
        assert found == {key: [*ends] for key, ends in kept.items()}


def test_records_that_are_over_do_not_count() -> None:
    held = Newest(LIFETIME)
    held.keep(records(np.arange(3), np.full(3, 9), np.array([3, 5, 9])), 0)
    hashes = np.sort(hash_columns((pa.array(np.arange(3)),), 3)[0])
    assert (newest_of(held.all(), hashes, 6).places >= 0).sum() == 1
    assert all_of(held.all(), hashes, 4).size == 2
