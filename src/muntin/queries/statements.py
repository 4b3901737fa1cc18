"""The statements that SQL text holds, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from muntin.errors import Problem
from muntin.queries.declarations import CreateSink, CreateSource, Reference
from muntin.queries.query import Query


@dataclass(frozen=True)
class CreateQuery:
    """CREATE [OR REPLACE] QUERY, a SELECT on its own, or INSERT INTO a sink.

    ``start`` is the offset of the statement, ``from_start`` that of the stream's name.
    """

    query: Query
    replace: bool = False
    sink: Reference | None = None
    start: int = field(default=0, compare=False, repr=False)
    from_start: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True)
class DropQuery:
    """DROP QUERY."""

    name: str
    start: int = field(default=0, compare=False, repr=False)


Statement: TypeAlias = CreateQuery | DropQuery
FileStatement: TypeAlias = Statement | CreateSource | CreateSink


@dataclass(frozen=True)
class ParsedFile:
    """The statements of a SQL file that could be read, and all that is wrong with the others.

    ``names`` holds what every CREATE names, be it readable or not: by QUERY, STREAM, TABLE and
    SINK, then by the name in lower case.
    """

    statements: tuple[FileStatement, ...]
    problems: tuple[Problem, ...]
    names: dict[str, dict[str, str]]
