"""Values by how often they occur: mode, top_k and frequent."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import pyarrow as pa

from muntin.aggregates.algebra import REQUIRED
from muntin.aggregates.holistic.runs import Run, Runs
from muntin.aggregates.types import is_real, require_ordered
from muntin.errors import AggregateError

MOST = 10_000


class Mode(Runs):
    """The most frequent value; the least of several.

    >>> Mode((pa.string(),)).of(["b", "a", "b", "a", None])
    'a'
    """

    name = "mode"

    def lower(self, partial: Run) -> Any:
        """NULL for no values."""
        return _by_count(partial)[0][0] if partial else None


class _Counted(Runs):
    """Values with their numbers of occurrences, the most frequent first."""

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """A list of values and counts."""
        require_ordered(self.name, types[0])
        return pa.list_(pa.struct([("value", types[0]), ("count", pa.int64())]))


class TopK(_Counted):
    """The k most frequent values with their counts; of equally frequent ones the least come first.

    >>> TopK((pa.string(),), (1,)).of(["b", "a", "b"])
    [{'value': 'b', 'count': 2}]
    """

    name = "top_k"
    constants: ClassVar[dict[str, Any]] = {"k": REQUIRED}
    sample = (2,)

    def check(self) -> None:
        """A whole number of values."""
        check_number(self.name, "x", self.given[0])

    def lower(self, partial: Run) -> list[dict[str, Any]]:
        """An empty list for no values."""
        return _items(_by_count(partial)[: self.given[0]])


class Frequent(_Counted):
    """The values that make up at least a fraction of all, with their counts, most frequent first.

    >>> Frequent((pa.string(),), (0.5,)).of(["b", "a", "b", "c"])
    [{'value': 'b', 'count': 2}]
    """

    name = "frequent"
    constants: ClassVar[dict[str, Any]] = {"fraction": REQUIRED}
    sample = (0.25,)

    def check(self) -> None:
        """A fraction that few values can reach."""
        check_fraction(self.name, self.given[0])

    @property
    def fraction(self) -> Fraction:
        """The fraction as it was written, not as a double."""
        return Fraction(repr(self.given[0]))

    def lower(self, partial: Run) -> list[dict[str, Any]]:
        """An empty list for no values."""
        total = sum(count for _, count in partial)
        return _items(each for each in _by_count(partial) if each[1] >= self.fraction * total)


def check_fraction(name: str, given: Any) -> None:
    """Refuse a fraction that more values can reach than anybody reads."""
    if not is_real(given) or not 1 / MOST <= given <= 1:
        raise AggregateError(
            f"{name} takes a fraction from {1 / MOST} to 1, not {given!r}",
            hint=f"write {name}(x, 0.01) for values that are 1% of all",
        )


def check_number(name: str, args: str, given: Any) -> None:
    """Refuse a k that is not a number of values."""
    if type(given) is not int or not 1 <= given <= MOST:
        raise AggregateError(
            f"{name} takes a whole number from 1 to {MOST:,}, not {given!r}",
            hint=f"write {name if 'top_k' in name else name.removesuffix('_k')}({args}, 10)",
        )


def _by_count(run: Run) -> list[tuple[Any, int]]:
    # Sorting is stable: of equal counts the lesser value stays before.
    return sorted(run, key=lambda item: -item[1])


def _items(run: Any) -> list[dict[str, Any]]:
    return [{"value": value, "count": count} for value, count in run]
