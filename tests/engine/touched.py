"""A count of the entries that a stream's batches touch, taken where the engine hands them on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from muntin._typing import Ints
from muntin.engine.answers import front, moving
from muntin.engine.slices import open_log, partials
from muntin.engine.slices.finals.extremes import Extremes
from muntin.engine.slices.finals.own_slices import OwnSlices
from muntin.engine.slices.finals.totals import Totals
from muntin.engine.slices.moving_slices import MovingSlices
from muntin.engine.slices.places import Chains, Places, Spans
from muntin.engine.slices.recency import Recency
from muntin.engine.slices.sealed_log import SealedLog
from muntin.engine.slices.stretches import Stretched
from muntin.engine.slices.values.blocks import SealedValues
from muntin.engine.slices.values.last_seen import Marks


def _visited(chains: Chains, spans: Spans) -> int:
    """The places that are looked at: all those of each window's slot."""
    lengths = np.zeros(chains.firsts.size, np.int64)
    for slot in np.unique(spans.slots).tolist():
        place = int(chains.firsts[slot])
        while place >= 0:
            lengths[slot] += 1
            place = int(chains.following[place])
    return int(lengths[spans.slots].sum())


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """What is touched in the block, by what it is touched for.

    ``in`` are entries of batches, ``sealed`` those that were sealed; ``open``, ``own`` and
    ``answers`` what was looked at to merge, to gather own slices and to answer; ``moved`` what was
    copied to make room; ``marked`` entries by which marks of values moved on;
    ``whole`` whatever goes over all that is kept.
    """
    found: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:

        def watch(owner: Any, name: str, kind: str, size: Callable[..., int]) -> None:
            real = getattr(owner, name)

            def watched(*args: Any, **kwargs: Any) -> Any:
                found[kind] += size(*args)
                return real(*args, **kwargs)

            patch.setattr(owner, name, watched)

        def runs(parts: Any, given: Any) -> int:
            return sum(run.starts.size for run in given)

        def listed(recent: Recency, lows: Ints, highs: Ints, *_: Any) -> int:
            return int(np.minimum(highs - lows, recent.live).sum())

        watch(Places, "number", "in", lambda _, batch: batch.starts.size)
        watch(open_log, "merged", "open", runs)
        watch(SealedLog, "append", "sealed", lambda _, run: run.starts.size)
        watch(SealedLog, "_shift", "moved", lambda _, gone, used: used - gone)
        watch(Stretched, "resize", "moved", lambda a, room: len(a.tail) * (room > len(a.tail)))
        watch(SealedLog, "run", "whole", lambda log, *_: log.size)
        watch(MovingSlices, "entries", "whole", lambda slices, *_: slices.size)
        watch(partials, "merge_batches", "whole", lambda given, *_: _entries(given))
        watch(front, "StageB", "whole", lambda node, table, *_: table.starts.size)
        watch(Recency, "candidates", "answers", listed)
        watch(moving, "_exists", "answers", lambda *args: _visited(args[2], args[4]))
        for column in (Totals, Extremes):
            watch(column, "read", "answers", lambda *args: _visited(args[3], args[5]))
        watch(SealedValues, "read", "answers", lambda *args: len(args[5].slots))
        watch(Marks, "move", "marked", lambda _, news, *rest: news.positions.size)
        watch(OwnSlices, "feed", "own", lambda _, run, *rest: run.starts.size)
        watch(OwnSlices, "window", "own", lambda own, start, end, slots: slots.size)
        yield found


def _entries(batches: Any) -> int:
    return sum(batch.starts.size for batch in batches)
