"""Windowed operators that are no aggregates: joins, absences, distinct values, differences."""

from muntin.operators.engine import RowEngine, RowStatistics

__all__ = ["RowEngine", "RowStatistics"]
