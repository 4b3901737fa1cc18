"""Where a query was written, so that every problem can point at its place."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate

from sqlglot import exp

from muntin.errors import Problem, QueryError
from muntin.queries.secrets import masked
from muntin.queries.sql.depth import parts

# Beyond this column a caret would stand far outside any screen: the line is left out.
MAX_CARET = 400
SHOWN_AFTER_CARET = 60
SHOWN_TEXT = 40


@dataclass(frozen=True)
class Moved:
    """Where words of another text begin, and where the same words begin in this one.

    >>> Moved((7, 13), (107, 120))(13)
    120
    """

    theirs: tuple[int, ...]
    own: tuple[int, ...]

    def __call__(self, offset: int) -> int:
        """The offset in this text of what has an offset in the other."""
        place = max(bisect_right(self.theirs, offset) - 1, 0)
        return self.own[place] + offset - self.theirs[place]


@dataclass(frozen=True)
class SourceText:
    r"""The lines a statement was written on.

    Nodes carry offsets into the whole text; ``start`` is the offset of this part's first
    character, and ``line`` the number of its first line. Where nodes are those of another
    statement with the same words, ``moved`` finds their places in this one.

    >>> SourceText("SELECT\n  price").place(9)
    (2, 3)
    """

    text: str = ""
    start: int = 0
    line: int = 1
    moved: Moved | None = field(default=None, compare=False, repr=False)

    @classmethod
    def slice(cls, text: str, start: int, end: int) -> SourceText:
        """The whole lines of ``text`` that hold the characters ``start`` to ``end``."""
        return Lines(text).slice(start, end)

    def at(self, moved: Moved) -> SourceText:
        """The same text, for nodes whose places are those of another one."""
        return SourceText(self.text, self.start, self.line, moved)

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
        source = self._shown(offset, column) if column <= MAX_CARET else None
        return Problem(message, hint=hint, query=query, line=line, column=column, source=source)

    def _shown(self, offset: int, column: int) -> str:
        """The line of an offset without secrets, up to some letters behind it."""
        start = min(max(offset - self.start, 0), len(self.text)) - column + 1
        letters = max(column + SHOWN_AFTER_CARET, 2 * SHOWN_AFTER_CARET)
        # The whole of it is masked: a secret may begin lines before.
        return printable(masked(self.text)[start : start + letters].partition("\n")[0])

    def __str__(self) -> str:
        return self.text


class Lines:
    r"""The lines of a text, found once for all the statements in it.

    >>> Lines("DROP QUERY a;\nDROP QUERY b").slice(14, 20)
    SourceText(text='DROP QUERY b', start=14, line=2)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        lengths = (len(line) + 1 for line in text.split("\n"))
        self._starts = list(accumulate(lengths, initial=0))

    def slice(self, start: int, end: int) -> SourceText:
        """The whole lines that hold the characters ``start`` to ``end``."""
        line = bisect_right(self._starts, start)
        first = self._starts[line - 1]
        last = self.text.find("\n", end)
        part = self.text[first:] if last < 0 else self.text[first:last]
        return SourceText(part, first, line)


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
    own = offset if text.moved is None else text.moved(offset)
    return text.problem(own, message, hint, query)


def position(node: exp.Expr) -> int | None:
    """The offset of a node's first character, or None where it was not read from a text."""
    offsets = (part.meta_get("start") for part in parts(node))
    return min((offset for offset in offsets if isinstance(offset, int)), default=None)


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
    """A user's text as messages quote it: printable, without secrets, and cut when long.

    >>> shown("x" * 100)
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'
    """
    text = masked(text)
    return printable(text if len(text) <= SHOWN_TEXT else f"{text[:SHOWN_TEXT]}...")
