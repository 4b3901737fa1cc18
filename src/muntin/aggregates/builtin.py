"""What the built-in aggregates have in common: types fixed when built, and shared parts."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import pyarrow as pa

from muntin.aggregates.algebra import Aggregate
from muntin.aggregates.parts import Part
from muntin.errors import AggregateError


class BuiltIn(Aggregate):
    """An aggregate of SQL, bound to the types of its arguments.

    Attributes:
        aliases: Other SQL names.
        arity: How many arguments it takes, fewest and most.
    """

    aliases: ClassVar[tuple[str, ...]] = ()
    arity: ClassVar[tuple[int, int]] = (1, 1)

    def __init__(self, types: tuple[pa.DataType, ...]) -> None:
        fewest, most = self.arity
        if not fewest <= len(types) <= most:
            wanted = str(most) if fewest == most else f"{fewest} or {most}"
            raise AggregateError(
                f"{self.name} takes {wanted} argument(s), not {len(types)}",
                hint=f"write {self.name}({', '.join('xyz'[:most])})",
            )
        self.types = types
        self.type = self.result_type(types)

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """The accumulators that the answer is read from, in the order `lower` reads them."""

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.types)) or '*'})"
