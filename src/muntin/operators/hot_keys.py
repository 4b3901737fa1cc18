"""The keys that most rows have: what makes one bucket of a join slower than the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from muntin.expressions import Bound, Evaluator

# Rows of a batch that are looked at, keys that are counted, and after how many rows half of all
# counts are forgotten.
_SAMPLE = 1024
_KEYS = 256
_RECENT = 1 << 16


class HotKey(NamedTuple):
    """A key, as text, and the share of recent rows that have it."""

    key: str
    share: float


class KeyCounts:
    """How often keys occur in a sample of recent rows.

    Of each batch up to 1,024 rows are looked at, evenly spaced. Keys beyond the 256 most frequent
    are forgotten, and older rows count less and less.

    >>> counts = KeyCounts()
    >>> counts.add({"a": 6, "b": 2}, 8)
    >>> counts.hottest(1)
    (HotKey(key='a', share=0.75),)
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._rows = 0

    def add(self, counts: dict[str, int], rows: int) -> None:
        """Count keys of so many rows."""
        self._counts.update(counts)
        self._rows += rows
        if len(self._counts) > _KEYS:
            self._counts = Counter(dict(self._counts.most_common(_KEYS)))
        while self._rows > _RECENT:
            self._rows //= 2
            halved = {key: count // 2 for key, count in self._counts.items()}
            self._counts = Counter({key: count for key, count in halved.items() if count})

    def hottest(self, most: int = 3) -> tuple[HotKey, ...]:
        """The most frequent keys that occur more than once."""
        found = [each for each in self._counts.most_common(most) if each[1] > 1]
        return tuple(HotKey(key, count / self._rows) for key, count in found)


class KeySample:
    """Counts the keys of some rows of each batch."""

    def __init__(self, key: Sequence[Bound]) -> None:
        self._key = Evaluator(key)
        self.counts: Counter[str] = Counter()
        self.rows = 0

    def see(self, rows: pa.Table) -> None:
        """Look at some rows of a batch; those whose key is NULL meet nothing."""
        step = -(-rows.num_rows // _SAMPLE)
        if not rows.num_rows:
            return
        chosen = rows.take(pa.array(np.arange(0, rows.num_rows, step)))
        columns = [each.values.to_pylist() for each in self._key(chosen)]
        self.rows += chosen.num_rows
        self.counts.update(
            ", ".join(map(str, values)) for values in zip(*columns, strict=True)
            if None not in values
        )  # fmt: skip
