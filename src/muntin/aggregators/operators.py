"""What a technique asks of partials: each function does what its operator says.

The techniques are written once, over these functions. As they stand they run on Python partials
in object arrays (`Objects`); compiled, numba picks the meaning by the operator's type, so that a
kernel works on bare integers or on a few integer lanes held in registers. This module needs no
numba.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from muntin.aggregates import Aggregate
from muntin.aggregates.algebra import same

Store = npt.NDArray[Any]


def load(op: Any, store: Store, index: int) -> Any:
    """The partial at `index`."""
    return store[index]


def save(op: Any, store: Store, index: int, partial: Any) -> None:
    """Put a partial at `index`."""
    store[index] = partial


def take(op: Any, values: Store, index: int) -> Any:
    """The partial that comes as the value at `index`."""
    return values[index]


def give(op: Any, answers: Store, index: int, partial: Any) -> None:
    """Hand out a partial as the answer at `index`."""
    answers[index] = partial


def combine(op: Any, a: Any, b: Any) -> Any:
    """The rows of `a` followed by those of `b`."""
    return op.combine(a, b)


def inverse(op: Any, a: Any, b: Any) -> Any:
    """The rows of `a` without those of `b`."""
    return op.inverse(a, b)


def selects_later(op: Any, a: Any, b: Any) -> bool:
    """Whether combining `a` with the later `b` leaves just `b`; for selective operators."""
    return bool(op.selects_later(a, b))


def commutes(op: Any) -> bool:
    """Whether the order of partials may be changed."""
    return bool(op.commutative)


class Objects:
    """The operator of any aggregate, on its Python partials."""

    def __init__(self, aggregate: Aggregate) -> None:
        self.combine = aggregate.combine
        self.inverse = aggregate.inverse
        self.identity = aggregate.identity
        self.commutative = aggregate.commutative

    def selects_later(self, a: Any, b: Any) -> bool:
        """Equality as the laws see it: 0.0 and -0.0 are two values."""
        chosen = self.combine(a, b)
        return chosen is b or same(chosen, b)

    def empty(self, size: int) -> Store:
        """Identities."""
        store = np.empty(size, np.object_)
        store.fill(self.identity)
        return store


class Sum(NamedTuple):
    """Addition of 64-bit integers; the caller sees to it that answers fit."""

    zero: int = 0

    def empty(self, size: int) -> Store:
        """Zeros."""
        return np.zeros(size, np.int64)


class Sums(NamedTuple):
    """Addition of rows of 64-bit integers, lane by lane."""

    zeros: tuple[int, ...]

    def empty(self, size: int) -> Store:
        """Rows of zeros."""
        return np.zeros((size, len(self.zeros)), np.int64)


class Least(NamedTuple):
    """The smaller of two 64-bit codes; `nothing` is greater than every other code.

    Codes are changed by `flip` when they come and when they are handed out: with -1, which turns
    their order around, the greatest is the answer.
    """

    nothing: int = 2**63 - 1
    flip: int = 0

    def empty(self, size: int) -> Store:
        """Codes of no value."""
        return np.full(size, self.nothing, np.int64)
