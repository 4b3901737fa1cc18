"""Values spread over several places by their hash, and shares of windows that each place has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.aggregates.algebra import Lowered, Part
from muntin.aggregates.columns.arrow_views import integers
from muntin.aggregates.columns.codes import DictionaryCoder
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.columns.holistic.clustered_windows import windows_of
from muntin.aggregates.columns.holistic.hashes import hashes_of, mixed
from muntin.aggregates.columns.holistic.rows import NO_WEIGHTS, Rows
from muntin.aggregates.columns.holistic.runs import RunColumn
from muntin.aggregates.columns.holistic.value_windows import ValueWindows
from muntin.aggregates.columns.holistic.values import asked_of, listed
from muntin.aggregates.columns.holistic.windows import Windows
from muntin.aggregates.columns.kept import decode_limbs, encode_limbs
from muntin.aggregates.columns.sums import SumColumn
from muntin.aggregates.registry import ResolvedAggregate

if TYPE_CHECKING:
    from muntin.aggregates.shares import ShareAggregate


def spread_values(column: PartColumn, places: int) -> list[RunColumn]:
    """A column for each place, with the same cells: every value goes where its hash says.

    Hashes are those of values, not of codes, which may differ from task to task.

    >>> import pyarrow as pa
    >>> from muntin.aggregates.algebra import Part
    >>> column = RunColumn.empty(Part("set", (pa.int64(),)), 2)
    >>> column.update(np.array([0, 0, 1]), (pa.array([1, 2, 1]),))
    >>> [each.to_arrow()["value"].to_pylist() for each in spread_values(column, 2)]
    [[[1], [1]], [[2], []]]
    """
    assert isinstance(column, RunColumn)
    offsets, codes, weights = column.rows
    owners = _owners(column, places)
    counts = np.zeros((places, len(column) + 1), np.int64)
    order = place_all(owners, offsets, counts)
    found = []
    first = 0
    for place in range(places):
        own = np.cumsum(counts[place])
        kept = order[first : first + own[-1]]
        first += int(own[-1])
        some = weights[kept] if column.weighted else NO_WEIGHTS
        found.append(column.holding(Rows(own, codes[kept], some)))
    return found


def _owners(column: RunColumn, places: int) -> Ints:
    """The place of every occurrence."""
    codes = np.ascontiguousarray(column.rows.codes[:, 0])
    if isinstance(column.values, DictionaryCoder):
        # What is hashed are the few different values.
        owners: Ints = (hashes_of(column.values.dictionary) % places)[codes]
        return owners
    return mixed(codes.view(np.uint64)) % places


@compiled
def place_all(owners: Ints, offsets: Ints, counts: Ints) -> Ints:
    """The occurrences of each place, in their order, behind one another.

    ``counts`` takes, for each place, how many occurrences each cell has there, from 1 on.
    """
    begins = np.zeros(counts.shape[0] + 1, np.int64)
    for cell in range(offsets.size - 1):
        for i in range(offsets[cell], offsets[cell + 1]):
            counts[owners[i], cell + 1] += 1
            begins[owners[i] + 1] += 1
    for place in range(counts.shape[0]):
        begins[place + 1] += begins[place]
    order = np.empty(begins[-1], np.int64)
    for i in range(offsets[0], offsets[-1]):
        order[begins[owners[i]]] = i
        begins[owners[i]] += 1
    return order


def encode(aggregate: ShareAggregate, columns: Sequence[Any]) -> pa.StructArray:
    """The shares of windows, from the values that are here."""
    windows, names = windows_of(columns[0]), aggregate.type.names
    # The values of runs are counted by the set beside them.
    counted = windows_of(columns[1]) if "best" in names else windows
    found: dict[str, Any] = dict(zip(("values", "bytes"), counted.measured(), strict=True))
    if "sums" in names:
        sums = windows.sums(aggregate.types)
        sums.normalize()
        found["sums"] = encode_limbs(sums.limbs, sums.base, sums.specials)
    if "best" in names:
        found["total"] = windows.totals
        found["best"] = _best(aggregate, windows)
    if aggregate.fallback is not None:
        found["fallback"] = aggregate.fallback.lower(columns[1:]).values
    fields = list(aggregate.type)
    arrays = [pa.array(found[field.name]).cast(field.type) for field in fields]
    return pa.StructArray.from_arrays(arrays, fields=fields)


def _best(aggregate: ShareAggregate, windows: Windows) -> pa.Array:
    """The values that may be among those asked for, in order, with how often each occurs.

    A value that makes up a fraction of all values makes up at least that of those that are here.
    """
    offsets, ranks, counts = windows.heaviest(*asked_of(aggregate, windows.totals))
    order = np.lexsort((ranks, np.repeat(np.arange(len(windows)), np.diff(offsets))))
    kind = aggregate.type.field("best").type
    items = pa.StructArray.from_arrays(
        [windows.values(ranks[order]), pa.array(counts[order])], fields=list(kind.value_type)
    )
    return listed(kind, offsets, items)


class SharedWindows(Windows):
    """Windows that are known by the shares of all places together.

    ``numbers`` has, for each window, how many different values it has, and their bytes. ``held``
    are the values that may be asked for, ``added`` the sums of all.
    """

    is_listed = False
    longest = 1 << 62

    def __init__(
        self, numbers: Ints, totals: Ints, held: Windows | None, added: SumColumn | None
    ) -> None:
        self.numbers, self.totals = numbers, totals
        self.occurrences = numbers[:, 0]
        self._held, self._added = held, added

    def __len__(self) -> int:
        return len(self.numbers)

    def only(self, kept: Ints) -> Self:
        """Some of the windows."""
        held = None if self._held is None else self._held.only(kept)
        added = None if self._added is None else self._added.take(kept)
        return type(self)(self.numbers[kept], self.totals[kept], held, added)

    def measured(self) -> tuple[Ints, Ints]:
        """How many different values each window has, and their bytes."""
        return self.numbers[:, 0], self.numbers[:, 1]

    def sums(self, types: tuple[pa.DataType, ...]) -> SumColumn:
        """The exact sum of each window's different values."""
        assert self._added is not None
        return self._added

    def heaviest(self, most: int, floors: Ints) -> tuple[Ints, Ints, Ints]:
        """The most frequent values of each window, at most so many, that occur often enough."""
        assert self._held is not None
        return self._held.heaviest(most, floors)

    def codes_at(self, ranks: Ints) -> Ints:
        """The codes of ranks."""
        assert self._held is not None
        return self._held.codes_at(ranks)

    def values(self, ranks: Ints) -> pa.Array:
        """The values of ranks."""
        assert self._held is not None
        return self._held.values(ranks)

    def select(self, windows: Ints, places: Ints) -> Ints:
        """Shares have some of the values only: no aggregate over them asks for others."""
        raise TypeError("shares of windows do not hold all of their values")

    different = every = select  # type: ignore[assignment]


@dataclass(frozen=True, repr=False)
class _Given(ResolvedAggregate):
    """Answers that are there already."""

    def lower(self, columns: Sequence[Any]) -> Lowered:
        """The one column as it is."""
        return Lowered(columns[0])


def lower_shares(
    real: ResolvedAggregate, size: int, pieces: Sequence[tuple[Ints, pa.StructArray]]
) -> Lowered:
    """The answers of ``real`` in so many windows, from the shares of each place.

    A piece has the shares of one place, and the window of each of them. What windows fall back to
    is in the first piece, which has all of them.
    """
    numbers, totals = np.zeros((size, 2), np.int64), np.zeros(size, np.int64)
    for windows, shares in pieces:
        numbers[windows, 0] += integers(shares.field("values"))
        numbers[windows, 1] += integers(shares.field("bytes"))
    names = pieces[0][1].type.names
    added: SumColumn | None = None
    held: Windows | None = None
    if "sums" in names:
        part = Part("sum", real.types)
        added = SumColumn.empty(part, size)
        for windows, shares in pieces:
            added.merge(windows, decode_limbs(SumColumn, part, shares.field("sums")))
    if "best" in names:
        column = RunColumn.empty(Part("runs", real.types), size)
        for windows, shares in pieces:
            totals[windows] += integers(shares.field("total"))
        column.merge_all(
            [windows for windows, _ in pieces],
            [_runs(column.part, shares.field("best")) for _, shares in pieces],
        )
        held = ValueWindows.of(column)
    columns: list[Any] = [SharedWindows(numbers, totals, held, added)]
    if real.fallback is not None and "fallback" in names:
        given = {name: getattr(real.fallback, name) for name in _FIELDS}
        real = replace(real, fallback=_Given(**given))
        columns.append(pieces[0][1].field("fallback"))
    return real.lower(columns)


_FIELDS = ("name", "types", "parts", "type", "algebra")


def _runs(part: Part, best: pa.ListArray) -> RunColumn:
    """Lists of values and counts as a column; values stand in order."""
    items = best.flatten()
    offsets = np.concatenate(([0], np.cumsum(np.diff(best.offsets.to_numpy()))))
    column = RunColumn.empty(part, len(best))
    codes = column.codes_of((items.field("value"),), None)
    counts = integers(items.field("count")).copy()
    column.rows = Rows(offsets, codes, counts)
    return column
