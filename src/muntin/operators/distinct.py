"""Each value once, for as long as some row has it: in pieces whose ends are known at birth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.operators.rows import ALWAYS, NONE, Changes, Columns, Route, Rows
from muntin.operators.state import keys
from muntin.operators.state.live_rows import ending
from muntin.operators.state.newest import Found, Newest, all_of, newest_of
from muntin.operators.state.pending import Pending
from muntin.operators.state.radix_sort import order_of
from muntin.operators.state.segments import Segment, begins_of
from muntin.plan.operators import Distinct


class Pieces:
    """Distinct values of rows whose ends are known: δ* of the thesis, section 3.5.2.

    The first piece of a value is the lifetime of its first row. When a piece ends, the next lasts
    to the latest end of the rows then alive. So two numbers are kept per value, whatever the
    number of its rows: the end of the piece, and the latest end. The thesis keeps the newest row
    instead, which is wrong where a newer row can end before an older one.

    They stand in records that never change, and where one of them does, in another record: on Spark
    these lie in files that are written once. A record is over when its piece has ended: there is a
    newer one then, or the value is gone. Its ``end`` is that of the piece, its ``start`` the latest
    end: newer records of a value come after older ones by either.
    """

    STATE = ("_pending", "_records", "_next", "_reached", "_shown", "_exact")

    def __init__(self, node: Distinct, lifetime: int) -> None:
        self._types = [field.type for field in node.schema]
        keys.check_keys(self._types, "DISTINCT")
        self._none = Rows.none(node.schema)
        self._pending = Pending()
        self._records = Newest(lifetime)
        self._next = 0
        self._reached = ALWAYS
        # How many values are shown.
        self._shown = 0
        # Whether equal hashes prove equal values.
        self._exact = True

    @property
    def kept(self) -> int:
        """How many rows are kept: one or two for each value, and those that wait."""
        return len(self._pending) + len(self._records)

    def step(self, inputs: Sequence[Changes], bounds: Sequence[int]) -> Changes:
        """The pieces that begin below the watermark."""
        watermark = bounds[0]
        rows = self._pending.release(inputs[0], watermark).born
        if watermark <= self._reached:
            return Changes.births(self._none)
        held = self._records.all()
        known = _Known(tuple(map(keys.canonical, rows.columns)), held)
        touched = self._touched(rows, known, watermark)
        before, order, places = touched.records, touched.order, touched.places()
        shown, latest = before.end.copy(), before.start.copy()
        found, starts, ends = next_pieces(
            touched.codes, rows.start[order], rows.end[order], shown, latest, watermark
        )
        ids = np.arange(self._next, self._next + found.size)
        self._next += found.size
        born = Rows(known.columns(places[found]), ids, starts, ends)
        is_shown = shown > ALWAYS
        changed = np.flatnonzero(is_shown & ((shown != before.end) | (latest != before.start)))
        values = known.columns(places[changed])
        latest = latest[changed]
        records = Rows(values, latest, latest, shown[changed])
        # What ends at the watermark may go on: it is over once that is passed.
        self._records.keep(Segment.of(touched.hashes[changed], records), watermark - 1)
        self._shown += int(is_shown.sum() - (before.end > ALWAYS).sum())
        self._records.compact(self._shown, watermark)
        self._reached = watermark
        return Changes.births(born)

    def _touched(self, rows: Rows, known: _Known, watermark: int) -> _Touched:
        """The values of new rows, and those whose piece has ended."""
        hashes, exact = keys.hash_columns(known.fresh, len(rows))
        self._exact = self._exact and exact
        order, hashes = order_of(hashes, rows.start)
        due = ending(known.held, self._reached - 1, watermark - 1)
        theirs = known.hashes(due)
        wanted, codes, first = united(hashes, order, np.sort(theirs))
        records = newest_of(known.held, wanted, self._reached)
        found = _Touched(wanted, order, codes, first, records)
        if self._exact:
            return found
        # Rows, and what is known of their values, must be of one value where their hashes are.
        places = len(rows) + records.places
        both = np.flatnonzero((first >= 0) & (records.places >= 0))
        pairs = (
            (order, first[codes]),
            (first[both], places[both]),
            (len(rows) + due, places[np.searchsorted(wanted, theirs)]),
        )
        one, other = (np.concatenate(each) for each in zip(*pairs, strict=True))
        other, one = other[one != other], one[one != other]
        if keys.equal_rows(known.columns(one), known.columns(other), one.size).all():
            return found
        return self._told_apart(rows, known, wanted)

    def _told_apart(self, rows: Rows, known: _Known, hashes: Ints) -> _Touched:
        """All values with some hashes, where several values have the same."""
        count = len(rows)
        records = all_of(known.held, hashes, self._reached)
        places = np.concatenate((np.arange(count), count + records))
        columns = known.columns(places)
        codes = keys.KeyTable(self._types).codes(columns, places.size)
        order = np.lexsort((rows.start, codes[:count]))
        end, start = known.ends(records)
        by_age = np.lexsort((start, end, codes[count:]))
        first = np.full(codes.max(initial=-1) + 1, -1)
        newest = Found.nothing(first.size)
        # Of several that are written to one place, the last stays.
        first[codes[order[::-1]]] = order[::-1]
        for own, each in ((newest.places, records), (newest.end, end), (newest.start, start)):
            own[codes[count:][by_age]] = each[by_age]
        found = _Touched(first, order, codes[order], first, newest)
        hashes, _ = keys.hash_columns(known.columns(found.places()), first.size)
        return replace(found, hashes=hashes)


@dataclass(frozen=True)
class _Touched:
    """Values that are looked at, by number, and the order of new rows by their values and starts.

    Attributes:
        hashes: Of each value.
        order: Of the new rows.
        codes: The number of each new row's value, in that order.
        first: By value, its first new row, or -1.
        records: By value, its newest record.
    """

    hashes: Ints
    order: Ints
    codes: Ints
    first: Ints
    records: Found

    def places(self) -> Ints:
        """Where each value stands: at a new row, or behind these, at its record."""
        return np.where(self.first >= 0, self.first, self.order.size + self.records.places)


class _Known:
    """New rows and segments of records, numbered through."""

    def __init__(self, fresh: Columns, held: list[Segment]) -> None:
        self.fresh, self.held = fresh, held
        self._begins = begins_of(held)
        count = len(fresh[0])
        self._all = np.concatenate(([0], count + self._begins))

    def columns(self, places: Ints) -> Columns:
        """Values, of new rows and then of records."""
        tables = [self.fresh, *(each.rows.columns for each in self.held)]
        route = Route.of(self._all, places)
        return tuple(route.column(arrays) for arrays in zip(*tables, strict=True))

    def hashes(self, places: Ints) -> Ints:
        """The hashes of some records."""
        if not places.size:
            return NONE
        return Route.of(self._begins, places).ints([each.hashes for each in self.held])

    def ends(self, places: Ints) -> tuple[Ints, Ints]:
        """The ends and starts of some records."""
        if not places.size:
            return NONE, NONE
        route = Route.of(self._begins, places)
        end, start = ([getattr(each, name) for each in self.held] for name in ("end", "start"))
        return route.ints(end), route.ints(start)


@compiled
def united(hashes: Ints, order: Ints, others: Ints) -> tuple[Ints, Ints, Ints]:
    """The hashes of rows and others, both in order, each once; and which one each row has.

    Then, for each of them, the first row that has it by the rows' order, or -1.
    """
    wanted = np.empty(hashes.size + others.size, np.int64)
    first = np.empty(wanted.size, np.int64)
    codes = np.empty(hashes.size, np.int64)
    count = i = j = 0
    while i < hashes.size or j < others.size:
        if j == others.size or (i < hashes.size and hashes[i] <= others[j]):
            value = hashes[i]
            first[count] = order[i]
        else:
            value = others[j]
            first[count] = -1
        while i < hashes.size and hashes[i] == value:
            codes[i] = count
            i += 1
        while j < others.size and others[j] == value:
            j += 1
        wanted[count] = value
        count += 1
    return wanted[:count].copy(), codes, first[:count].copy()


@compiled
def merged(one: Ints, other: Ints) -> Ints:
    """The values of two sorted arrays, in order, each once."""
    found = np.empty(one.size + other.size, np.int64)
    count = i = j = 0
    while i < one.size or j < other.size:
        if j == other.size or (i < one.size and one[i] <= other[j]):
            value = one[i]
            i += 1
        else:
            value = other[j]
            j += 1
        if count == 0 or found[count - 1] != value:
            found[count] = value
            count += 1
    return found[:count].copy()


@compiled
def next_pieces(
    codes: Ints,
    start: Ints,
    end: Ints,
    shown: Ints,
    latest: Ints,
    until: int,
) -> tuple[Ints, Ints, Ints]:
    """The pieces that begin before ``until``, of values in order: value, start and end.

    Rows are in order of value, then of start. ``shown`` and ``latest`` of a value are moved on: the
    end of its piece, and the latest end. One that is gone, or was not there, has none.
    """
    room = codes.size + shown.size
    values = np.empty(room, np.int64)
    starts = np.empty(room, np.int64)
    ends = np.empty(room, np.int64)
    count = row = 0
    for code in range(shown.size):
        while True:
            born = row < codes.size and codes[row] == code
            now = min(start[row], until) if born else until
            # Pieces that begin before the next row does.
            while ALWAYS < shown[code] < now:
                begin = shown[code]
                if latest[code] > begin:
                    values[count], starts[count], ends[count] = code, begin, latest[code]
                    count += 1
                    shown[code] = latest[code]
                else:
                    shown[code] = latest[code] = ALWAYS
            if not born:
                break
            while row < codes.size and codes[row] == code and start[row] == now:
                latest[code] = max(latest[code], end[row])
                row += 1
            if shown[code] == ALWAYS:
                values[count], starts[count], ends[count] = code, now, latest[code]
                count += 1
                shown[code] = latest[code]
    return values[:count].copy(), starts[:count].copy(), ends[:count].copy()
