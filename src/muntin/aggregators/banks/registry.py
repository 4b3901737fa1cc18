"""Banks by the name of their technique."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyarrow.types import is_integer, is_uint64

from muntin.aggregates import ResolvedAggregate
from muntin.aggregators.registry import create, info
from muntin.errors import AggregateError, WindowError

if TYPE_CHECKING:
    from muntin.aggregators.banks.bank import Bank

_SUMS = frozenset({"sum", "sum_squares", "count", "count_if"})
_EXTREMES = frozenset({"min", "max"})
_INVERTING = frozenset({"panes_inv", "slickdeque_inv"})


def bank(name: str, aggregate: ResolvedAggregate, ranges: Iterable[int], groups: int = 0) -> Bank:
    """The windows of many groups under one technique.

    Args:
        name: The technique.
        aggregate: What to compute, as resolved by SQL name.
        ranges: How many partials each window spans.
        groups: How many groups there are at first; see `Bank.add` and `Bank.remove`.

    >>> from muntin.aggregates import resolve
    >>> import pyarrow as pa
    >>> sums = bank("slickdeque_inv", resolve("sum", [pa.int64()]), ranges=[1, 3], groups=3)
    >>> sums.advance([1, 10, 100]).values.tolist()
    [[1, 1], [10, 10], [100, 100]]
    >>> sums.advance([2, 200], groups=[0, 2]).values.tolist()
    [[2, 3], [200, 300]]
    >>> sums.remove([1])
    >>> sums.add().tolist()
    [1]
    >>> bank("daba", resolve("max", [pa.string()]), ranges=[3])
    Traceback (most recent call last):
    muntin.errors.AggregateError: max(string) has no bank of daba
    Hint: banks take sums, counts and what is read off them (of doubles: slickdeque_inv), and ...
    """
    # An aggregator of one group refuses what the technique cannot do.
    sizes = create(name, aggregate, ranges).ranges
    if not sizes:
        raise WindowError("a bank without ranges", hint="say how many partials each window spans")
    if not isinstance(aggregate, ResolvedAggregate):
        raise AggregateError(
            f"a bank of {aggregate!r}", hint="banks take what muntin.aggregates.resolve gives"
        )
    return _class_for(name, aggregate)(info(name), aggregate, sizes, groups)


def _class_for(name: str, aggregate: ResolvedAggregate) -> type[Bank]:
    # Deferred: these bring the compiled kernels.
    from muntin.aggregates.columns.codes import coder  # noqa: PLC0415
    from muntin.aggregators.banks.extremes import ExtremeBank  # noqa: PLC0415
    from muntin.aggregators.banks.sums import SumBank  # noqa: PLC0415
    from muntin.aggregators.banks.techniques import TechniqueBank  # noqa: PLC0415

    kinds = {part.kind for part in aggregate.parts}
    if kinds and kinds <= _SUMS:
        if name in _INVERTING:
            return SumBank
        if all(is_integer(kind) and not is_uint64(kind) for kind in aggregate.types):
            return TechniqueBank
    if len(kinds) == 1 and kinds <= _EXTREMES and not coder(aggregate.types[0]).moves:
        return ExtremeBank if name == "slickdeque_noninv" else TechniqueBank
    types = ", ".join(map(str, aggregate.types))
    raise AggregateError(
        f"{aggregate.name}({types}) has no bank of {name}",
        hint="banks take sums, counts and what is read off them (of doubles: slickdeque_inv), and "
        "min and max of fixed width; for others, create one aggregator per group",
    )
