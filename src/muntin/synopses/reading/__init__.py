"""Reading one version of a keep for one question: exact answers, or answers with bounds."""

from muntin.synopses.reading.gathered import Budget, Window
from muntin.synopses.reading.one_row import OneRow, ReadRow, one_row
from muntin.synopses.reading.reader import Reading
from muntin.synopses.reading.table import Read

__all__ = ["Budget", "OneRow", "Read", "ReadRow", "Reading", "Window", "one_row"]
