"""The contract of an encoding: partials of an aggregate as 64-bit integers, for the kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy.typing as npt

from muntin._typing import Bools, Ints
from muntin.aggregators.operators import Store


class Values(NamedTuple):
    """What is run: 64-bit integers, or doubles as bits; `valid` marks those that are not NULL."""

    items: Ints
    double: bool
    valid: Bools | None

    def part(self, start: int, end: int) -> Values:
        """The values from `start` to `end`, exclusive."""
        valid = None if self.valid is None else self.valid[start:end]
        return Values(self.items[start:end], self.double, valid)


class Encoding(ABC):
    """Partials as integers.

    Attributes:
        aggregate: What is computed.
        op: The operator that kernels run.
    """

    aggregate: Any
    op: Any

    @property
    def width(self) -> int:
        """Integers a partial takes."""
        return 1

    @property
    def direct(self) -> bool:
        """Whether answers are the kernel's own integers."""
        return False

    @property
    def dtype(self) -> Any:
        """The numpy type of answers that are not NULL."""
        return self.aggregate.type.to_pandas_dtype()

    @abstractmethod
    def described(self) -> dict[str, Any]:
        """What a snapshot says about the encoding, in JSON's terms."""

    @abstractmethod
    def redescribed(self, said: dict[str, Any]) -> Encoding:
        """The encoding of the same aggregate that said this."""

    @abstractmethod
    def covering(self, values: Values) -> Encoding | None:
        """This encoding, or the next wider one, for these values too; None if there is none."""

    @abstractmethod
    def lift(self, values: Values, out: Store) -> Store:
        """A partial of each value, in `out` or in the values themselves."""

    @abstractmethod
    def lower(self, partials: Store, rows: Ints, out: npt.NDArray[Any]) -> Bools | None:
        """Write the answers to `out`; which of them are NULL, None if none is.

        `rows` says how many values each answer is made of, where all were valid.
        """

    @abstractmethod
    def widened(self, store: Store, wider: Encoding, rows: Ints | None) -> Store:
        """The partials in a wider encoding; `rows` as for `lower`, None if not needed."""

    @abstractmethod
    def decoded(self, store: Store, rows: Ints | None) -> Store:
        """The Python partials."""

    @abstractmethod
    def of_partials(self, partials: Iterable[Any]) -> Encoding | None:
        """This encoding, or the next wider one, for Python partials; None if there is none."""

    @abstractmethod
    def encoded(self, partials: Store) -> Store:
        """Python partials, which the encoding covers, as integers."""

    @property
    def implies_rows(self) -> bool:
        """Whether partials leave it to the technique to know how many rows they hold."""
        return False

    @property
    def needs_rows(self) -> bool:
        """Whether `lower` looks at the number of rows it is given."""
        return False
