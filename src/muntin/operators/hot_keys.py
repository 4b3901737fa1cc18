"""The keys that most rows have: what makes one bucket of a join slower than the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from muntin.expressions import Bound, Evaluator
from muntin.operators.rows import take
from muntin.operators.state.keys import has_null, hash_columns

# Rows of a batch that are looked at, keys that are counted, and after how many rows half of all
# counts are forgotten.
_SAMPLE = 1024
_KEYS = 256
_RECENT = 1 << 16


class Key(NamedTuple):
    """A key as text, and the hash that decides on its bucket."""

    text: str
    hash: int


class HotKey(NamedTuple):
    """A key, as text, and the share of recent rows that have it."""

    key: str
    share: float


class KeyCounts:
    """How often keys occur in a sample of recent rows.

    Of each batch up to 1,024 rows are looked at, evenly spaced. Keys beyond the 256 most frequent
    are forgotten, and older rows count less and less.

    >>> counts = KeyCounts()
    >>> counts.add({Key("a", 17): 6, Key("b", 4): 2}, 8)
    >>> counts.hottest(1)
    (HotKey(key='a', share=0.75),)
    """

    def __init__(self) -> None:
        self._counts: Counter[Key] = Counter()
        self.rows = 0

    def add(self, counts: Mapping[Key, int], rows: int) -> None:
        """Count keys of so many rows."""
        self._counts.update(counts)
        self.rows += rows
        if len(self._counts) > _KEYS:
            self._counts = Counter(dict(self._counts.most_common(_KEYS)))
        while self.rows > _RECENT:
            self.rows //= 2
            halved = {key: count // 2 for key, count in self._counts.items()}
            self._counts = Counter({key: count for key, count in halved.items() if count})

    def hottest(self, most: int = 3) -> tuple[HotKey, ...]:
        """The most frequent keys that occur more than once."""
        return tuple(HotKey(key.text, share) for key, share in self.shares(most))

    def shares(self, most: int) -> list[tuple[Key, float]]:
        """The same keys with their hashes, and the share of rows that have each."""
        found = [each for each in self._counts.most_common(most) if each[1] > 1]
        return [(key, count / self.rows) for key, count in found]


class KeySample:
    """Counts the keys of some rows of each batch."""

    def __init__(self, key: Sequence[Bound]) -> None:
        self._key, self._is_keyed = Evaluator(key), bool(key)
        self.counts: Counter[Key] = Counter()
        self.rows = 0

    def see(self, rows: pa.Table) -> None:
        """Look at some rows of a batch; those whose key is NULL meet nothing."""
        step = -(-rows.num_rows // _SAMPLE)
        if not rows.num_rows:
            return
        chosen = rows.take(pa.array(np.arange(0, rows.num_rows, step)))
        self.rows += chosen.num_rows
        if not self._is_keyed:
            # All rows meet all others.
            self.counts[Key("", 0)] += chosen.num_rows
            return
        columns = tuple(each.values for each in self._key(chosen))
        hashes, _ = hash_columns(columns, chosen.num_rows)
        whole = np.flatnonzero(~has_null(columns, chosen.num_rows))
        found, first, counts = np.unique(hashes[whole], return_index=True, return_counts=True)
        # Only the most frequent become text: whoever puts counts together keeps no more.
        most = np.argsort(-counts, kind="stable")[:_KEYS]
        texts = zip(*(each.to_pylist() for each in take(columns, whole[first[most]])), strict=True)
        for values, hashed, count in zip(texts, found[most].tolist(), counts[most], strict=True):
            self.counts[Key(", ".join(map(str, values)), hashed)] += int(count)
