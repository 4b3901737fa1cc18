"""The problems found in one statement, collected as it is read."""

from __future__ import annotations

from sqlglot import exp

from muntin.errors import Problem
from muntin.queries.source import SourceText, position

# Nobody reads more about one statement.
MAX_PROBLEMS = 100


class Report:
    """Collects problems, each at the place of the node it is about.

    Args:
        text: Where the statement was written.
        query: The statement's query name, for messages.
        start: The offset that problems of nodes without a place point at.
    """

    def __init__(self, text: SourceText, query: str | None, start: int) -> None:
        self.text = text
        self.query = query
        self.start = start
        self.problems: list[Problem] = []

    def add(self, node: exp.Expr | None, message: str, hint: str) -> None:
        """Records what is wrong with a node, and what to write instead."""
        offset = position(node) if node is not None else None
        self.add_at(self.start if offset is None else offset, message, hint)

    def add_at(self, offset: int, message: str, hint: str | None) -> None:
        """Records what is wrong at an offset into the whole text."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(self.text.problem(offset, message, hint, self.query))
