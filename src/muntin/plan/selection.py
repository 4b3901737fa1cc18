"""Which rows partials are kept for, and how rows of different predicates are told apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from muntin.display import count
from muntin.expressions import Bound
from muntin.predicates import Shape


@dataclass(frozen=True)
class Mask:
    """The rows of one predicate; every row where there is none."""

    predicate: Bound | None = None
    coded: ClassVar[bool] = False
    members: ClassVar[int] = 1

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The expressions evaluated to select rows."""
        return () if self.predicate is None else (self.predicate,)

    def __str__(self) -> str:
        return "" if self.predicate is None else f"where {self.predicate.key}"


@dataclass(frozen=True)
class Cells:
    """Rows by their cell in the space of a shape; a cell that no predicate accepts is left out.

    Members are the shape's predicates. Which of them a cell satisfies is known from its key.
    """

    shape: Shape

    @property
    def members(self) -> int:
        """How many predicates there are."""
        return len(self.shape.members)

    @property
    def coded(self) -> bool:
        """Whether entries carry a code: all cells of a space without dimensions are one."""
        return bool(self.shape.dimensions)

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The expressions evaluated to select rows: each once, whatever the number of constants."""
        return tuple(dimension.bound for dimension in self.shape.dimensions)

    def __str__(self) -> str:
        if not self.shape.dimensions:
            return ""
        names = " × ".join(
            f"{each.bound.key} ({len(each.cuts)} cut{'s' * (len(each.cuts) != 1)})"
            for each in self.shape.dimensions
        )
        members = len(self.shape.members)
        return f"{members} {'predicate' if members == 1 else 'predicates'} in cells of {names}"


@dataclass(frozen=True)
class Signatures:
    """Rows by the bitmap of the predicates they satisfy; rows that satisfy none are left out.

    From Krishnamurthy, Wu, Franklin, "On-the-Fly Sharing for Streamed Aggregation": the rows of
    one bitmap form a fragment.
    """

    predicates: tuple[Bound | None, ...]
    coded: ClassVar[bool] = True

    @property
    def members(self) -> int:
        """How many predicates there are."""
        return len(self.predicates)

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Every predicate is evaluated for every row."""
        return tuple(bound for bound in self.predicates if bound is not None)

    def __str__(self) -> str:
        return f"fragments of {count(len(self.predicates), 'predicate')}"


Selection = Mask | Cells | Signatures
