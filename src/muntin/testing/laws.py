"""The laws of the algebra as checks that anybody can run on their own aggregate.

Each check takes partials (or rows) and raises AssertionError with the offending values. Feed them
from a property-based test: every partial that `lift` and `combine` can make must obey.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from muntin.aggregates.algebra import Aggregate, same


def check_associative(aggregate: Aggregate, a: Any, b: Any, c: Any) -> None:
    """Grouping does not matter: (a b) c is a (b c)."""
    left = aggregate.combine(aggregate.combine(a, b), c)
    right = aggregate.combine(a, aggregate.combine(b, c))
    _require(same(left, right), aggregate, "is not associative", a=a, b=b, c=c)


def check_identity(aggregate: Aggregate, a: Any) -> None:
    """The identity changes nothing, from either side."""
    identity = aggregate.identity
    kept = same(aggregate.combine(identity, a), a) and same(aggregate.combine(a, identity), a)
    _require(kept, aggregate, "has a wrong identity", identity=identity, a=a)


def check_commutative(aggregate: Aggregate, a: Any, b: Any) -> None:
    """Order does not matter: a b is b a."""
    forth, back = aggregate.combine(a, b), aggregate.combine(b, a)
    _require(same(forth, back), aggregate, "is not commutative", a=a, b=b)


def check_inverse(aggregate: Aggregate, a: Any, b: Any) -> None:
    """What was combined can be taken off again, which leaves no trace."""
    both = aggregate.combine(a, b)
    undone = same(aggregate.inverse(both, b), a)
    emptied = same(aggregate.inverse(both, both), aggregate.identity)
    _require(undone and emptied, aggregate, "has a wrong inverse", a=a, b=b)


def check_selective(aggregate: Aggregate, a: Any, b: Any) -> None:
    """The combination is one of its operands."""
    both = aggregate.combine(a, b)
    _require(same(both, a) or same(both, b), aggregate, "is not selective", a=a, b=b)


def check_duplicate_insensitive(aggregate: Aggregate, a: Any) -> None:
    """A partial combined with itself stays as it is."""
    twice = aggregate.combine(a, a)
    _require(same(twice, a), aggregate, "is sensitive to duplicates", a=a)


def check_parts_equal_whole(aggregate: Aggregate, rows: Sequence[Any], cut: int) -> None:
    """Rows cut in two give the same answer as the rows in one piece."""
    parts = aggregate.combine(_fold(aggregate, rows[:cut]), _fold(aggregate, rows[cut:]))
    whole = _fold(aggregate, rows)
    _require(same(parts, whole), aggregate, "differs from its parts", rows=rows, cut=cut)


def check_laws(aggregate: Aggregate, rows: Sequence[Any]) -> None:
    """Every law that the aggregate says it obeys, on partials made of these rows.

    >>> import pyarrow as pa
    >>> from muntin.aggregates import resolve
    >>> check_laws(resolve("sum", [pa.float64()]).algebra, [1e308, -1.0, 5e-324, None])
    """
    third = len(rows) // 3
    a, b, c = (
        _fold(aggregate, piece) for piece in (rows[:third], rows[third:-third], rows[-third:])
    )
    check_associative(aggregate, a, b, c)
    for partial in (a, b, c):
        check_identity(aggregate, partial)
        if aggregate.duplicate_insensitive:
            check_duplicate_insensitive(aggregate, partial)
    if aggregate.commutative:
        check_commutative(aggregate, a, b)
    if aggregate.invertible:
        check_inverse(aggregate, a, b)
    if aggregate.selective:
        check_selective(aggregate, a, b)
    for cut in range(len(rows) + 1):
        check_parts_equal_whole(aggregate, rows, cut)


def _fold(aggregate: Aggregate, rows: Sequence[Any]) -> Any:
    """The rows' partial. The identity stands in for no rows only, where a wrong one would show."""
    partials = [aggregate.partial(row) for row in rows]
    return reduce(aggregate.combine, partials) if partials else aggregate.identity


def _require(holds: bool, aggregate: Aggregate, failing: str, **values: Any) -> None:
    if not holds:
        shown = ", ".join(f"{name} = {value!r}" for name, value in values.items())
        raise AssertionError(f"{aggregate.name} {failing}: {shown}")
