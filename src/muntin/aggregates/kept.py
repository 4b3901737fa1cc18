"""Aggregates that answer with their accumulators, for whoever combines answers further."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from muntin.aggregates.algebra import INVERTIBLE, SELECTIVE, TIMED, Lowered, Part
from muntin.aggregates.registry import ResolvedAggregate

if TYPE_CHECKING:
    from muntin.aggregates.columns.column import PartColumn

_COUNTS = frozenset({"count", "count_if"})
_BITS = frozenset({"bit_and", "bit_or", "bit_xor"})
_EXTREMES = frozenset({"min", "max"})
# The limbs of an exact sum behind the place of the first one.
LIMBS = pa.large_list(pa.int64())


@dataclass(frozen=True, repr=False)
class KeptAggregate(ResolvedAggregate):
    """An aggregate whose answer is a struct of its accumulators, one field for each part.

    ``real`` is the aggregate that reads its own answer off them.
    """

    real: ResolvedAggregate | None = None

    def lower(self, columns: Sequence[PartColumn]) -> Lowered:
        """The accumulators, one struct a cell."""
        # Deferred: columns bring compiled kernels, which planning does without.
        from muntin.aggregates.columns.kept import encode  # noqa: PLC0415

        return Lowered(encode(self, columns))


def kept(real: ResolvedAggregate) -> KeptAggregate:
    """The aggregate that answers with what ``real`` is read from.

    >>> from muntin.aggregates import resolve
    >>> str(kept(resolve("avg", [pa.int64()])).type)
    'struct<0: large_list<item: int64>, 1: int64>'
    """
    fields = [pa.field(str(i), kept_type(part)) for i, part in enumerate(real.parts)]
    name = f"kept {real.name}"
    return KeptAggregate(
        name, real.types, real.parts, pa.struct(fields), real.algebra, real.constants, real=real
    )


def can_keep(part: Part) -> bool:
    """Whether accumulators of a part are small enough to be answers: those of all values are not.

    >>> can_keep(Part("sum", (pa.int64(),))), can_keep(Part("runs", (pa.int64(),)))
    (True, False)
    """
    return part.kind in (INVERTIBLE | SELECTIVE | _BITS) - {"log_sum"}


def kept_type(part: Part) -> pa.DataType:
    """The type of one accumulator as an answer."""
    if part.kind in _COUNTS | _BITS:
        return pa.int64()
    if part.kind in INVERTIBLE:
        return LIMBS
    if part.kind in _EXTREMES:
        return part.types[0]
    key = pa.int64() if part.kind in TIMED else part.types[1]
    return pa.struct([("seen", pa.bool_()), ("key", key), ("value", part.types[0])])
