"""Reading one version of a keep for one question: exact answers, or answers with bounds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin._typing import Bools, Ints
from muntin.aggregates.algebra import Lowered
from muntin.aggregates.columns.by_part import empty
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.columns.counts import CountColumn
from muntin.engine.answers.group_keys import sort_order
from muntin.engine.rows.dictionary import encode, group
from muntin.errors import QueryError, QuestionError
from muntin.queries.asking.questions import Ordering
from muntin.synopses.block import FEW, Block
from muntin.synopses.bounds import BORDERED, FALLING, GROWING, Border, Enclosed, enclose, widths
from muntin.synopses.fit import Fit, FittedCall
from muntin.synopses.having import may_hold
from muntin.synopses.replica import Version

_ALIGNED_HINT = (
    "ask with ALIGNED, as in [RANGE '7 minutes' ALIGNED], for the window of whole slices"
)


@dataclass(frozen=True)
class Budget:
    """How long a question may take, and how many rows its answer may have."""

    seconds: float
    rows: int
    ends: float

    @classmethod
    def of(cls, seconds: float, rows: int) -> Budget:
        """A budget from now on."""
        return cls(seconds, rows, time.perf_counter() + seconds)

    def check(self) -> None:
        """Refuse to go on once the time is up."""
        if time.perf_counter() > self.ends:
            raise QuestionError(
                f"the question took longer than its {self.seconds:g} seconds",
                hint="ask for fewer groups or a shorter RANGE, or give it more time with timeout=",
            )


@dataclass(frozen=True)
class Window:
    """The slices of a window, by number: all that it touches, and those wholly inside it.

    Slices are taken from the first number to the last, which is not among them.
    """

    outer: tuple[int, int]
    inner: tuple[int, int]

    @property
    def border(self) -> list[tuple[int, int]]:
        """The slices that are touched and not inside."""
        if self.inner[0] >= self.inner[1]:
            return [self.outer]
        pairs = [(self.outer[0], self.inner[0]), (self.inner[1], self.outer[1])]
        return [pair for pair in pairs if pair[0] < pair[1]]


@dataclass(frozen=True)
class Read:
    """What was read: the rows, whether they are exact, and how many rows went into them."""

    table: pa.Table
    exact: bool
    rows: int


_Piece = tuple[int, int, Bools]


class _Place(NamedTuple):
    """Where a block has entries of a piece: the answer's rows, and a range of entries for each."""

    block: Block
    rows: Ints
    starts: Ints
    ends: Ints


class Reading:
    """One question read from one version."""

    def __init__(
        self, version: Version, fit: Fit, keys: Sequence[Any], window: Window | None, budget: Budget
    ) -> None:
        self._version = version
        self._fit = fit
        self._window = window or Window((0, 0), (0, 0))
        self._budget = budget
        self._columns = version.groups.columns(version.count) if version.groups.types else ()
        self._chosen = self._choose(keys)
        self._numbers, self._keys, self._size = self._number()
        if not fit.bound.having and not fit.question.limit:
            self._check_size(self._size)
        # Pieces stay as long as what is known by the identity of their cells.
        self._pieces: dict[tuple[str, int], list[_Piece]] = {}
        self._runs: dict[tuple[int, int], Ints] = {}
        self._places: dict[tuple[int, int, int], list[_Place]] = {}
        self._gathered: dict[tuple[int, int], PartColumn] = {}

    def read(self, limit: int | None) -> Read:
        """The answer."""
        outer = [self._counts(self._outer(place)) for place in range(len(self._fit.conditions))]
        held = np.flatnonzero(outer[0] > 0) if self._fit.groups else np.arange(self._size)
        # Where no row lies between what is inside and what is touched, both are the same rows.
        borders = (self._border(place) for place in range(len(self._fit.conditions)))
        exact = not any(self._counts(pieces).any() for pieces in borders if pieces)
        rows = int(outer[0].sum())
        values = self._lowered([self._outer(each.condition) for each in self._fit.calls], held)
        shown, passed = self._shown(values, held)
        bounds: dict[int, tuple[pa.Array, pa.Array]] = {}
        if not exact:
            bounds = self._bounds(values, held)
            having = self._fit.bound.having
            passed = None if having is None else may_hold(having, self._by_name(values, bounds))
        names = [output.name for output in self._fit.bound.outputs]
        table = self._table(names, shown, bounds, exact=exact)
        if passed is not None:
            table = table.filter(pa.array(passed))
        return Read(self._ordered(table, limit), exact, rows)

    def _choose(self, keys: Sequence[Any]) -> Ints | None:
        """The groups that satisfy the conditions on group columns; None for all."""
        fit = self._fit
        groups, count = self._version.groups, self._version.count
        listed: Ints | None = None
        for (_, place), value in zip(fit.keys, keys, strict=True):
            some = groups.of_value(place, value, count)
            listed = some if listed is None else np.intersect1d(listed, some, assume_unique=True)
        if fit.selector is None:
            return listed
        arrays = [self._columns[place] for place in fit.kept.key_names.values()]
        (evaluated,) = fit.selector(pa.table(arrays, names=list(fit.kept.key_names)))
        held = evaluated.values.fill_null(False).to_numpy(zero_copy_only=False)
        found: Ints = np.flatnonzero(held)
        return found if listed is None else np.intersect1d(listed, found, assume_unique=True)

    def _number(self) -> tuple[Ints, tuple[pa.Array, ...], int]:
        """The answer's row of every group of the keep (-1 for none), and the keys of these rows."""
        count, fit, chosen = self._version.count, self._fit, self._chosen
        numbers = np.full(count, -1, np.int64)
        places = np.arange(count) if chosen is None else chosen
        if not fit.groups:
            numbers[places] = 0
            return numbers, (), 1
        columns = [self._columns[each] for each in fit.groups if isinstance(each, int)]
        taken = iter(
            columns if chosen is None else [each.take(pa.array(chosen)) for each in columns]
        )
        computed = iter(self._computed(places))
        keys = [next(taken) if isinstance(each, int) else next(computed) for each in fit.groups]
        if fit.is_finest:
            numbers[places] = np.arange(places.size)
            return numbers, tuple(keys), places.size
        found = group([encode(key) for key in keys], places.size)
        numbers[places] = found.codes
        return numbers, found.keys, found.count

    def _computed(self, places: Ints) -> list[pa.Array]:
        names = self._fit.kept.key_names
        if not self._fit.grouper.bounds:
            return []
        arrays = [self._columns[place].take(pa.array(places)) for place in names.values()]
        return [each.values for each in self._fit.grouper(pa.table(arrays, names=list(names)))]

    def _outer(self, condition: int) -> list[_Piece]:
        return self._known("outer", condition)

    def _inner(self, condition: int) -> list[_Piece]:
        return self._known("inner", condition)

    def _border(self, condition: int) -> list[_Piece]:
        return self._known("border", condition)

    def _known(self, kind: str, condition: int) -> list[_Piece]:
        """The pieces of a condition: those touched, those inside, or those in between."""
        found = self._pieces.get((kind, condition))
        if found is not None:
            return found
        wanted, window = self._fit.conditions[condition], self._window
        if kind == "outer":
            found = [(*window.outer, wanted.outer)]
        elif kind == "inner":
            found = [(*window.inner, wanted.inner)]
        else:
            found = [(low, high, wanted.outer) for low, high in window.border]
            if window.inner[0] < window.inner[1] and not wanted.is_exact:
                found.append((*window.inner, wanted.outer & ~wanted.inner))
        self._pieces[kind, condition] = found
        return found

    def _gather(self, column: int, pieces: list[_Piece]) -> PartColumn:
        """One part of every row of the answer, from the slices and cells of some pieces."""
        key = column, id(pieces)
        found = self._gathered.get(key)
        if found is not None:
            return found
        total = empty(self._fit.kept.node.accumulators[column].part, self._size)
        for piece in pieces:
            for place in self._places_of(piece):
                total.merge(place.rows, place.block.slide(column)(place.starts, place.ends))
                self._budget.check()
        self._gathered[key] = total
        return total

    def _places_of(self, piece: _Piece) -> list[_Place]:
        low, high, wanted = piece
        key = low, high, id(wanted)
        found = self._places.get(key)
        if found is None:
            found = []
            for block in self._version.blocks if low < high else ():
                if block.last < low or block.first >= high:
                    continue
                runs, starts, ends = self._found(block, wanted, low, high)
                if runs.size:
                    found.append(_Place(block, self._numbers[block.groups[runs]], starts, ends))
            self._places[key] = found
        return found

    def _found(self, block: Block, wanted: Bools, low: int, high: int) -> tuple[Ints, Ints, Ints]:
        if self._chosen is not None and self._chosen.size <= FEW:
            return block.found(self._chosen, wanted, low, high)
        return block.ranges(self._of(block, wanted), low, high)

    def _of(self, block: Block, wanted: Bools) -> Ints:
        key = block.number, id(wanted)
        if key not in self._runs:
            self._runs[key] = block.runs(self._chosen, wanted)
        return self._runs[key]

    def _counts(self, pieces: list[_Piece]) -> Ints:
        found = self._gather(0, pieces)
        assert isinstance(found, CountColumn)
        return found.counts

    def _lowered(self, pieces: Sequence[list[_Piece]], held: Ints) -> list[pa.Array]:
        return [
            self._lower(each, some, held).values
            for each, some in zip(self._fit.calls, pieces, strict=True)
        ]

    def _lower(self, each: FittedCall, pieces: list[_Piece], held: Ints) -> Lowered:
        columns = [self._gather(column, pieces).take(held) for column in each.columns]
        return each.call.aggregate.lower(columns)

    def _shown(self, values: Sequence[pa.Array], held: Ints) -> tuple[list[pa.Array], Bools | None]:
        """The columns as the question shows them, and which rows satisfy its HAVING."""
        bound = self._fit.bound
        keys = [key.take(pa.array(held)) for key in self._keys]
        if self._fit.straight is not None:
            columns = [*keys, *values]
            return [columns[place] for place in self._fit.straight], None
        batch = pa.RecordBatch.from_arrays([*keys, *values], schema=bound.lowered_schema)
        found = [each.values for each in self._fit.shower(batch)]
        if bound.having is None:
            return found, None
        kept = found.pop().fill_null(False)
        return found, kept.to_numpy(zero_copy_only=False)

    def _bounds(
        self, values: Sequence[pa.Array], held: Ints
    ) -> dict[int, tuple[pa.Array, pa.Array]]:
        """The bounds of every aggregate, by its place."""
        shown = self._fit.plain[len(self._fit.groups) :]
        names = [output.name for output in self._fit.bound.outputs[len(self._fit.groups) :]]
        for name, place in zip(names, shown, strict=True):
            if place is None:
                raise QuestionError(
                    f"the answer is not exact, and {name} is computed from several aggregates",
                    hint=f"select the aggregates on their own, or {_ALIGNED_HINT}",
                )
        return {
            place: self._enclosed(each, values[place], held)
            for place, each in enumerate(self._fit.calls)
        }

    def _enclosed(self, each: FittedCall, outer: pa.Array, held: Ints) -> tuple[pa.Array, pa.Array]:
        name = each.call.aggregate.name
        if name in GROWING | FALLING:
            inner = self._lower(each, self._inner(each.condition), held).values
            return enclose(name, Enclosed(inner, outer))
        if name not in BORDERED:
            raise QuestionError(
                f"the answer is not exact, and nothing bounds {name}", hint=_ALIGNED_HINT
            )
        places = {kind: self._fit.extreme(each.call, kind) for kind in ("count", "min", "max")}
        if None in places.values():
            argument = each.call.args[0].key
            raise QuestionError(
                f"the answer is not exact, and {name}({argument}) has no bounds without the "
                "extremes of what is added",
                hint=f"keep min({argument}) and max({argument}) too, or {_ALIGNED_HINT}",
            )
        inner, border = self._inner(each.condition), self._border(each.condition)
        counts = self._column(places["count"], inner, held)
        found = Enclosed(
            self._lower(each, inner, held).values,
            outer,
            counts,
            Border(*(self._column(place, border, held) for place in places.values())),
        )
        return enclose(name, found)

    def _column(self, place: int | None, pieces: list[_Piece], held: Ints) -> list[Any]:
        """Counts or extremes as Python values."""
        assert place is not None
        column: Any = self._gather(place, pieces).take(held)
        if isinstance(column, CountColumn):
            counts: list[Any] = column.counts.tolist()
            return counts
        found: list[Any] = column.result().to_pylist()
        return found

    def _by_name(
        self, values: Sequence[pa.Array], bounds: dict[int, tuple[pa.Array, pa.Array]]
    ) -> dict[str, tuple[pa.Array, pa.Array]]:
        return {each.call.name: bounds[place] for place, each in enumerate(self._fit.calls)}

    def _table(
        self,
        names: Sequence[str],
        shown: Sequence[pa.Array],
        bounds: dict[int, tuple[pa.Array, pa.Array]],
        *,
        exact: bool,
    ) -> pa.Table:
        columns: dict[str, pa.Array] = {}
        within = self._fit.question.within
        for place, (name, values) in enumerate(zip(names, shown, strict=True)):
            aggregate = self._fit.plain[place]
            listed = [(name, values)]
            if not exact and aggregate is not None:
                low, high = bounds[aggregate]
                if within is not None:
                    self._check_width(name, values, low, high)
                listed += [(f"{name}_low", low), (f"{name}_high", high)]
            for each, column in listed:
                if each in columns:
                    problem = self._fit.question.query.problem(
                        self._fit.question.query.select[0].node,
                        f"two columns of the answer are named {each}",
                        "give one of them another name with AS",
                    )
                    raise QueryError([problem])
                columns[each] = column
        return pa.table(columns)

    def _check_width(self, name: str, values: pa.Array, low: pa.Array, high: pa.Array) -> None:
        within = self._fit.question.within
        assert within is not None
        for width, value in zip(widths(low, high), values.to_pylist(), strict=True):
            most = abs(float(value)) * within / 100 if isinstance(value, int | float) else 0.0
            if width > most:
                grid = self._fit.kept.keep.slide
                share = 1 if not most else max(int(grid * most / width), 1)
                raise QuestionError(
                    f"the bounds of {name} are {width:g} apart, and {within:g}% of the answer is "
                    f"{most:g}",
                    hint=f"a keep with a SLIDE of about {share} ticks would do, instead of {grid}; "
                    f"or {_ALIGNED_HINT}",
                )

    def _ordered(self, table: pa.Table, limit: int | None) -> pa.Table:
        """Rows in the order asked for, else by group; no more than there may be."""
        order = self._fit.question.order
        if order:
            table = table.take(_order(table, order))
        elif self._fit.groups and table.num_rows > 1:
            groups = [
                table.column(place).combine_chunks() for place in range(len(self._fit.groups))
            ]
            table = table.take(sort_order(groups))
        if limit is not None:
            table = table.slice(0, limit)
        self._check_size(table.num_rows)
        return table

    def _check_size(self, rows: int) -> None:
        if rows > self._budget.rows:
            raise QuestionError(
                f"the answer would have {rows:,} rows, and {self._budget.rows:,} are the most",
                hint="add LIMIT or a condition, or allow more with max_rows=",
            )


def _order(table: pa.Table, order: Sequence[Ordering]) -> pa.Array:
    """The order of rows by some columns, with NULLs where each wants them; NaN above numbers."""
    columns: dict[str, Any] = {}
    listed: list[tuple[str, str]] = []
    for place, each in enumerate(order):
        column = table.column(each.column)
        way = "descending" if each.descending else "ascending"
        columns[f"null {place}"] = pc.is_null(column)
        listed.append((f"null {place}", "descending" if each.nulls_first else "ascending"))
        if pa.types.is_floating(column.type):
            columns[f"nan {place}"] = pc.is_nan(column).fill_null(False)
            listed.append((f"nan {place}", way))
        columns[f"key {place}"] = column
        listed.append((f"key {place}", way))
    return pc.sort_indices(pa.table(columns), listed)
