"""Aggregates over joined streams: answers of sides multiplied, or rows of the join aggregated."""

from muntin.engine.joined.answers import JoinAnswers

__all__ = ["JoinAnswers"]
