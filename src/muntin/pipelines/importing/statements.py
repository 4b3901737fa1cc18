"""What a file of Spark or Flink SQL says, statement by statement, before it is translated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from sqlglot import exp

from muntin.queries import Option, Reference


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
    """A statement that is no part of a pipeline."""

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
