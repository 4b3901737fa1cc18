"""Aggregates: their algebra, a registry by SQL name, laws, and accumulators as columns."""

from muntin.aggregates.algebra import Aggregate
from muntin.aggregates.parts import Lowered, Part
from muntin.aggregates.registry import (
    ResolvedAggregate,
    names,
    register,
    registered,
    resolve,
    unregister,
)

__all__ = [
    "Aggregate",
    "Lowered",
    "Part",
    "ResolvedAggregate",
    "names",
    "register",
    "registered",
    "resolve",
    "unregister",
]
