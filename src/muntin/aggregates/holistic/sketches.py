"""How many different values there are, exactly or estimated: HyperLogLog."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import pyarrow as pa

from muntin.aggregates.algebra import REGISTERS, BuiltIn, Part
from muntin.aggregates.types import is_real, require_ordered
from muntin.errors import AggregateError

# Up to so many values are kept as they are, or rather their hashes.
EXACT = 256
_LEAST, _MOST = 0.005, 0.4
# Fewer registers deviate by more, and more often.
_FEWEST_BITS = 7


class ApproxCountDistinct(BuiltIn):
    """How many different values there are: exact up to 256, and estimated from there on.

    A partial is the sorted hashes of its values, of 63 bits, or else, as negative codes, what the
    registers of a HyperLogLog hold. Either is a function of the set of values alone, so answers do
    not depend on order, slices or partitions. The constant is the relative standard deviation, 0.02
    by default.

    >>> ApproxCountDistinct((pa.string(),)).of(["a", "b", None, "a"])
    2

    Flajolet, Fusy, Gandouet, Meunier: HyperLogLog, AofA 2007; estimated as by Ertl, "New
    cardinality estimation algorithms for HyperLogLog sketches", 2017.
    """

    name = "approx_count_distinct"
    aliases = ("approx_distinct",)
    duplicate_insensitive = True
    constants: ClassVar[dict[str, Any]] = {"rsd": 0.02}

    def check(self) -> None:
        """A deviation that a HyperLogLog can have."""
        (rsd,) = self.given
        if not is_real(rsd) or not _LEAST <= rsd <= _MOST:
            raise AggregateError(
                f"{self.name} takes a relative standard deviation from {_LEAST} to {_MOST}, "
                f"not {rsd!r}",
                hint=f"write {self.name}(x), which is {self.name}(x, 0.02), or count(DISTINCT x)",
            )

    @property
    def bits(self) -> int:
        """How many bits of a hash choose its register, as in Spark."""
        return max(math.ceil(2 * math.log2(1.106 / float(self.given[0]))), _FEWEST_BITS)

    @property
    def identity(self) -> tuple[int, ...]:
        """No values."""
        return ()

    def lift(self, value: Any) -> tuple[int, ...]:
        """One hash."""
        # Deferred: the columns bring numba, which the algebra alone does not need.
        from muntin.aggregates.columns.holistic.hashes import hashes_of  # noqa: PLC0415

        return tuple(hashes_of(pa.array([value], self.types[0])).tolist())

    def combine(self, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
        """The hashes of both, or the greater of both in each register."""
        codes = sorted({*a, *b})
        if not codes or (codes[0] >= 0 and len(codes) <= EXACT):
            return tuple(codes)
        held: dict[int, int] = {}
        for code in codes:
            place, rank = divmod(-1 - code, 64) if code < 0 else placed(code, self.bits)
            held[place] = max(held.get(place, 0), rank)
        return tuple(sorted(-1 - (64 * place + rank) for place, rank in held.items()))

    def lower(self, partial: tuple[int, ...]) -> int:
        """How many hashes, or the estimate."""
        from muntin.aggregates.columns.holistic.register_windows import estimates  # noqa: PLC0415

        if not partial or partial[0] >= 0:
            return len(partial)
        return estimates([(-1 - code) % 64 for code in partial], self.bits)

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """BIGINT."""
        require_ordered(self.name, types[0])
        return pa.int64()

    @property
    def parts(self) -> tuple[Part, ...]:
        """The hashes or registers."""
        return (Part(f"{REGISTERS}{self.bits}", self.types),)


def placed(code: int, bits: int) -> tuple[int, int]:
    """The register of a hash of 63 bits, and the place of the first bit set behind its number.

    >>> placed(1, 12), placed(1 << 50, 12)
    ((0, 51), (0, 1))
    """
    rest = code & ((1 << (63 - bits)) - 1)
    return code >> (63 - bits), 63 - bits - rest.bit_length() + 1
