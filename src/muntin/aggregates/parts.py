"""Parts: the accumulators that aggregates are made of, and share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

INVERTIBLE = frozenset({"count", "count_if", "sum", "sum_squares", "log_sum"})
TIMED = frozenset({"first", "last", "first_valid", "last_valid"})
USER = "user:"


@dataclass(frozen=True)
class Part:
    """One accumulator kind over typed arguments.

    Parts of the same kind over the same argument expressions hold the same numbers, so one
    accumulator serves all aggregates that ask for it. `args` says which of the aggregate's
    arguments the part is fed with and is no part of its identity.

    >>> Part("sum", (pa.float64(),)) == Part("sum", (pa.float64(),), args=(1,))
    True
    """

    kind: str
    types: tuple[pa.DataType, ...] = ()
    args: tuple[int, ...] = field(default=(0,), compare=False)

    @property
    def invertible(self) -> bool:
        """Whether cells can be subtracted; sliding then costs two operations a window."""
        return self.kind in INVERTIBLE

    @property
    def timed(self) -> bool:
        """Whether `update` reads the event times."""
        return self.kind in TIMED or self.kind.startswith(USER)

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(map(str, self.types)) or '*'})"


class Lowered(NamedTuple):
    """Answers, one a cell. `errors` marks those that failed, which are NULL; None if none did."""

    values: pa.Array
    errors: pa.Array | None = None
