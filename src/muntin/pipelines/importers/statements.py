"""What a file of Spark or Flink SQL says, statement by statement, before it is translated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

from sqlglot import exp

from muntin.errors import MuntinError, Problem
from muntin.expressions.binding.grammar import named_type
from muntin.expressions.types import name_of
from muntin.queries import Option, Reference
from muntin.queries.source import Lines


@dataclass(frozen=True)
class ForeignColumn:
    """A declared column: of a type, or ``computed`` from others.

    ``kind`` is None where the type has no counterpart in the grammar; ``written`` is its text.
    """

    name: str
    start: int
    kind: exp.DataType | None = None
    written: str = ""
    computed: exp.Expr | None = None
    metadata: bool = False


@dataclass(frozen=True)
class Watermark:
    """WATERMARK FOR ``column`` AS ``expression``."""

    column: str
    expression: exp.Expr
    start: int


@dataclass(frozen=True)
class Remark:
    """Something at a place of a statement that has no counterpart in Muntin.

    It is ``lost`` if answers may differ without it.
    """

    start: int
    message: str
    hint: str
    lost: bool


@dataclass(frozen=True)
class ForeignTable:
    """CREATE TABLE: what comes in, what is joined, or where results go.

    ``select`` is the query of CREATE TABLE ... AS.
    """

    name: str
    start: int
    columns: tuple[ForeignColumn, ...] | None
    watermarks: tuple[Watermark, ...]
    options: tuple[Option, ...]
    using: str | None = None
    select: exp.Expr | None = None
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True)
class ForeignQuery:
    """A SELECT: a view, one that is inserted into a table, or one on its own.

    ``columns`` are the columns of the table that INSERT INTO names, if it names some.
    """

    select: exp.Expr
    start: int
    view: str | None = None
    sink: Reference | None = None
    columns: tuple[str, ...] | None = None
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True)
class Skipped:
    """A statement that is not part of a pipeline."""

    remark: Remark


@dataclass(frozen=True)
class SessionZone:
    """SET of the session's time zone, which Muntin's streams have as an option."""

    name: str
    start: int


ForeignStatement: TypeAlias = ForeignTable | ForeignQuery | SessionZone | Skipped


class ForeignNode(exp.Expression):
    """A statement as the grammar hands it over: ``this`` is a ForeignStatement."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


_KIND = exp.DataType.Type
_TEXTS = (_KIND.VARCHAR, _KIND.NVARCHAR, _KIND.CHAR, _KIND.NCHAR, _KIND.TEXT)
_BYTES = (_KIND.VARBINARY, _KIND.BINARY)
_TIMES = (_KIND.TIMESTAMP, _KIND.TIMESTAMPTZ, _KIND.TIMESTAMPLTZ, _KIND.TIMESTAMPNTZ)
# Flink's TIMESTAMP has no zone, Spark's has one.
_BARE_TIMES = (_KIND.TIMESTAMP, _KIND.TIMESTAMPTZ)
_FULL_DIGITS = 6


def column_type(column: ForeignColumn, flink: bool) -> str | None:
    """The name of a column's type, or None if there is none for it.

    >>> column_type(ForeignColumn("a", 0, exp.DataType.build("VARCHAR(10)")), flink=True)
    'STRING'
    >>> column_type(ForeignColumn("a", 0, exp.DataType.build("TIMESTAMP(3)")), flink=True)
    'TIMESTAMP_NTZ'
    """
    if column.kind is None:
        return "BINARY" if column.written.upper() == "BYTES" else None
    try:
        return name_of(named_type(_plain(column.kind, flink)))
    except (MuntinError, ValueError):
        return None


def _plain(node: exp.DataType, flink: bool) -> exp.DataType:
    """A type without the sizes that Muntin does not keep."""
    if node.this in _TEXTS:
        return exp.DataType(this=_KIND.TEXT)
    if node.this in _BYTES:
        return exp.DataType(this=_KIND.BINARY)
    if node.this in _TIMES:
        bare = flink and node.this in _BARE_TIMES
        return exp.DataType(this=_KIND.TIMESTAMPNTZ if bare else node.this)
    return node


def spell_casts(node: exp.Expr, flink: bool) -> None:
    """Give the types of casts the names that expressions know, where they mean the same.

    A cast that would cut something off, such as to VARCHAR(10), is left as it is.
    """
    for cast in list(node.find_all(exp.Cast, exp.TryCast)):
        target = cast.args["to"]
        sizes = [size.name for size in target.expressions]
        wide = not sizes or (target.this in _TIMES and sizes[0] == str(_FULL_DIGITS))
        if isinstance(target, exp.DataType) and wide:
            cast.set("to", _plain(target, flink))


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
