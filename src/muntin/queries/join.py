"""A table that the rows of a stream are joined with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from sqlglot import exp

from muntin.queries.normalize import canonical_text, dotted, quote

JoinKind: TypeAlias = Literal["inner", "left"]


@dataclass(frozen=True, repr=False)
class Join:
    """One table of FROM beside the stream, and the equalities that find its rows.

    Attributes:
        table: The table's name, with dots if it is qualified.
        alias: What the query's columns call it: its alias, or else the last part of its name.
        kind: ``inner`` drops rows without a match, ``left`` keeps them, with NULLs.
        on: Pairs that must be equal: an expression over the stream and the tables before this
            one, and a column of this table. In a pair of one name, as USING makes it, the name on
            its own means the first of the two.
        start: Where the table was named in the query's text.

    >>> from muntin.queries import queries
    >>> (query,) = queries("SELECT max(cp) FROM s [RANGE 5 SLIDE 5] LEFT JOIN close c USING (k)")
    >>> query.joins
    (Join(LEFT JOIN close AS c ON k = c.k),)
    """

    table: str
    alias: str
    kind: JoinKind
    on: tuple[tuple[exp.Expr, exp.Expr], ...]
    start: int | None = field(default=None, compare=False)

    def sql(self) -> str:
        """The join as SQL, which reads back as an equal one."""
        named = self.alias == self.table.rpartition(".")[2]
        table = dotted(self.table) + ("" if named else f" AS {quote(self.alias)}")
        keys = [f"{canonical_text(left)} = {canonical_text(right)}" for left, right in self.on]
        words = "LEFT JOIN" if self.kind == "left" else "JOIN"
        return f"{words} {table} ON {' AND '.join(keys)}"

    def __repr__(self) -> str:
        return f"Join({self.sql()})"
