"""The table of what aggregates mean, and what their definitions have in common."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

Rows = list[tuple[Any, ...]]
FUNCTIONS: dict[str, Callable[..., Any]] = {}


def aggregate(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers the meaning of an aggregate."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS[name] = function
        return function

    return register


def given(rows: Rows, argument: int = 1) -> list[Any]:
    """The values of an argument that are not NULL."""
    return [row[argument] for row in rows if row[argument] is not None]


def order(value: Any) -> Any:
    """A sort key: NULL first, NaN after every number, -0.0 before 0.0."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (1, math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value))
    return (1, value)


def exact_sum(values: Iterable[float]) -> float:
    """The sum of doubles, rounded once, with SQL's NaN and infinities."""
    values = list(values)
    specials = {value for value in values if math.isinf(value)}
    if any(math.isnan(value) for value in values) or len(specials) == 2:
        return math.nan
    if specials:
        return specials.pop()
    return to_float(sum(map(Fraction, values)))


def to_float(exact: Fraction | int) -> float:
    """The nearest double; infinity for what is greater than all."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
