"""Aggregates over joined streams: answers of sides multiplied, or rows of the join aggregated."""

from muntin.engine.joined.answers import JoinAnswers
from muntin.engine.joined.merge import merged
from muntin.engine.joined.share import JoinShare, Shared, Times

__all__ = ["JoinAnswers", "JoinShare", "Shared", "Times", "merged"]
