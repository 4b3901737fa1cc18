"""Aggregates that answer with a share: what is known of a window from some of its values.

Where the values of a window are spread over several places by their hash, each value is in one of
them, with all its occurrences. Different values are then counted and added up place by place, and
the most frequent values of all are among the most frequent ones of each place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from muntin.aggregates.algebra import VALUED, Lowered, Part
from muntin.aggregates.kept import LIMBS
from muntin.aggregates.registry import ResolvedAggregate

if TYPE_CHECKING:
    from muntin.aggregates.columns.column import PartColumn

# What is added up, and what the best of all places are looked for in.
SUMMED = frozenset({"sum_distinct", "avg_distinct"})
RANKED = frozenset({"mode", "top_k", "frequent"})
_SPREAD = SUMMED | RANKED | {"count_distinct"}


@dataclass(frozen=True, repr=False)
class ShareAggregate(ResolvedAggregate):
    """An aggregate whose answer is a struct: the share that some of a window's values make.

    Every share has ``values``, how many different values there are, and ``bytes``, their size, by
    which caps are judged. Beside them stands the exact sum of the values (``sums``), or the most
    frequent values with their counts (``best``) and how many there are with repeats (``total``).
    A ``fallback`` is the answer of windows that turn out to have too many values.
    """

    def lower(self, columns: Sequence[PartColumn]) -> Lowered:
        """The shares, one struct a cell."""
        # Deferred: columns bring compiled kernels, which planning does without.
        from muntin.aggregates.columns.holistic.shares import encode  # noqa: PLC0415

        return Lowered(encode(self, columns))


def can_spread(aggregate: ResolvedAggregate) -> bool:
    """Whether answers can be put together from shares that are much smaller than all values.

    >>> from muntin.aggregates import resolve
    >>> can_spread(resolve("count", [pa.int64()], distinct=True))
    True
    >>> can_spread(resolve("median", [pa.int64()]))
    False
    """
    return aggregate.name in _SPREAD


def spread_form(aggregate: ResolvedAggregate) -> ResolvedAggregate:
    """The aggregate with all parts that its shares are read off.

    Caps go by how many different values there are. Those of runs are counted by a set beside them,
    which costs its news; to look through the runs of a window costs more the longer it is.

    >>> from muntin.aggregates import resolve
    >>> spread_form(resolve("mode", [pa.int64()]))
    ResolvedAggregate(mode(int64) -> int64, parts: runs(int64), set(int64))
    """
    if aggregate.name not in RANKED:
        return aggregate
    return replace(aggregate, parts=(*aggregate.parts, Part("set", aggregate.types)))


def share_of(real: ResolvedAggregate, *, is_home: bool) -> ShareAggregate:
    """The aggregate that answers with shares of ``real``, in its `spread_form`.

    Only the place that ``is_home`` to all else that windows have can tell what they fall back to.

    >>> from muntin.aggregates import resolve
    >>> str(share_of(spread_form(resolve("mode", [pa.int64()])), is_home=True).type)
    'struct<values: int64, bytes: int64, total: int64, best: list<item: struct<value: int64, \
count: int64>>>'
    """
    fields = [("values", pa.int64()), ("bytes", pa.int64())]
    if real.name in SUMMED:
        fields.append(("sums", LIMBS))
    if real.name in RANKED:
        best = pa.struct([("value", real.types[0]), ("count", pa.int64())])
        fields += [("total", pa.int64()), ("best", pa.list_(best))]
    fallback = real.fallback if is_home and not real.facet else None
    if fallback is not None:
        fields.append(("fallback", fallback.type))
    parts = tuple(each for each in real.parts if each.kind in VALUED or fallback is not None)
    bound = real.name, real.types, parts, pa.struct(fields), real.algebra, real.constants
    return ShareAggregate(*bound, cap=real.cap, fallback=fallback)
