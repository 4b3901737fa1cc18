"""The grammar of joins with tables and windowed streams: ON, USING, and commas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from muntin.queries.source import shown

if TYPE_CHECKING:
    from sqlglot.parsers.spark import SparkParser as _Base
else:
    _Base = object

MAX_JOINS = 16
MAX_PARTS = 3
JOIN_HINT = "write JOIN close ON trades.symbol = close.symbol"
NAME_HINT = f"{JOIN_HINT}: join tables by their names"
USING_HINT = "write USING (symbol): names of columns that both sides have"
_JOINS = {
    ("JOIN",): "INNER",
    ("INNER", "JOIN"): "INNER",
    ("LEFT", "JOIN"): "LEFT",
    ("LEFT", "OUTER", "JOIN"): "LEFT",
}
# Streams with windows of their own join in more ways than tables.
STREAM_JOINS = {
    **_JOINS,
    ("RIGHT", "JOIN"): "RIGHT",
    ("RIGHT", "OUTER", "JOIN"): "RIGHT",
    ("FULL", "JOIN"): "FULL",
    ("FULL", "OUTER", "JOIN"): "FULL",
    ("SEMI", "JOIN"): "SEMI",
    ("LEFT", "SEMI", "JOIN"): "SEMI",
    ("ANTI", "JOIN"): "ANTI",
    ("LEFT", "ANTI", "JOIN"): "ANTI",
}
UNMATCHED_HINT = "write LEFT JOIN payments [RANGE '1 hour'] p ON o.id = p.order_id EMIT UNMATCHED"
REFUSED_JOINS = {
    "CROSS": "join on a column that both have",
    "FULL": "use LEFT JOIN: rows of a table alone belong to no window",
    "RIGHT": "use LEFT JOIN: rows of a table alone belong to no window",
    "NATURAL": "name the columns: JOIN close USING (symbol)",
    "SEMI": "use JOIN with a table that has each key once",
    "ANTI": "use LEFT JOIN, and WHERE close.symbol IS NULL",
}
# The same for a stream with a window of its own.
REFUSED_STREAM_JOINS = {
    "SEMI": "put the stream whose rows are wanted first, and write SEMI JOIN",
    "ANTI": "put the stream whose rows are wanted first, and write ANTI JOIN",
}


class JoinGrammar(_Base):
    """What a parser of SQL needs to read joins; mixed into the grammar.

    sqlglot's own parser tries all nestings of joins without ON in turn. Here every join has its
    condition right behind it, so that reading takes one pass.
    """

    # How what has no window may be joined.
    TABLE_JOINS: ClassVar[Mapping[tuple[str, ...], str]] = _JOINS

    if TYPE_CHECKING:

        def refuse(
            self, reason: str, hint: str | None = None, token: Token | None = None
        ) -> NoReturn:
            """Refuses the text at a token."""

        def _parse_window_table(self) -> exp.Expr | None:
            """Reads HOP(...) or TUMBLE(...)."""

        def _set_window(self, table: exp.Table) -> None:
            """Reads a window in brackets."""

    def _parse_joins(self, *args: Any, **kwargs: Any) -> Iterator[exp.Join]:
        for _ in range(MAX_JOINS):
            join = self._parse_join(*args, **kwargs)
            if join is None:
                return
            yield join
        token = self._curr
        if self._parse_join(*args, **kwargs) is not None:
            hint = "join the tables with each other beforehand"
            self.refuse(f"more than {MAX_JOINS} joins", hint, token)

    def _parse_join(self, *_args: Any, **_kwargs: Any) -> exp.Join | None:
        """Reads one table with its condition; None if no join is next."""
        if self._match(TokenType.COMMA):
            return exp.Join(this=self._parse_joined_table())
        opening = self._curr
        words = self._parse_join_words()
        if words is None:
            return None
        table = self._parse_joined_table()
        if words not in self.TABLE_JOINS and table.args.get("window") is None:
            self._refuse_join(words, opening)
        side = STREAM_JOINS[words]
        if self._match(TokenType.ON):
            condition = self._parse_disjunction()
            if condition is None:
                self.refuse("expected a condition after ON", JOIN_HINT)
            join = exp.Join(this=table, side=side, on=condition)
        elif self._match(TokenType.USING):
            join = exp.Join(this=table, side=side, using=self._parse_using())
        else:
            self.refuse(f"expected ON or USING after {shown(table.alias_or_name)}", JOIN_HINT)
        join.set("whole", self._parse_unmatched(side, table))
        return join

    def _parse_unmatched(self, side: str, table: exp.Table) -> bool:
        """Reads EMIT UNMATCHED behind an outer join."""
        opening = self._curr
        if not self._match_text_seq("EMIT", "UNMATCHED"):
            return False
        if side not in ("LEFT", "RIGHT", "FULL") or table.args.get("window") is None:
            self.refuse("EMIT UNMATCHED belongs to outer joins", UNMATCHED_HINT, opening)
        return True

    def _parse_join_words(self) -> tuple[str, ...] | None:
        """Reads up to JOIN, and gives the words; None if these are not words of a join."""
        opening, index = self._curr, self._index
        method, side, kind = self._parse_join_parts()
        words = [part.text.upper() for part in (method, side, kind) if part is not None]
        straight = words == ["STRAIGHT_JOIN"]
        if not straight and not self._match_set((TokenType.JOIN, TokenType.APPLY)):
            self._retreat(index)
            return None
        if not straight:
            words.append(self._prev.text.upper())
        if tuple(words) not in STREAM_JOINS:
            hinted = REFUSED_STREAM_JOINS.keys() & words
            if hinted and self._parse_joined_table().args.get("window") is not None:
                message = f"{' '.join(words)} is not supported"
                self.refuse(message, REFUSED_STREAM_JOINS[hinted.pop()], opening)
            self._refuse_join(tuple(words), opening)
        return tuple(words)

    def _refuse_join(self, words: tuple[str, ...], opening: Token) -> NoReturn:
        hints = [REFUSED_JOINS[word] for word in words if word in REFUSED_JOINS]
        hint = hints[-1] if hints else JOIN_HINT
        self.refuse(f"{' '.join(words)} is not supported", hint, opening)

    def _parse_joined_table(self) -> exp.Table:
        """Reads the name of a table or a windowed stream, and its alias."""
        call = self._parse_window_table()
        if isinstance(call, exp.Table):
            return call
        parts = [self._parse_name("a table", NAME_HINT)]
        while self._match(TokenType.DOT):
            parts.append(self._parse_name("a table", NAME_HINT))
        if len(parts) > MAX_PARTS:
            self.refuse(f"a table's name has more than {MAX_PARTS} parts", NAME_HINT)
        if self._match(TokenType.L_PAREN, advance=False):
            self.refuse("only the name of a table can be joined", NAME_HINT)
        table = exp.Table(**dict(zip(("this", "db", "catalog"), reversed(parts), strict=False)))
        self._parse_own_window(table)
        if self._match_text_seq("FOR", "SYSTEM_TIME", "AS", "OF"):
            table.set("version", self._parse_moment())
        alias = self._parse_table_alias()
        if alias is not None:
            if alias.args.get("columns"):
                self.refuse("a list of column names after the table", NAME_HINT, self._prev)
            table.set("alias", alias)
        self._parse_own_window(table)
        return table

    def _parse_moment(self) -> exp.Expr | None:
        """Reads what a table is joined as of."""
        message = "FOR SYSTEM_TIME AS OF is not supported"
        self.refuse(message, "leave it out: a table is joined as it was last read", self._prev)

    def _parse_using(self) -> list[exp.Expr]:
        if not self._match(TokenType.L_PAREN):
            self.refuse("expected ( after USING", USING_HINT)
        names = [self._parse_name("a column", USING_HINT)]
        while self._match(TokenType.COMMA):
            names.append(self._parse_name("a column", USING_HINT))
        if not self._match(TokenType.R_PAREN):
            self.refuse("expected )", USING_HINT)
        return names

    def _parse_name(self, what: str, hint: str) -> exp.Expr:
        name = self._parse_id_var(any_token=False)
        if name is None:
            self.refuse(f"expected the name of {what}", hint)
        return name

    def _parse_own_window(self, table: exp.Table) -> None:
        """Reads the window of a stream that is joined; a table has none."""
        if self._match(TokenType.L_BRACKET, advance=False):
            self._set_window(table)
