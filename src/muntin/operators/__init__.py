"""Windowed operators that are not aggregates: joins, absences, distinct values, differences."""

from muntin.operators.engine import RowEngine, RowStatistics
from muntin.operators.state.stored import segment_bytes, segment_of

__all__ = ["RowEngine", "RowStatistics", "segment_bytes", "segment_of"]
