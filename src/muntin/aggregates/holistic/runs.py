"""Sorted values with how often each occurs: what medians, modes and the like are read off."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import pyarrow as pa

from muntin.aggregates.algebra import BuiltIn, Part
from muntin.aggregates.types import rank, require_ordered

# Each value once, in order, and how often it occurs.
Run = tuple[tuple[Any, int], ...]


class Runs(BuiltIn):
    """An aggregate that is read off all values of its rows, in any order."""

    @property
    def identity(self) -> Run:
        """No values."""
        return ()

    def lift(self, value: Any) -> Run:
        """One value, once."""
        return ((plain(value), 1),)

    def combine(self, a: Run, b: Run) -> Run:
        """The values of both."""
        return united((*a, *b))

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """As the value's type."""
        require_ordered(self.name, types[0])
        return types[0]

    @property
    def parts(self) -> tuple[Part, ...]:
        """One set of runs, whatever is asked of it."""
        return (Part("runs", self.types),)


def plain(value: Any) -> Any:
    """The value that stands for all that SQL calls equal: 0.0 for -0.0."""
    return 0.0 if isinstance(value, float) and value == 0 else value


def united(items: Iterable[tuple[Any, int]]) -> Run:
    """Values in order, each once.

    >>> united([(2, 1), (1, 1), (2, 3)])
    ((1, 1), (2, 4))
    """
    grouped = groupby(sorted(items, key=_order), key=_order)
    listed = (list(same) for _, same in grouped)
    return tuple((same[0][0], sum(count for _, count in same)) for same in listed)


def _order(item: tuple[Any, int]) -> Any:
    value = item[0]
    return tuple(map(rank, value)) if isinstance(value, tuple) else rank(value)


def spelled_out(run: Run) -> list[Any]:
    """Every value as often as it occurs.

    >>> spelled_out(((1, 1), (2, 2)))
    [1, 2, 2]
    """
    return [value for value, count in run for _ in range(count)]
