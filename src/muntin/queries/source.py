"""Where a query was written, so that every problem can point at its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from muntin.errors import Problem, QueryError

# Beyond this column a caret would stand far outside any screen: the line is left out.
MAX_CARET = 400
SHOWN_AFTER_CARET = 60
SHOWN_TEXT = 40


@dataclass(frozen=True)
class SourceText:
    r"""The lines a statement was written on.

    Nodes carry offsets into the whole text; ``start`` is the offset of this part's first
    character, and ``line`` the number of its first line.

    >>> SourceText("SELECT\n  price").place(9)
    (2, 3)
    """

    text: str = ""
    start: int = 0
    line: int = 1

    @classmethod
    def slice(cls, text: str, start: int, end: int) -> SourceText:
        """The whole lines of ``text`` that hold the characters ``start`` to ``end``."""
        first = text.rfind("\n", 0, start) + 1
        last = text.find("\n", end)
        part = text[first:] if last < 0 else text[first:last]
        return cls(part, first, text.count("\n", 0, first) + 1)

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1, of an offset into the whole text."""
        inside = min(max(offset - self.start, 0), len(self.text))
        column = inside - self.text.rfind("\n", 0, inside)
        return self.line + self.text.count("\n", 0, inside), column

    def problem(
        self, offset: int, message: str, hint: str | None = None, query: str | None = None
    ) -> Problem:
        """A problem that points at an offset into the whole text."""
        line, column = self.place(offset)
        written = self.text.split("\n")[line - self.line]
        shown = printable(written[: max(column + SHOWN_AFTER_CARET, 2 * SHOWN_AFTER_CARET)])
        return Problem(
            message,
            hint=hint,
            query=query,
            line=line,
            column=column,
            source=shown if column <= MAX_CARET else None,
        )

    def __str__(self) -> str:
        return self.text


def problem_at(
    node: exp.Expr,
    text: SourceText,
    message: str,
    hint: str | None = None,
    query: str | None = None,
) -> Problem:
    """A problem that points at the first character a node was written with.

    ``text`` is the ``text`` of the query that the node belongs to. A node without a place of its
    own takes the leftmost place of its parts, and one without any (built in Python) gives a
    problem without a position.
    """
    offset = position(node)
    if offset is None:
        return Problem(message, hint=hint, query=query)
    return text.problem(offset, message, hint, query)


def position(node: exp.Expr) -> int | None:
    """The offset of a node's first character, or None where it was not read from a text."""
    return min(_offsets(node), default=None)


def _offsets(node: exp.Expr) -> Iterator[int]:
    for part in node.walk():
        offset = part.meta_get("start")
        if isinstance(offset, int):
            yield offset


def check_text(value: object, what: str) -> str:
    """The value if it is text, or a QueryError that says what was wanted."""
    if isinstance(value, str):
        return value
    hint = "write it as text, such as 'price > 10'" if what == "an expression" else "pass a str"
    message = f"{shown(repr(value))} is not {what}"
    raise QueryError([Problem(message, hint=hint)])


def printable(text: str) -> str:
    """The text with a space for each character that would break a terminal's line or a caret."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def shown(text: str) -> str:
    """A user's text as messages quote it: printable, and cut when long.

    >>> shown("x" * 100)
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'
    """
    return printable(text if len(text) <= SHOWN_TEXT else f"{text[:SHOWN_TEXT]}...")
