"""The grammar of SQL files: streams, tables and sinks beside queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from muntin.errors import did_you_mean
from muntin.expressions.types import NAMES
from muntin.queries.secrets import is_secret
from muntin.queries.source import shown
from muntin.queries.sql.clauses import (
    ColumnNode,
    CreateSinkNode,
    CreateSourceNode,
    InsertNode,
    OptionNode,
)
from muntin.queries.sql.keeps import KeepGrammar

EXAMPLES = {
    "stream": "CREATE STREAM trades (ts TIMESTAMP, vol BIGINT) WITH (format = 'csv', path = 'in')",
    "table": "CREATE TABLE close (symbol STRING, cp DOUBLE) WITH (format = 'csv', path = 'c.csv')",
    "sink": "CREATE SINK results WITH (format = 'parquet', path = 'out')",
}
INSERT_HINT = "write INSERT INTO sink SELECT ..."
OPTION_HINT = "write WITH (format = 'parquet', path = 'data')"
VALUE_HINT = "write a string such as 'csv', a number, TRUE or FALSE"
FILE_HINT = (
    "a statement of a file starts with SELECT, INSERT INTO, DROP QUERY, DROP KEEP,"
    " or CREATE and QUERY, STREAM, TABLE, SINK or KEEP"
)
# What people bring along from other systems' declarations of columns.
_CONSTRAINTS = {
    "WATERMARK": "write WITH (time = 'ts', lateness = '5 seconds') instead",
    "PRIMARY": "leave it out: rows of a stream have no key",
    "CONSTRAINT": "leave it out: rows are taken as they come",
    "PERIOD": "leave it out, and name the time column with WITH (time = 'ts')",
}
TYPE_HINT = "write a type after its name, such as DOUBLE, BIGINT, STRING or TIMESTAMP"
TYPE_NAMES = (*NAMES.values(), "DECIMAL")
MAX_ITEMS = 10_000
MAX_OPTIONS = 200
_NO_NAME = {TokenType.WITH, TokenType.FOR, TokenType.SENTINEL, TokenType.STRING, TokenType.NUMBER}
_SIGNS = {TokenType.DASH, TokenType.PLUS}
_TRUTHS = {TokenType.TRUE, TokenType.FALSE}


class FileGrammar(KeepGrammar):
    """Reads the statements of a SQL file, one at a time."""

    STATEMENT_HINT: ClassVar[str] = FILE_HINT
    CREATE_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        **KeepGrammar.CREATE_PARSERS,
        "STREAM": lambda self, replace: self._parse_create_source("stream", replace),
        "TABLE": lambda self, replace: self._parse_create_source("table", replace),
        "SINK": lambda self, replace: self._parse_create_sink(replace),
    }

    def _parse_other_statement(self) -> exp.Expr:
        if not self._match(TokenType.INSERT):
            return super()._parse_other_statement()
        if not self._match(TokenType.INTO):
            self.refuse("expected INTO after INSERT", INSERT_HINT)
        name = self._parse_declared_name("a sink", INSERT_HINT)
        if self._curr.token_type == TokenType.L_PAREN and self._next.text.upper() != "SELECT":
            hint = f"{INSERT_HINT}: the columns are those of the query"
            self.refuse("a list of columns after the sink", hint)
        return InsertNode(this=name, expression=self._parse_query())

    def _parse_create_source(self, kind: str, replace: bool) -> exp.Expr:
        example = f"write {EXAMPLES[kind]}"
        self._refuse_replace(kind, replace)
        name = self._parse_declared_name(f"a {kind}", example)
        columns = self._parse_columns(example) if self._match(TokenType.L_PAREN) else None
        options = self._parse_options(kind)
        return CreateSourceNode(this=name, kind=kind, columns=columns, options=options)

    def _parse_create_sink(self, replace: bool) -> exp.Expr:
        self._refuse_replace("sink", replace)
        name = self._parse_declared_name("a sink", f"write {EXAMPLES['sink']}")
        queries = None
        if self._match(TokenType.FOR):
            hint = "write FOR and the names of queries: CREATE SINK results FOR a, b WITH (...)"
            queries = self._parse_list(lambda: self._parse_declared_name("a query", hint))
        return CreateSinkNode(this=name, queries=queries, options=self._parse_options("sink"))

    def _refuse_replace(self, kind: str, replace: bool) -> None:
        if replace:
            hint = f"leave out OR REPLACE: a file has each {kind} once"
            self.refuse(f"only queries are replaced, not a {kind}", hint, self._prev)
        if self._curr.text.upper() == "IF" and self._next.text.upper() == "NOT":
            self.refuse("IF NOT EXISTS is not needed", f"leave it out: a file has each {kind} once")

    def _parse_list(self, read: Callable[[], exp.Expr], most: int = MAX_ITEMS) -> list[exp.Expr]:
        items = [read()]
        while self._match(TokenType.COMMA):
            if len(items) == most:
                self.refuse(f"a list of more than {most:,}", "shorten the list")
            items.append(read())
        return items

    def _parse_declared_name(self, what: str, hint: str) -> exp.Expr:
        """Reads one name; whether it is a sound one is for later, with all else that is wrong."""
        token = self._curr
        if not _is_word(token) or token.token_type in _NO_NAME:
            self.refuse(f"expected the name of {what}", hint)
        self._advance()
        if self._match(TokenType.DOT, advance=False) or self._match(TokenType.DASH, advance=False):
            self.refuse(
                "the name has ASCII letters, digits and _ only", "write one such as trades_2"
            )
        return exp.Identifier(this=token.text, quoted=True).update_positions(token)

    def _parse_columns(self, example: str) -> list[exp.Expr]:
        columns = self._parse_list(lambda: self._parse_declared_column(example))
        if not self._match(TokenType.R_PAREN):
            self.refuse("expected , or ) after a column", example)
        return columns

    def _parse_declared_column(self, example: str) -> exp.Expr:
        token = self._curr
        plain = token.token_type != TokenType.IDENTIFIER
        if plain and token.text.upper() in _CONSTRAINTS and _is_word(self._next):
            hint = _CONSTRAINTS[token.text.upper()]
            self.refuse(f"{token.text.upper()} is not declared among the columns", hint)
        if not _is_word(token):
            self.refuse("expected the name of a column", example)
        self._advance()
        kind_token = self._curr
        kind: Any = self._parse_types(allow_identifiers=False)
        if not isinstance(kind, exp.DataType):
            close = did_you_mean(self._curr.text, TYPE_NAMES) if _is_word(self._curr) else None
            hint = close or TYPE_HINT
            self.refuse(f"expected the type of column {shown(token.text)}", hint)
        written = self.sql[kind_token.start : self._prev.end + 1]
        if self._curr.token_type == TokenType.NOT and self._next.token_type == TokenType.NULL:
            self.refuse("NOT NULL is not checked", "leave it out: columns may hold NULL")
        name = exp.Identifier(this=token.text, quoted=True).update_positions(token)
        return ColumnNode(this=name, kind=kind.update_positions(kind_token), written=written)

    def _parse_options(self, kind: str) -> list[exp.Expr]:
        if not self._match(TokenType.WITH):
            self.refuse("expected WITH and its options", f"write {EXAMPLES[kind]}")
        if not self._match(TokenType.L_PAREN):
            self.refuse("expected ( after WITH", OPTION_HINT)
        options = self._parse_list(self._parse_option, MAX_OPTIONS)
        if not self._match(TokenType.R_PAREN):
            self.refuse("expected , or ) after an option", OPTION_HINT)
        return options

    def _parse_option(self) -> exp.Expr:
        first = self._curr
        key = self._parse_option_key()
        if not self._match(TokenType.EQ):
            self.refuse(f"expected = after {shown(key)}", OPTION_HINT)
        start = self._curr
        option = OptionNode(this=key, value=self._parse_option_value(key), at=start.start)
        return option.update_positions(first)

    def _parse_option_key(self) -> str:
        words: list[str] = []
        while True:
            if not _is_word(self._curr) and self._curr.token_type != TokenType.STRING:
                self.refuse("expected the name of an option", OPTION_HINT)
            words.append(self._curr.text)
            self._advance()
            if not self._match(TokenType.DOT):
                return ".".join(words)

    def _parse_option_value(self, key: str) -> str:
        token, sign = self._curr, ""
        if token.token_type == TokenType.STRING:
            return self._parse_string_value()
        if self._match(TokenType.PARAMETER):
            return self._parse_variable()
        if token.token_type in _SIGNS and self._next.token_type == TokenType.NUMBER:
            sign = "-" if token.token_type == TokenType.DASH else ""
            self._advance()
        if self._curr.token_type == TokenType.NUMBER or token.token_type in _TRUTHS:
            self._advance()
            return sign + self._prev.text.lower()
        told = _is_word(token) and not is_secret(key)
        hint = f"write '{shown(token.text)}', in quotes" if told else VALUE_HINT
        return self.refuse("expected the value of an option", hint)

    def _parse_string_value(self) -> str:
        text = self._curr.text
        self._advance()
        while self._curr.token_type == TokenType.STRING:
            # Two strings without a gap are one, with a quote written twice inside.
            if self._curr.start != self._prev.end + 1:
                self.refuse("a second string", "write one string, and a comma before the next one")
            text += f"'{self._curr.text}"
            self._advance()
        return text

    def _parse_variable(self) -> str:
        if not self._match(TokenType.L_BRACE) or not _is_word(self._curr):
            self.refuse("expected {name} after $", "write ${name} for a value that --set gives")
        name = self._curr.text
        self._advance()
        if not self._match(TokenType.R_BRACE):
            self.refuse("expected } after the name", "write ${name}")
        return f"${{{name}}}"


def _is_word(token: Token) -> bool:
    """Whether a token is a name, quoted or not, or a word of SQL that may stand for one."""
    if token.token_type == TokenType.IDENTIFIER:
        return True
    quoted = token.token_type in (TokenType.STRING, TokenType.NUMBER, TokenType.SENTINEL)
    return not quoted and token.text.replace("_", "a").isalnum()
