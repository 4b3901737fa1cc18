"""What could not be carried over, line by line."""

from __future__ import annotations

from dataclasses import dataclass, replace

from muntin.errors import Problem
from muntin.pipelines.importing.statements import Remark
from muntin.queries.source import Lines

# Nobody reads more about one file.
MAX_NOTES = 1000


@dataclass(frozen=True)
class Note:
    """One thing that a file says and its translation does not.

    Attributes:
        problem: What it is, where it stands in the file that was read, and what to do about it.
        lost: Whether answers may differ without it; False for what has no effect here.
        statement: The number of the statement it belongs to, from 0; -1 for the whole file.
    """

    problem: Problem
    lost: bool = True
    statement: int = -1

    @property
    def said(self) -> Problem:
        """The problem; what has no effect is called a note."""
        if self.lost:
            return self.problem
        return replace(self.problem, message=f"note: {self.problem.message}")

    @property
    def comment(self) -> str:
        """The note in one line, as it stands in the translation."""
        hint = f"; {self.problem.hint}" if self.problem.hint else ""
        where = f"line {self.problem.line}: " if self.problem.line else ""
        return f"{where}{self.said.message}{hint}"


class Notes:
    """Collects notes, each at a place of the text.

    >>> notes = Notes(Lines("SET x;"))
    >>> notes.add(0, "SET has no counterpart", "leave it out")
    >>> notes.found[0].comment
    'line 1: SET has no counterpart; leave it out'
    """

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.statement = -1
        self.found: list[Note] = []
        self._places: set[tuple[int, int]] = set()

    def add(self, offset: int, message: str, hint: str, *, lost: bool = True) -> None:
        """Record something at an offset into the text."""
        text = self.lines.slice(offset, offset)
        self.take(text.problem(offset, message, hint), lost=lost)

    def take(self, problem: Problem, *, lost: bool = True) -> None:
        """Record a problem that is placed already; the first about a place says it best."""
        place = (problem.line, problem.column)
        if place not in self._places and len(self.found) < MAX_NOTES:
            self._places |= {place} if problem.line else set()
            self.found.append(Note(problem, lost, self.statement))

    def remark(self, remark: Remark) -> None:
        """Record what the grammar passed over."""
        self.add(remark.start, remark.message, remark.hint, lost=remark.lost)

    def by_statement(self) -> dict[int, list[Note]]:
        """The notes of each statement that has some, in the order of the text."""
        found: dict[int, list[Note]] = {}
        for note in self.sorted():
            found.setdefault(note.statement, []).append(note)
        return found

    def sorted(self) -> list[Note]:
        """All notes in the order of the text."""
        return sorted(self.found, key=lambda one: (one.problem.line, one.problem.column))
