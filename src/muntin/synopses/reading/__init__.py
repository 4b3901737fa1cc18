"""Reading one version of a keep for one question: exact answers, or answers with bounds."""

from muntin.synopses.reading.gathered import Budget, Window
from muntin.synopses.reading.one_row import OneRow, one_row
from muntin.synopses.reading.reader import Reading

__all__ = ["Budget", "OneRow", "Reading", "Window", "one_row"]
