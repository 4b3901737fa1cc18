"""Lists of frequent values as a column: open counts, and the sums of sealed panes' lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregates.algebra import FREQUENT, Lowered, Part
from muntin.aggregates.columns.column import PartColumn, grown
from muntin.aggregates.columns.holistic.rows import Rows, spread
from muntin.aggregates.columns.holistic.runs import RunColumn
from muntin.aggregates.columns.holistic.values import listed
from muntin.aggregates.holistic.frequent_items import ApproxFrequent, ApproxTopK

if TYPE_CHECKING:
    from muntin.aggregates.registry import ResolvedAggregate


class FrequentColumn(PartColumn):
    """Counts of every cell's open pane, and lower bounds, credit and slack of its sealed ones.

    Rows go into the counts. `seal` truncates these to lists; from then on only lists are combined.

    >>> column = FrequentColumn.empty(Part("frequent:1", (pa.string(),)), 1)
    >>> column.update(np.array([0, 0, 0]), (pa.array(["b", "a", "b"]),))
    >>> column.seal()
    >>> column.lows.to_arrow().to_pydict(), column.slack.tolist()
    ({'value': [['b']], 'weight': [[2]]}, [1])
    """

    def __init__(
        self, part: Part, counts: RunColumn, lows: RunColumn, credited: RunColumn, numbers: Ints
    ) -> None:
        super().__init__(part)
        self.counts, self.lows, self.credited, self.numbers = counts, lows, credited, numbers

    @classmethod
    def empty(cls, part: Part, size: int) -> Self:
        """No values."""
        runs = Part("runs", part.types)
        counts, lows, credited = (RunColumn.empty(runs, size) for _ in range(3))
        return cls(part, counts, lows, credited, np.zeros((size, 2), np.int64))

    @property
    def slack(self) -> Ints:
        """How often a value may occur that is on no list."""
        return self.numbers[:, 0]

    @property
    def totals(self) -> Ints:
        """How many values the sealed panes have."""
        return self.numbers[:, 1]

    @property
    def tracked(self) -> int:
        """How many values a list holds."""
        return int(self.part.kind.removeprefix(FREQUENT))

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def _runs(self) -> tuple[RunColumn, RunColumn, RunColumn]:
        return self.counts, self.lows, self.credited

    @property
    def nbytes(self) -> int:
        """Bytes of counts and lists."""
        return sum(each.nbytes for each in self._runs) + self.numbers.nbytes

    def update(self, cells: Ints, args: tuple[pa.Array, ...], times: Ints | None = None) -> None:
        """Count the values that are not NULL."""
        self.counts.update(cells, args, times)

    def merge(self, cells: Ints, other: Self) -> None:
        """Add counts and lists."""
        self.merge_all((cells,), (other,))

    def merge_all(self, cells: Sequence[Ints], others: Sequence[Self]) -> None:
        """Add the counts and lists of several columns, all at once."""
        self.counts.merge_all(cells, [each.counts for each in others])
        self.lows.merge_all(cells, [each.lows for each in others])
        self.credited.merge_all(cells, [each.credited for each in others])
        for places, other in zip(cells, others, strict=True):
            kept = places >= 0
            np.add.at(self.numbers, places[kept], other.numbers[kept])

    def take(self, indices: Ints) -> Self:
        """The cells at `indices`."""
        counts, lows, credited = (each.take(indices) for each in self._runs)
        return type(self)(self.part, counts, lows, credited, self.numbers[indices])

    def slide(self, starts: Ints, ends: Ints) -> Self:
        """Runs of cells, combined."""
        sizes = np.maximum(ends - starts, 0)
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        whole = self.take(spread(starts, offsets))
        slid = type(self).empty(self.part, len(starts))
        slid.merge(np.repeat(np.arange(len(starts)), sizes), whole)
        return slid

    def resize(self, size: int) -> None:
        """Grow with cells that have no values."""
        for each in self._runs:
            each.resize(size)
        self.numbers = grown(self.numbers, size)  # type: ignore[assignment]

    def to_arrow(self) -> pa.RecordBatch:
        """The counts: lists are made of them again."""
        assert not self.numbers.any()
        return self.counts.to_arrow()

    @classmethod
    def from_arrow(cls, part: Part, batch: pa.RecordBatch) -> Self:
        """The counts of a snapshot."""
        column = cls.empty(part, batch.num_rows)
        column.counts = RunColumn.from_arrow(Part("runs", part.types), batch)
        return column

    def seal(self) -> None:
        """Truncate the counts of every cell to a list, and forget the rest."""
        rows = self.counts.rows
        cells = np.repeat(np.arange(len(self)), rows.sizes)
        order = np.lexsort((rows.codes[:, 0], -rows.weights, cells))
        places = np.arange(order.size) - rows.offsets[cells[order]]
        slack = np.zeros(len(self), np.int64)
        cut = order[places == self.tracked]
        slack[cells[cut]] = rows.weights[cut]
        kept = np.sort(order[places < self.tracked])
        sizes = np.bincount(cells[kept], minlength=len(self))
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        owners = cells[kept]
        listed_rows = Rows(offsets, rows.codes[kept], rows.weights[kept])
        every = np.arange(len(self))
        totals = np.bincount(cells, rows.weights, len(self)).astype(np.int64)
        self.lows.merge(every, self.counts.holding(listed_rows))
        given = self.counts.holding(listed_rows._replace(weights=slack[owners]))
        self.credited.merge(every, given.without_zeros())
        self.numbers = self.numbers + np.column_stack((slack, totals))
        self.counts = RunColumn.empty(self.counts.part, len(self))

    def negative(self) -> Self:
        """What takes the lists off again where they were added."""
        lows, credited = (
            each.holding(each.rows._replace(weights=-each.rows.weights))
            for each in (self.lows, self.credited)
        )
        return type(self)(self.part, self.counts, lows, credited, -self.numbers)

    def tidy(self) -> None:
        """Forget values that no list has any more."""
        self.lows, self.credited = self.lows.without_zeros(), self.credited.without_zeros()


def lower_lists(aggregate: ResolvedAggregate, columns: Sequence[Any]) -> Lowered:
    """The answers of approx_top_k and approx_frequent, or whether these are complete."""
    column: FrequentColumn = columns[0]
    if len(column.counts.rows.codes):
        column = column.take(np.arange(len(column)))
        column.seal()
    lows = column.lows
    cells = np.repeat(np.arange(len(column)), lows.rows.sizes)
    low = lows.rows.weights
    high = low + column.slack[cells] - _credits(column, cells)
    order = np.lexsort((lows.rows.codes[:, 0], -low, cells))
    cells, low, high = cells[order], low[order], high[order]
    algebra = aggregate.algebra
    if isinstance(algebra, ApproxTopK):
        kept, certain, complete = _top(column, cells, low, high, aggregate.constants[0])
    else:
        assert isinstance(algebra, ApproxFrequent)
        kept, certain, complete = _over(column, cells, low, high, algebra)
    if aggregate.facet == "complete":
        return Lowered(pa.array(complete))
    codes = lows.rows.codes[order[kept]]
    numbers = [pa.array(each[kept]) for each in (low, high)]
    fields = [lows.decoded(codes), *numbers, pa.array(certain[kept])]
    items = pa.StructArray.from_arrays(fields, fields=list(aggregate.type.value_type))
    sizes = np.bincount(cells[kept], minlength=len(column))
    return Lowered(listed(aggregate.type, np.concatenate(([0], np.cumsum(sizes))), items))


def _credits(column: FrequentColumn, cells: Ints) -> Ints:
    """The slack of the panes that list each value."""
    held, given = column.lows, column.credited
    theirs = held.translated(given)[:, 0]
    # Taking in what the other knows may have moved own codes.
    codes = held.rows.codes[:, 0]
    owners = np.repeat(np.arange(len(column)), given.rows.sizes)
    _, numbers = np.unique(np.concatenate((codes, theirs)), return_inverse=True)
    span = int(numbers.max(initial=0)) + 1
    own = cells * span + numbers[: codes.size]
    found = owners * span + numbers[codes.size :]
    out = np.zeros(codes.size, np.int64)
    out[np.searchsorted(own, found)] = given.rows.weights
    return out


def _top(
    column: FrequentColumn, cells: Ints, low: Ints, high: Ints, k: int
) -> tuple[Ints, Any, Any]:
    """The first k values of each cell, which are sure to be, and whether no other can be."""
    size = len(column)
    sizes = np.bincount(cells, minlength=size)
    begins = np.concatenate(([0], np.cumsum(sizes)))
    places = np.arange(cells.size) - begins[cells]
    kept = np.flatnonzero(places < k)
    certain = np.zeros(cells.size, np.bool_)
    # Upper bounds in order: how many reach a lower bound is found by halving.
    span = int(high.max(initial=0)) + 1
    keys = np.sort(cells * span + high)
    reach = begins[cells[kept] + 1] - np.searchsorted(keys, cells[kept] * span + low[kept])
    slack = column.slack[cells[kept]]
    certain[kept] = (reach - 1 < k) & (slack < low[kept])
    # The least that a value of the answer has, and the most that another can have.
    least = np.full(size, np.iinfo(np.int64).max)
    np.minimum.at(least, cells[kept], low[kept])
    others = column.slack.copy()
    rest = np.flatnonzero(places >= k)
    np.maximum.at(others, cells[rest], high[rest])
    full = np.minimum(sizes, k) == k
    complete = np.where(full, others < least, column.slack == 0)
    # Exact counts tell which of equally frequent values come first.
    exact = column.slack == 0
    return kept, certain | (exact[cells] & (places < k)), complete | exact


def _over(
    column: FrequentColumn, cells: Ints, low: Ints, high: Ints, algebra: ApproxFrequent
) -> tuple[Ints, Any, Any]:
    """The values that may make up a fraction of each cell, which do, and whether no other can."""
    over, under = algebra.fraction.numerator, algebra.fraction.denominator
    # In Python's integers: fractions may have many digits, windows are fewer than rows.
    least = np.array([-(-over * total // under) for total in column.totals.tolist()], np.int64)
    kept = np.flatnonzero(high >= least[cells])
    complete = (column.slack < least) | (column.slack == 0)
    return kept, low >= least[cells], complete
