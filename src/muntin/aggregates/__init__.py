"""Aggregates: their algebra, a registry by SQL name, laws, and accumulators as columns."""

from muntin.aggregates.algebra import Aggregate, Lowered, Part
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
