"""The rows of one stream that joins share: how they are read, and those that are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.expressions import Bound, Evaluated, Evaluator
from muntin.operators.rows import NEVER, NONE, Rows
from muntin.operators.select import derived, failures, single, truths
from muntin.operators.state import keys
from muntin.operators.state.segments import Segment, Segments
from muntin.plan.operators import StreamSchema, Windowed


def conditions(leaves: Iterable[Windowed]) -> list[Bound | None]:
    """The conditions of some leaves, each once; None where a leaf has none."""
    return list(dict.fromkeys(leaf.where for leaf in leaves))


class StoreSide:
    """One of the two streams: how its rows are read, and those that are kept."""

    STATE = ("kept",)

    def __init__(
        self, leaves: Sequence[Windowed], key: Sequence[Bound], stream: StreamSchema
    ) -> None:
        self._timeline = stream.timeline
        self._key = tuple(key)
        # Failures of each condition, and of each column where a condition holds.
        self._failures: Counter[Bound | tuple[Bound | None, Bound]] = Counter()
        self._arrange(leaves)
        self.kept = Segments(self._longest if self._longest < NEVER else 0)

    def _arrange(self, leaves: Sequence[Windowed]) -> None:
        self.wheres = conditions(leaves)
        self.columns = list(
            dict.fromkeys([*self._key, *(each.value for leaf in leaves for each in leaf.columns)])
        )
        self._longest = max(NEVER if leaf.range is None else leaf.range for leaf in leaves)
        self._judge = Evaluator([where for where in self.wheres if where is not None])
        self._project = Evaluator(self.columns)

    def arrange(self, leaves: Sequence[Windowed]) -> None:
        """Go on with other leaves: what they want of what is kept, as far as it is known."""
        columns, wheres, longest = self.columns, self.wheres, self._longest
        self._arrange(leaves)
        for segments in self.kept.partitions.values():
            segments[:] = [self._arranged(each, columns, wheres) for each in segments]
        if self._longest != longest:
            self.kept = self.kept.resized(self._longest)

    def _arranged(
        self, segment: Segment, columns: Sequence[Bound], wheres: Sequence[Bound | None]
    ) -> Segment:
        count = len(segment)
        held = dict(zip(columns, segment.rows.columns[:-1], strict=True))
        asked = [each for each in self.wheres if each is not None and each not in wheres]
        times = self._timeline, segment.start
        found = derived([*self.columns, *asked], held, *times)
        known = segment.rows.columns[-1].to_numpy()
        mask = np.zeros(count, np.int64)
        for bit, where in enumerate(self.wheres):
            if where in wheres:
                mask |= (known >> wheres.index(where) & 1) << bit
            elif where is None:
                mask |= 1 << bit
            elif where in found:
                mask |= truths(found[where].values).astype(np.int64) << bit
        arranged = [
            found[each].values if each in found else pa.nulls(count, each.type)
            for each in self.columns
        ]
        rows = replace(segment.rows, columns=(*arranged, pa.array(mask)))
        return replace(segment, rows=rows).pick(np.flatnonzero(mask))

    def read(self, batch: pa.Table | None) -> tuple[Segment, bool]:
        """New rows that some leaf wants, in order of their keys; whether hashes prove equality."""
        if batch is None or not batch.num_rows:
            rows = Rows((*(pa.array([], each.type) for each in self.columns), pa.array(NONE)),
                        NONE, NONE, NONE)  # fmt: skip
            return Segment.of(NONE, rows), True
        mask = self._mask(batch)
        found = self._project(batch)
        self._count_failures(found, mask)
        values = tuple(each.values for each in found)
        start = np.array(self._timeline.to_ticks(single(batch.column(self._timeline.column))))
        width = len(self._key)
        wanted = (mask != 0) & ~keys.has_null(values[:width], mask.size)
        hashes, exact = keys.hash_columns(values[:width], mask.size)
        end = np.full(start.size, NEVER)
        if self._longest < NEVER:
            end = np.minimum(start + self._longest, NEVER)
        rows = Rows((*values, pa.array(mask)), start, start, end)
        if wanted.all():
            return Segment.of(hashes, rows), exact
        chosen = np.flatnonzero(wanted)
        return Segment.of(hashes[chosen], rows.take(chosen)), exact

    def _mask(self, batch: pa.Table) -> Ints:
        """A bit for each condition that a row satisfies."""
        judged = iter(self._judge(batch))
        mask = np.zeros(batch.num_rows, np.int64)
        for bit, where in enumerate(self.wheres):
            if where is None:
                mask |= 1 << bit
                continue
            found = next(judged)
            self._failures[where] += failures(found)
            mask |= truths(found.values).astype(np.int64) << bit
        return mask

    def _count_failures(self, found: Sequence[Evaluated], mask: Ints) -> None:
        for column, each in zip(self.columns, found, strict=True):
            if each.errors is not None:
                failed = mask[truths(each.errors)]
                for bit, where in enumerate(self.wheres):
                    self._failures[where, column] += int((failed >> bit & 1).sum())

    def errors(self, leaf: Windowed) -> int:
        """How often expressions failed that a leaf takes values from."""
        judged = 0 if leaf.where is None else self._failures[leaf.where]
        return judged + sum(self._failures[leaf.where, each.value] for each in leaf.columns)

    def held(self, leaf: Windowed) -> list[Rows]:
        """The rows kept that one of the leaves takes."""
        bit = self.wheres.index(leaf.where)
        places = [self.columns.index(each.value) for each in leaf.columns]
        found = []
        for segment in self.kept.all():
            rows = segment.rows.where((segment.rows.columns[-1].to_numpy() >> bit & 1) > 0)
            columns = tuple(rows.columns[each] for each in places)
            found.append(Rows(columns, rows.ids, rows.start, rows.end))
        return found
