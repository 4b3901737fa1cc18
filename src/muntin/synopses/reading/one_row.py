"""The one row of a question about a single group, from plain numbers instead of columns.

Such questions are the most frequent, and read a handful of numbers: making columns of one cell
and lowering them takes longer than reading, and all of it holds the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from struct import Struct
from typing import Any

import pyarrow as pa

from muntin.aggregates.columns.codes import NOTHING
from muntin.aggregates.exact.limbs import ONE_LIMB
from muntin.synopses.fit import Fit, FittedCall
from muntin.synopses.keeps.directory import Numbers
from muntin.synopses.keeps.replica import Version
from muntin.synopses.reading.bounds import FALLING
from muntin.synopses.reading.gathered import Window
from muntin.synopses.reading.groups import chosen_groups

_BITS, _DOUBLE = Struct("<q"), Struct("<d")
_LOW63 = (1 << 63) - 1


@dataclass(frozen=True)
class _Shown:
    """A column of the answer: the places of its parts among those that are read, and its type."""

    name: str
    aggregate: str
    parts: tuple[int, ...]
    type: pa.DataType

    @cached_property
    def is_whole(self) -> bool:
        """Whether codes are the values themselves."""
        return bool(pa.types.is_integer(self.type))

    def value(self, numbers: Numbers, bases: Sequence[int]) -> Any:
        """What the aggregate is; None is NULL."""
        first = self.parts[0]
        if self.aggregate == "count":
            return numbers[first][0]
        if self.aggregate == "sum":
            return _sum(numbers[first], bases[first]) if numbers[self.parts[1]][0] else None
        code = numbers[first][0]
        if code == NOTHING:
            return None
        if self.aggregate == "max":
            code = ~code
        if self.is_whole:
            return code
        (value,) = _DOUBLE.unpack(_BITS.pack(code ^ _LOW63 if code < 0 else code))
        return value


def _sum(limbs: Sequence[int], base: int) -> int | None:
    """A sum of integers; None where 64 bits cannot hold it."""
    total, weight = 0, 32 * (base - ONE_LIMB)
    for limb in limbs:
        total += limb << weight
        weight += 32
    return total if -_LOW63 - 1 <= total <= _LOW63 else None


class ReadRow:
    """The one row that was read: values by name, a table once somebody looks at it."""

    __slots__ = ("_type", "_values", "exact", "rows")

    def __init__(self, kind: pa.StructType, values: Sequence[Any], exact: bool, rows: int) -> None:
        self._type, self._values = kind, values
        self.exact, self.rows = exact, rows

    @property
    def table(self) -> pa.Table:
        """The row. Arrow gives up the interpreter's lock for each array: here it makes one."""
        return pa.Table.from_struct_array(pa.array([tuple(self._values)], self._type))


class OneRow:
    """How a question about one group is answered from numbers."""

    def __init__(self, fit: Fit, shown: Sequence[_Shown]) -> None:
        self._fit = fit
        self._shown = shown
        self._exact = pa.struct([(each.name, each.type) for each in shown])
        bounds = [
            (f"{each.name}{end}", each.type) for each in shown for end in ("", "_low", "_high")
        ]
        is_told = all(each.aggregate != "sum" for each in shown)
        is_told &= len({name for name, _ in bounds}) == len(bounds)
        self._bounded = pa.struct(bounds) if is_told else None

    def read(self, version: Version, keys: Sequence[Any], window: Window) -> ReadRow | None:
        """The answer; None where it takes more than numbers."""
        directory = version.directory
        group = self._group(version, keys)
        if directory is None or group is None:
            return None
        fit = self._fit
        wanted = fit.conditions[0].outer
        found = directory.one_group(fit.places, wanted, group, window.outer, window.inner)
        if found is None:
            return None
        outer, inner, bases = found
        rows = outer[0][0]
        # Where no row lies between what is inside and what is touched, both are the same rows.
        if inner[0][0] == rows:
            values = [each.value(outer, bases) for each in self._shown]
            return ReadRow(self._exact, values, True, rows)
        if self._bounded is None:
            return None
        values = []
        for each in self._shown:
            most, least = each.value(outer, bases), each.value(inner, bases)
            values += (most, most, least) if each.aggregate in FALLING else (most, least, most)
        return ReadRow(self._bounded, values, False, rows)

    def _group(self, version: Version, keys: Sequence[Any]) -> int | None:
        """The one group that has the keys."""
        if len(keys) == 1:
            ((_, place),) = self._fit.keys
            return version.groups.number_of(place, keys[0], version.count)
        groups = chosen_groups(version, self._fit, keys)
        return None if groups is None or groups.size != 1 else int(groups[0])


def one_row(fit: Fit) -> OneRow | None:
    """How a question is answered from numbers, if it can be."""
    question, straight = fit.question, fit.straight
    names = [output.name for output in fit.bound.outputs]
    if (
        straight is None
        or fit.groups
        or not fit.keys
        or fit.key_condition is not None
        or question.limit is not None
        or question.within is not None
        or question.order
        or len(fit.conditions) > 1
        or not fit.conditions[0].is_exact
        or len({*names}) < len(names)
        or not all(map(_is_plain, fit.calls))
    ):
        return None
    places = fit.places.tolist()
    shown = []
    for name, at in zip(names, straight, strict=True):
        each = fit.calls[at]
        aggregate = each.call.aggregate
        parts = tuple(places.index(column) for column in each.columns)
        shown.append(_Shown(name, aggregate.name, parts, aggregate.type))
    return OneRow(fit, shown)


def _is_plain(each: FittedCall) -> bool:
    """Whether an aggregate is read off numbers as they are."""
    aggregate = each.call.aggregate
    if each.is_gram or aggregate.name not in ("count", "sum", "min", "max"):
        return False
    is_whole = bool(aggregate.type == pa.int64())
    return is_whole or (aggregate.name in ("min", "max") and aggregate.type == pa.float64())
