"""The one row of a question about a single group, from plain numbers instead of columns.

Such questions are the most frequent, and read a handful of numbers: making columns of one cell
and lowering them takes longer than reading, and all of it holds the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregates.columns.codes import NOTHING
from muntin.aggregates.exact.limbs import ONE_LIMB
from muntin.synopses.fit import Fit, FittedCall
from muntin.synopses.keeps.directory import Directory, Numbers
from muntin.synopses.keeps.replica import Version
from muntin.synopses.reading.bounds import FALLING
from muntin.synopses.reading.gathered import Window
from muntin.synopses.reading.groups import chosen_groups
from muntin.synopses.reading.table import Read

_BITS, _DOUBLE = Struct("<q"), Struct("<d")
_LOW63 = (1 << 63) - 1
_COUNT = np.zeros(1, np.int64)


@dataclass(frozen=True)
class _Shown:
    """A column of the answer: the places of its parts among those that are read, and its type."""

    name: str
    aggregate: str
    parts: tuple[int, ...]
    type: pa.DataType

    def value(self, numbers: Numbers) -> Any:
        """What the aggregate is; None is NULL."""
        first = self.parts[0]
        if self.aggregate == "count":
            return numbers[first][0]
        if self.aggregate == "sum":
            return _sum(numbers, first) if numbers[self.parts[1]][0] else None
        code = numbers[first][0]
        if code == NOTHING:
            return None
        if self.aggregate == "max":
            code = ~code
        if pa.types.is_integer(self.type):
            return code
        (value,) = _DOUBLE.unpack(_BITS.pack(code ^ _LOW63 if code < 0 else code))
        return value


def _sum(numbers: Numbers, place: int) -> int | None:
    """A sum of integers; None where 64 bits cannot hold it."""
    total, weight = 0, 32 * (numbers.bases[place] - ONE_LIMB)
    for limb in numbers[place]:
        total += limb << weight
        weight += 32
    return total if -_LOW63 - 1 <= total <= _LOW63 else None


class OneRow:
    """How a question about one group is answered from numbers."""

    def __init__(self, fit: Fit, shown: Sequence[_Shown]) -> None:
        self._fit = fit
        self._shown = shown
        self._exact = pa.schema([(each.name, each.type) for each in shown])
        bounds = [
            (f"{each.name}{end}", each.type) for each in shown for end in ("", "_low", "_high")
        ]
        is_told = all(each.aggregate != "sum" for each in shown)
        is_told &= len({name for name, _ in bounds}) == len(bounds)
        self._bounded = pa.schema(bounds) if is_told else None

    def read(self, version: Version, keys: Sequence[Any], window: Window) -> Read | None:
        """The answer; None where it takes more than numbers."""
        directory = version.directory
        group = chosen_groups(version, self._fit, keys)
        if directory is None or group is None or group.size != 1:
            return None
        outer = self._numbers(directory, group, window.outer)
        if outer is None:
            return None
        rows = outer[0][0]
        if window.outer == window.inner or not self._is_cut(directory, group, window):
            found = [pa.array([each.value(outer)], each.type) for each in self._shown]
            return Read(pa.Table.from_arrays(found, schema=self._exact), True, rows)
        inner = self._numbers(directory, group, window.inner)
        if inner is None or self._bounded is None:
            return None
        arrays = []
        for each in self._shown:
            most, least = each.value(outer), each.value(inner)
            bounds = (most, least) if each.aggregate in FALLING else (least, most)
            arrays += [pa.array([value], each.type) for value in (most, *bounds)]
        return Read(pa.Table.from_arrays(arrays, schema=self._bounded), False, rows)

    def _numbers(
        self, directory: Directory, group: Ints, window: tuple[int, int]
    ) -> Numbers | None:
        wanted = self._fit.conditions[0].outer
        return directory.numbers(self._fit.places, wanted, group, window)

    def _is_cut(self, directory: Directory, group: Ints, window: Window) -> bool:
        """Whether the group has rows in slices that are touched and not inside."""
        wanted = self._fit.conditions[0].outer
        found = (directory.numbers(_COUNT, wanted, group, pair) for pair in window.border)
        return any(counts is None or counts[0][0] for counts in found)


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
