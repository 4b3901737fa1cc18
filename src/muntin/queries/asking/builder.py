"""Keeps built in Python, and whatever a user hands over as keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from muntin.errors import Problem, QueryError
from muntin.queries.asking.keeps import (
    AnyKeep,
    CreateKeep,
    DropKeep,
    Keep,
    RowKeep,
    check_keep,
    slice_keep,
)
from muntin.queries.builder import QueryBuilder
from muntin.queries.query import Query
from muntin.queries.report import Report
from muntin.queries.source import check_text
from muntin.queries.spec import read_text
from muntin.queries.sql.parser import parse_keeps
from muntin.queries.texts import checked


@dataclass(frozen=True)
class KeepBuilder(QueryBuilder):
    """A keep in the making: the steps of a :class:`QueryBuilder`, and :meth:`cut`.

    >>> recent = keep("recent").from_("trades").window("1 hour", "1 second")
    >>> print(recent.group_by("symbol").agg("max(price)").cut("vol > 1000").keep())
    CREATE KEEP recent AS SELECT symbol, max(price) AS `max(price)` FROM trades \
[RANGE '1 hour' SLIDE '1 second'] GROUP BY symbol CUT (vol > 1000)
    """

    cuts: tuple[str, ...] = ()

    def cut(self, *conditions: str) -> KeepBuilder:
        """Conditions that questions may ask by, beside those on group columns."""
        return replace(self, cuts=self.cuts + checked(conditions))

    def sql(self) -> str:
        """The keep as SQL text, which may still hold problems."""
        text = "CREATE KEEP" + super().sql().removeprefix("CREATE QUERY")
        return f"{text}\nCUT ({', '.join(self.cuts)})" if self.cuts else text

    def keep(self) -> Keep:
        """The keep; problems point into :meth:`sql`."""
        (statement,) = parse_keeps(self.sql())
        assert isinstance(statement, CreateKeep)
        return slice_keep(statement.keep)


def keep(name: str) -> KeepBuilder:
    """Starts a keep under a name of letters, digits and _."""
    return KeepBuilder(check_text(name, "the name of a keep"))


KeepLike: TypeAlias = str | Path | AnyKeep | KeepBuilder | QueryBuilder | Query
KeepsLike: TypeAlias = KeepLike | Sequence[KeepLike]


def keep_statements(spec: KeepsLike) -> list[CreateKeep | DropKeep]:
    """The keeps that text, files, builders or a list of these create and drop."""
    found: list[CreateKeep | DropKeep] = []
    single = isinstance(spec, str | Path | Keep | RowKeep | QueryBuilder | Query)
    parts: list[Any] = [spec] if single or not isinstance(spec, Iterable) else list(spec)
    for part in parts:
        found += _statements(part)
    if not found:
        raise QueryError([Problem("there is no keep", hint="write CREATE KEEP name AS SELECT ...")])
    return found


def keeps(spec: KeepsLike) -> tuple[AnyKeep, ...]:
    """The keeps that text, files, builders or a list of these create."""
    return tuple(one.keep for one in keep_statements(spec) if isinstance(one, CreateKeep))


def _statements(part: Any) -> list[CreateKeep | DropKeep]:
    if isinstance(part, str | Path):
        return parse_keeps(read_text(part))
    if isinstance(part, KeepBuilder):
        part = part.keep()
    elif isinstance(part, QueryBuilder):
        part = part.build()
    if isinstance(part, Query):
        report = Report(part.text, part.name, part.text.start)
        if not check_keep(part, report):
            raise QueryError(report.problems)
        part = Keep(part)
    if isinstance(part, Keep | RowKeep):
        return [CreateKeep(part)]
    hint = "pass CREATE KEEP ... as text, or what muntin.keep makes"
    raise QueryError([Problem(f"{type(part).__name__} is not a keep", hint=hint)])
