"""The grammar of CREATE TABLE in Spark and Flink: columns, watermarks, options and the rest."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from muntin.pipelines.importers.statements import ForeignColumn, ForeignTable, Remark, Watermark
from muntin.queries import Option
from muntin.queries.source import shown
from muntin.queries.sql.files import FileGrammar

TABLE_HINT = "write CREATE TABLE name (column TYPE, ...) and its options"
_OPEN, _CLOSE, _COMMA = TokenType.L_PAREN, TokenType.R_PAREN, TokenType.COMMA
_LISTS = ("WITH", "OPTIONS", "TBLPROPERTIES")
_KEYS = ("PRIMARY", "CONSTRAINT", "UNIQUE", "FOREIGN", "PERIOD", "CHECK")
_FILES_HINT = "files are read as they are"
_CLAUSES = {
    "CLUSTERED": _FILES_HINT,
    "CLUSTER": _FILES_HINT,
    "DISTRIBUTED": _FILES_HINT,
}
KEY_HINT = "databases are updated by window and group"


class TableGrammar(FileGrammar):
    """What a parser needs to read other systems' declarations."""

    def _parse_table_body(self, first: Token, name: str) -> ForeignTable:
        columns: list[ForeignColumn] | None = None
        marks: list[Watermark] = []
        remarks: list[Remark] = []
        if self._match(_OPEN):
            columns = []
            while True:
                self._parse_foreign_column(columns, marks, remarks)
                if not self._match(_COMMA):
                    break
            if not self._match(_CLOSE):
                self.refuse("expected , or ) after a column", TABLE_HINT)
        using, options = None, list[Option]()
        while self._curr and not self._match(TokenType.ALIAS, advance=False):
            # PARTITIONED BY is one word to the tokenizer.
            word = self._curr.text.upper().partition(" ")[0]
            self._advance()
            if word in _LISTS:
                options += self._parse_foreign_options(word, remarks)
            elif word == "USING":
                using = self._curr.text
                self._advance()
            elif word in ("LOCATION", "COMMENT"):
                options += [self._path(word)]
            elif word in _CLAUSES:
                remarks.append(self._parse_clause(word))
            elif word == "PARTITIONED":
                columns = self._parse_partitions(columns, remarks)
            else:
                message = f"{shown(word)} after a table has no counterpart"
                self.refuse(message, TABLE_HINT, self._prev)
        select = self._parse_query() if self._match(TokenType.ALIAS) else None
        return ForeignTable(
            name,
            first.start,
            None if columns is None else tuple(columns),
            tuple(marks),
            tuple(option for option in options if option.key),
            using,
            select,
            tuple(remarks),
        )

    def _path(self, word: str) -> Option:
        token = self._curr
        self._advance()
        return Option("path" if word == "LOCATION" else "", token.text, token.start, token.start)

    def _parse_clause(self, word: str) -> Remark:
        start = self._prev.start
        self._match_text_seq("BY")
        while self._curr and not self._match(_OPEN, advance=False):
            self._advance()
        self._skip_parentheses()
        if self._match_text_seq("INTO"):
            self._advance(2)
        return Remark(start, f"{word} BY is left out", _CLAUSES[word], lost=False)

    def _parse_partitions(
        self, columns: list[ForeignColumn] | None, remarks: list[Remark]
    ) -> list[ForeignColumn] | None:
        """Names of columns, or columns with types, which are declared here alone."""
        start, found = self._prev.start, list[ForeignColumn]()
        self._match_text_seq("BY")
        if not self._match(_OPEN):
            self.refuse("expected (", TABLE_HINT)
        while not self._match(_CLOSE):
            typed = self._next.token_type not in (_COMMA, _CLOSE, _OPEN)
            if typed:
                found.append(self._parse_foreign_field(self._curr))
            self._skip_item()
            if not self._match(_COMMA) and not self._match(_CLOSE, advance=False):
                self.refuse("expected , or )", TABLE_HINT)
        hint = "folders named column=value give columns"
        remarks.append(Remark(start, "PARTITIONED BY is left out", hint, lost=False))
        return [*columns, *found] if columns is not None else found or None

    def _parse_foreign_options(self, word: str, remarks: list[Remark]) -> list[Option]:
        opening = self._prev.start
        options = [] if not self._match(_OPEN) else [self._parse_foreign_option()]
        while options and self._match(_COMMA):
            options.append(self._parse_foreign_option())
        if options and not self._match(_CLOSE):
            self.refuse("expected , or ) after an option", TABLE_HINT)
        if word != "TBLPROPERTIES":
            return options
        hint = "it says nothing about what the rows are"
        remarks.append(Remark(opening, "TBLPROPERTIES is left out", hint, False))
        return []

    def _parse_foreign_option(self) -> Option:
        first = self._curr
        key = self._parse_option_key()
        # Spark writes header 'true', Flink 'connector' = 'kafka'.
        self._match(TokenType.EQ)
        at = self._curr.start
        return Option(key, self._parse_option_value(key), first.start, at)

    def _parse_foreign_column(
        self, columns: list[ForeignColumn], marks: list[Watermark], remarks: list[Remark]
    ) -> None:
        token = self._curr
        plain = token.token_type != TokenType.IDENTIFIER
        # PRIMARY KEY is one word to the tokenizer.
        word = token.text.upper().partition(" ")[0] if plain else ""
        if word == "WATERMARK" and self._next.token_type == TokenType.FOR:
            marks.append(self._parse_watermark(token))
        elif word in _KEYS and not self._is_type_next():
            self._skip_item()
            message = f"{token.text.upper()} is left out"
            remarks.append(Remark(token.start, message, KEY_HINT, lost=False))
        else:
            columns.append(self._parse_foreign_field(token))

    def _is_type_next(self) -> bool:
        return self._next.token_type in self.TYPE_TOKENS

    def _parse_watermark(self, first: Token) -> Watermark:
        self._advance(2)
        column: Any = self._parse_id_var()
        if column is None or not self._match(TokenType.ALIAS):
            self.refuse("expected a column and AS", "WATERMARK FOR ts AS ts - INTERVAL '5' SECOND")
        expression = self._parse_disjunction()
        if expression is None:
            self.refuse("expected an expression", "WATERMARK FOR ts AS ts - INTERVAL '5' SECOND")
        return Watermark(column.name, expression, first.start)

    def _parse_foreign_field(self, token: Token) -> ForeignColumn:
        name: Any = self._parse_id_var(any_token=True)
        if name is None:
            self.refuse("expected the name of a column", TABLE_HINT)
        if self._match(TokenType.ALIAS):
            computed = self._parse_disjunction()
            self._skip_item()
            return ForeignColumn(name.name, token.start, computed=computed)
        at, index = self._curr, self._index
        kind: Any = None
        if at.token_type not in (TokenType.ROW, TokenType.VAR):
            kind = self._parse_types(allow_identifiers=False)
        if not isinstance(kind, exp.DataType):
            self._retreat(index)
            self._skip_type()
        written = self.sql[at.start : self._prev.end + 1]
        metadata = "METADATA" in self._skip_item()
        known = kind if isinstance(kind, exp.DataType) else None
        return ForeignColumn(name.name, token.start, known, written, metadata=metadata)

    def _skip_type(self) -> None:
        """Passes over a type that is not known: a word, and what stands in <> or ()."""
        self._advance()
        depth = 0
        while self._curr:
            text = self._curr.text
            opens = text.count("<") + (self._curr.token_type == _OPEN)
            closes = text.count(">") + (self._curr.token_type == _CLOSE)
            if depth + opens - closes < 0 or (not depth and not opens):
                return
            depth += opens - closes
            self._advance()

    def _skip_item(self) -> set[str]:
        """Passes over the rest of an item, up to the comma or parenthesis that ends it."""
        words, depth = set[str](), 0
        while self._curr:
            kind = self._curr.token_type
            if not depth and kind in (_COMMA, _CLOSE):
                break
            depth += (kind == _OPEN) - (kind == _CLOSE)
            words.add(self._curr.text.upper())
            self._advance()
        return words

    def _skip_parentheses(self) -> None:
        if not self._match(_OPEN):
            self.refuse("expected (", TABLE_HINT)
        while self._curr and not self._match(_CLOSE, advance=False):
            self._skip_item()
            self._match(_COMMA)
        if not self._match(_CLOSE):
            self.refuse("expected )", TABLE_HINT)
