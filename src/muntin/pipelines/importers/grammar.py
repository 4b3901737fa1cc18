"""The grammar of other systems' files: CREATE TABLE, CREATE VIEW, INSERT and SELECT."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from muntin.errors import DataError
from muntin.expressions.zone_names import zone
from muntin.pipelines.importers.statements import (
    ForeignNode,
    ForeignQuery,
    ForeignStatement,
    ForeignTable,
    Remark,
    SessionZone,
    Skipped,
)
from muntin.pipelines.importers.tables import TableGrammar
from muntin.queries import Reference
from muntin.queries.source import shown
from muntin.queries.sql.dialect import Muntin
from muntin.queries.sql.joins import STREAM_JOINS

START_HINT = "CREATE TABLE, CREATE VIEW, INSERT INTO and SELECT are carried over"
FIXED_HINT = "use a window of a fixed length: HOP, TUMBLE or window()"
INSERT_HINT = "write INSERT INTO name SELECT ..."
_MODIFIERS = ("TEMPORARY", "TEMP", "GLOBAL", "EXTERNAL", "MATERIALIZED")
_OPEN, _CLOSE = TokenType.L_PAREN, TokenType.R_PAREN
# Words that begin a statement which sets up a session, and whether answers may depend on it.
_SESSION = {
    **dict.fromkeys(("SET", "RESET", "ADD", "LOAD", "ALTER", "UPDATE", "DELETE", "MERGE"), True),
    **dict.fromkeys(("USE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "DROP", "CACHE"), False),
    **dict.fromkeys(("UNCACHE", "REFRESH", "ANALYZE", "BEGIN", "END", "REMOVE", "HELP"), False),
}
_SET_HINT = "what changes answers belongs into the options of a stream; see docs/sql-files.md"
_IDLE_HINT = "a Muntin file needs nothing of the kind"
_STATEMENT_SET = ("EXECUTE", "STATEMENT", "SET", "BEGIN")
# How SET names the session's time zone, written without spaces.
_ZONE_SETTINGS = ("spark.sql.session.timezone=", "table.local-time-zone=", "timezone")


class FlinkTokens(Muntin):
    """Flink's words: a backslash is a letter like any other, and strings have single quotes."""

    class Tokenizer(Muntin.Tokenizer):
        """Tokens with a quote written twice inside a string."""

        QUOTES: ClassVar[list[str | tuple[str, str]]] = ["'"]
        STRING_ESCAPES: ClassVar[list[str]] = ["'"]
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`", '"']


class ForeignGrammar(TableGrammar):
    """Reads the statements of a file of Spark or Flink SQL, one at a time."""

    STATEMENT_HINT: ClassVar[str] = START_HINT
    # What has no window in Spark and Flink may still be a stream: its times say so, later.
    TABLE_JOINS: ClassVar[Mapping[tuple[str, ...], str]] = STREAM_JOINS

    def statement(self, tokens: list[Token], text: str) -> exp.Expr:
        """Reads the tokens of one statement, which holds no semicolon."""
        self._start(tokens, text)
        self._match_text_seq(*_STATEMENT_SET)
        self._refuse_sessions(tokens)
        return self._finish(ForeignNode(this=self._parse_foreign()))

    def _refuse_sessions(self, tokens: list[Token]) -> None:
        """SESSION is a word of its own to the tokenizer, which no expression may start with."""
        for token, following in pairwise(tokens):
            plain = token.token_type not in (TokenType.IDENTIFIER, TokenType.STRING)
            if plain and token.text.upper() == "SESSION" and following.token_type == _OPEN:
                self.refuse("SESSION windows have no counterpart", FIXED_HINT, token)

    def _parse_foreign(self) -> ForeignStatement:
        first = self._curr
        if self._match(TokenType.CREATE):
            return self._parse_foreign_create(first)
        if self._match(TokenType.INSERT):
            return self._parse_foreign_insert(first)
        word = first.text.upper()
        if word in _SESSION:
            zone = _session_zone(self._tokens[self._index + 1 :]) if word == "SET" else None
            self._advance(len(self._tokens) - self._index)
            if zone is not None:
                return SessionZone(zone, first.start)
            lost = _SESSION[word]
            said = "has no counterpart" if lost else "is left out"
            hint = _SET_HINT if lost else _IDLE_HINT
            return Skipped(Remark(first.start, f"{word} {said}", hint, lost))
        return ForeignQuery(self._parse_query(), first.start)

    def _parse_foreign_create(self, first: Token) -> ForeignStatement:
        self._match_pair(TokenType.OR, TokenType.REPLACE)
        while self._match_texts(_MODIFIERS):
            pass
        kind = self._curr.text.upper()
        self._advance()
        if kind == "TABLE":
            return self._parse_foreign_table(first)
        if kind == "VIEW":
            return self._parse_foreign_view(first)
        message = f"CREATE {shown(kind)} has no counterpart"
        return self.refuse(message, START_HINT, self._prev)

    def _parse_foreign_table(self, first: Token) -> ForeignTable:
        self._match_text_seq("IF", "NOT", "EXISTS")
        name = self._parse_foreign_name("a table")
        return self._parse_table_body(first, name.name)

    def _parse_foreign_view(self, first: Token) -> ForeignQuery:
        self._match_text_seq("IF", "NOT", "EXISTS")
        name = self._parse_foreign_name("a view")
        if self._match(_OPEN, advance=False):
            self.refuse("a list of columns after the view", "name them in SELECT, with AS")
        if self._match_text_seq("COMMENT"):
            self._advance()
        if not self._match(TokenType.ALIAS):
            self.refuse("expected AS", "write CREATE VIEW name AS SELECT ...")
        return ForeignQuery(self._parse_query(), first.start, view=name.name)

    def _parse_foreign_insert(self, first: Token) -> ForeignQuery:
        overwrite = self._match(TokenType.OVERWRITE)
        if not overwrite and not self._match(TokenType.INTO):
            self.refuse("expected INTO after INSERT", INSERT_HINT)
        self._match(TokenType.TABLE)
        name = self._parse_foreign_name("a table")
        remarks: list[Remark] = []
        if overwrite:
            hint = "results are added to those of windows before"
            remarks.append(Remark(first.start, "OVERWRITE has no counterpart", hint, True))
        start = self._curr.start
        if self._match_text_seq("PARTITION"):
            self._skip_parentheses()
            hint = "results have the columns of the query"
            remarks.append(Remark(start, "PARTITION after INSERT INTO is left out", hint, True))
        columns = self._parse_inserted_columns()
        if self._match_text_seq("VALUES"):
            self.refuse("rows that are written out have no counterpart", INSERT_HINT, self._prev)
        query = self._parse_query()
        return ForeignQuery(query, first.start, None, name, columns, tuple(remarks))

    def _parse_inserted_columns(self) -> tuple[str, ...] | None:
        if self._curr.token_type != _OPEN or self._next.token_type == TokenType.SELECT:
            return None
        names = self._parse_wrapped_csv(lambda: self._parse_id_var(any_token=False))
        return tuple(name.name for name in names)

    def _parse_moment(self) -> exp.Expr | None:
        """Reads FOR SYSTEM_TIME AS OF, behind which a table is looked up row by row."""
        return self._parse_disjunction()

    def _parse_foreign_name(self, what: str) -> Reference:
        """Reads a name of several parts; the last of them is what Muntin calls it."""
        start = self._curr.start
        name: Any = self._parse_id_var(any_token=False)
        while name is not None and self._match(TokenType.DOT):
            name = self._parse_id_var(any_token=True)
        if name is None:
            self.refuse(f"expected the name of {what}", START_HINT)
        return Reference(name.name, start)


def _session_zone(tokens: list[Token]) -> str | None:
    """The time zone that a SET names, if it is one that Muntin knows."""
    said = "".join(token.text for token in tokens)
    for setting in _ZONE_SETTINGS:
        if said.lower().startswith(setting):
            try:
                return zone(said[len(setting) :]).name
            except DataError:
                return None
    return None
