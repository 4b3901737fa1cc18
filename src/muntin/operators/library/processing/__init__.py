"""Three ways to process windowed queries: negative tuples, directly, and by update pattern.

`nt` lets every window announce the end of each of its tuples, which all operators process like
an arrival; `direct` lets each operator find what has ended in a list of its own; `upa` picks the
store by the update pattern: a queue where rows end in order, a calendar queue where ends are
known, and announces early ends only. Answers are the same, costs are not.

*Sliding Window Query Processing over Data Streams*, 3.5 and 3.6: its queries 1 (`join`), 2
(`distinct`), 3 (`absence`) and 4 (`absence_join`), the last two as NOT EXISTS.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muntin._typing import Ints
from muntin.display import count
from muntin.errors import DataError, WindowError
from muntin.operators.library.processing.absence import absence
from muntin.operators.library.processing.absence_join import absence_join
from muntin.operators.library.processing.distinct import distinct
from muntin.operators.library.processing.join import join
from muntin.operators.library.processing.results import DIRECT, NT, UPA, new_store

__all__ = ["MODES", "QUERIES", "Processed", "process"]

QUERIES = ("join", "distinct", "absence", "absence_join")
MODES = ("nt", "direct", "upa")
_HASH_LISTS = 4096


class Processed(NamedTuple):
    """What a query gave, and what it took.

    Attributes:
        rows: A row per result: the positions of its tuples (-1 where there is no second), and
            its lifetime, from and to.
        looked: Entries of stores that were looked at.
        peak: The most tuples and results that were kept at once.
        negatives: Negative tuples that were processed.
    """

    rows: Ints
    looked: int
    peak: int
    negatives: int


def process(
    query: str,
    mode: str,
    times: Ints,
    links: Ints,
    keys: Ints,
    window: int,
    *,
    partitions: int = 10,
    scanning: bool = False,
    absence_up: bool = True,
    hash_lists: int | None = None,
    eager: bool = False,
    most: int = 1_000_000,
) -> Processed:
    """Process tuples that come in order of time, each from link 0 or 1, by one of the modes.

    A tuple lives from its time to before its time + `window`. `keys` are small whole numbers.
    `partitions` are those of a calendar queue. With `scanning` they are as the thesis has them:
    those of a join are sorted, and a result that ends early is looked for in all of them, where
    there would be an index of results. At most `most` results.

    Hash tables have so many `hash_lists`, which are walked through from the newest entry on: those
    that `nt` keeps results in, and in `join` and `distinct` those that tuples and keys are looked
    for in. The thesis has 10; without the argument there are so many that hardly two keys share a
    list. With `eager` a join drops results with every tuple that comes, else every twentieth of a
    window.

    `absence_join` gives pairs of links 0 and 2 with equal keys while link 1 has no tuple of the
    key. With `absence_up` pairs are joined first, and hidden as they are; else tuples of link 0 are
    hidden before they join.

    >>> times = np.array([0, 3, 20]); links = np.array([0, 1, 1]); keys = np.array([7, 7, 7])
    >>> process("absence", "upa", times, links, keys, window=10).rows.tolist()
    [[0, -1, 0, 3]]
    """
    _check(query, mode, times, links, keys, window, partitions, hash_lists)
    way = MODES.index(mode)
    rows = np.empty((most, 4), dtype=np.int64)
    lists = {NT: hash_lists or _HASH_LISTS, DIRECT: 1, UPA: partitions}[way]
    # One partition more than a window spans: the current one is only partly over.
    width = max(-(-window // max(partitions - 1, 1)), 1)
    times, links, keys = (
        np.ascontiguousarray(each, dtype=np.int64) for each in (times, links, keys)
    )
    spots = keys if hash_lists is None else keys % hash_lists
    store = new_store(most, lists)
    if query == "join":
        pause = 0 if eager else max(window // 20, 1)
        found = join(times, links, keys, spots, window, way, store, width, scanning, pause, rows)
    elif query == "distinct":
        found = distinct(times, keys, spots, window, way, store, width, rows)
    elif query == "absence":
        found = absence(times, links, keys, window, way, store, width, scanning, rows)
    else:
        room = most if absence_up else 1
        held, pairs = new_store(room, lists), np.empty((room, 4), dtype=np.int64)
        found = absence_join(
            times, links, keys, window, way, absence_up, store, held, width, scanning, rows, pairs
        )
    made, kept, negatives, looked = found
    if made > most:
        raise DataError(f"there are more than {count(most, 'result')}", hint="raise most=")
    return Processed(rows[:made], int(looked), int(kept), int(negatives))


def _check(
    query: str, mode: str, times: Ints, links: Ints, keys: Ints, window: int, partitions: int,
    hash_lists: int | None,
) -> None:  # fmt: skip
    if query not in QUERIES:
        raise DataError(f"{query!r} is not a query", hint=f"choose one of {', '.join(QUERIES)}")
    if mode not in MODES:
        raise DataError(f"{mode!r} is not a mode", hint=f"choose one of {', '.join(MODES)}")
    if mode == "direct" and query in ("absence", "absence_join"):
        raise DataError(
            f"direct cannot process {query}: its results end when rows arrive, not by themselves",
            hint="take nt or upa",
        )
    if window < 1 or partitions < 1 or (hash_lists is not None and hash_lists < 1):
        raise WindowError("windows and numbers of partitions and hash lists must be 1 or more")
    if len(times) > 1 and bool((np.diff(times) < 0).any()):
        raise DataError("tuples must come in order of time")
    most = 2 if query == "absence_join" else 1
    if len(keys) and (keys.min() < 0 or links.min() < 0 or links.max() > most):
        named = "0, 1 or 2" if query == "absence_join" else "0 or 1"
        raise DataError(f"keys must be 0 or more, and links {named}")
