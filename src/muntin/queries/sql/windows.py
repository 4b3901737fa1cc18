"""The grammar of windows: brackets after a stream, and the table functions HOP and TUMBLE."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from muntin.queries.source import shown
from muntin.queries.sql.clauses import MAX_DIGITS, Extent, WindowClause

if TYPE_CHECKING:
    from sqlglot.parsers.spark import SparkParser as _Base
else:
    _Base = object

BRACKET_HINT = "write [RANGE '12 minutes' SLIDE '5 minutes'] or [ROWS 100 SLIDE 10]"
CALL_HINTS = {
    "HOP": "write HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '12' MINUTE):"
    " first the slide, then the size",
    "TUMBLE": "write TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '5' MINUTE)",
}
UNKNOWN_CALLS = {
    "CUMULATE": "windows that grow step by step are not available: use HOP or TUMBLE",
    "SESSION": "windows by gaps of activity are not available: use HOP or TUMBLE",
}
_ARGUMENTS = {
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
}
_CLAUSES = ("SLIDE", "OFFSET", "WATTR", "INTERNAL")
# Words of a question's window.
ASKING = ("AS", "ALIGNED", "WITHIN")
ASK_HINT = "ask it: stream.ask(\"SELECT ... FROM s [RANGE '7 minutes' AS OF WATERMARK]\")"
STREAMED = ("ISTREAM", "DSTREAM", "RSTREAM", "WSTREAM")
STREAMED_HINT = "write Istream(SELECT ...), or SELECT Istream(a, b) FROM ..."
WSTREAM_HINT = "write Wstream(SELECT ...)[RANGE '5 minutes']: how long its results live"
_ROW_WORDS = {"ROW", "ROWS", "TUPLE", "TUPLES"}
_QUOTED = {TokenType.STRING, TokenType.IDENTIFIER}
# What the words of such numbers leave out: 0x10 is not 10.
_RADIX = {TokenType.HEX_STRING: "0x", TokenType.BIT_STRING: "0b"}


class WindowGrammar(_Base):
    """What a parser of SQL needs to read windows in FROM; mixed into the grammar."""

    _END_OF_EXTENT: ClassVar[set[TokenType]] = {
        TokenType.COMMA,
        TokenType.R_BRACKET,
        TokenType.R_PAREN,
        TokenType.SENTINEL,
    }

    if TYPE_CHECKING:

        def refuse(
            self, reason: str, hint: str | None = None, token: Token | None = None
        ) -> NoReturn:
            """Refuses the text at a token."""

    def _parse_bracket_window(self) -> WindowClause:
        """Reads [RANGE r SLIDE s OFFSET o WATTR column INTERNAL], [ROWS n SLIDE m] or [NOW].

        WATTR may also come first, as the papers write it.
        """
        opening = self._curr
        self._advance()
        parts: dict[str, Any] = {}
        if self._match_texts(("WATTR",)):
            parts["time"] = self._parse_time_column()
            self._match(TokenType.COMMA)
        if not self._match_texts(("RANGE", "ROWS", "NOW")):
            self.refuse("expected RANGE or ROWS", BRACKET_HINT)
        measure = "rows" if self._prev.text.upper() == "ROWS" else "time"
        if self._prev.text.upper() == "NOW":
            parts["now"] = True
        else:
            parts["range"] = self._parse_extent()
        while not self._match(TokenType.R_BRACKET):
            self._match(TokenType.COMMA)
            if self._match_texts(ASKING, advance=False):
                self._parse_asking(parts)
                continue
            if not self._match_texts(_CLAUSES):
                self.refuse("expected SLIDE, OFFSET, WATTR or ]", BRACKET_HINT)
            word = self._prev
            key = "time" if word.text.upper() == "WATTR" else word.text.lower()
            if key in parts:
                self.refuse(f"a second {word.text.upper()}", BRACKET_HINT, word)
            if key == "internal":
                parts[key] = True
            else:
                parts[key] = self._parse_time_column() if key == "time" else self._parse_extent()
        clause = WindowClause(spelling="[...]", measure=measure, align="end", **parts)
        return clause.update_positions(opening)

    def _parse_asking(self, parts: dict[str, Any]) -> None:
        """Reads AS OF, ALIGNED or WITHIN, which only a question has."""
        word = self._curr.text.upper()
        self.refuse(f"{word} belongs to a question", f"leave it out, or {ASK_HINT}")

    def _parse_streamed(self, read: Callable[[], Any]) -> tuple[Any, str, WindowClause | None]:
        """Reads Istream(...) or its like, and the window behind Wstream; gives what is inside."""
        word = self._curr
        kind = word.text.upper()
        self._advance(2)
        inside = read()
        if not self._match(TokenType.R_PAREN):
            self.refuse(f"expected ) after what {shown(word.text)} shows", STREAMED_HINT)
        if self._match(TokenType.L_BRACKET, advance=False):
            if kind != "WSTREAM":
                self.refuse(f"{shown(word.text)} has no window of its own", WSTREAM_HINT)
            return inside, kind.lower(), self._parse_bracket_window()
        if kind == "WSTREAM":
            self.refuse("Wstream needs a window", WSTREAM_HINT)
        return inside, kind.lower(), None

    def _at_streamed(self) -> bool:
        """Whether Istream( or its like is next."""
        named = self._curr.text.upper() in STREAMED and self._curr.token_type not in _QUOTED
        return named and self._next.token_type == TokenType.L_PAREN

    def _parse_extent(self) -> Extent:
        """Reads a duration or a number, up to the next clause, comma or bracket."""
        first = self._curr
        words: list[str] = []
        while self._curr.token_type not in self._END_OF_EXTENT and not self._at_clause():
            # Spark reads 90s as a number with a cast to SMALLINT: 90, ::, s.
            if not self._match(TokenType.DCOLON):
                kind, text = self._curr.token_type, self._curr.text
                words.append(f"'{text}'" if kind in _QUOTED else _RADIX.get(kind, "") + text)
                self._advance()
        if not words:
            self.refuse("expected a duration or a number", "write '12 minutes', or a plain integer")
        rows = len(words) > 1 and words[-1].upper() in _ROW_WORDS
        if rows:
            words.pop()
        value = self._extent_value(words, first)
        return Extent(this=value, rows=rows).update_positions(first)

    def _at_clause(self) -> bool:
        return self._match_texts((*_CLAUSES, *ASKING), advance=False)

    def _extent_value(self, words: list[str], first: Token) -> int | str:
        if len(words) == 1 and first.token_type == TokenType.STRING:
            return first.text
        sign = words[0] if words[0] in "+-" else ""
        digits = words[-1] if len(words) == 1 + len(sign) else ""
        if not (digits.isascii() and digits.isdigit()):
            return " ".join(words) if not sign else sign + " ".join(words[1:])
        if len(digits) > MAX_DIGITS:
            self.refuse("the number is too large", "a range must fit into 64 bits", first)
        return int(sign + digits)

    def _parse_time_column(self) -> exp.Expr:
        token = self._curr
        column = self._parse_column()
        if not isinstance(column, exp.Column) or column.table:
            hint = "write a plain name such as ts"
            self.refuse("expected the name of the time column", hint, token or None)
        name: exp.Expr = column.this
        return name

    def _parse_window_table(self) -> exp.Expr | None:
        """Reads HOP(...), TUMBLE(...) or TABLE(HOP(...)), with an alias; None if none is next."""
        if self._next.token_type != TokenType.L_PAREN:
            return None
        wrapped = self._curr.token_type == TokenType.TABLE
        if wrapped:
            self._advance(2)
        name = self._curr.text.upper()
        if name in UNKNOWN_CALLS:
            self.refuse(f"{name} windows are not supported", UNKNOWN_CALLS[name])
        if name not in _ARGUMENTS or self._curr.token_type in _QUOTED:
            if wrapped:
                self.refuse("expected HOP or TUMBLE", CALL_HINTS["HOP"])
            return None
        table = self._parse_window_call(name)
        if wrapped:
            self._close(name)
        alias = self._parse_table_alias()
        if alias is not None:
            table.set("alias", alias)
        return table

    def _parse_window_call(self, name: str) -> exp.Table:
        opening = self._curr
        self._advance(2)
        parts: dict[str, exp.Expr] = {}
        while True:
            key = self._argument_name(name, len(parts))
            if key in parts:
                self.refuse(f"{name} has {key} twice", CALL_HINTS[name])
            parts[key] = self._parse_argument(key, name)
            if not self._match(TokenType.COMMA):
                break
        self._close(name)
        missing = [key for key in _ARGUMENTS[name][:-1] if key not in parts]
        if missing:
            self.refuse(f"{name} lacks its {missing[0]}", CALL_HINTS[name], opening)
        return self._window_table(name, parts, opening)

    def _window_table(self, name: str, parts: dict[str, exp.Expr], opening: Token) -> exp.Table:
        clause = WindowClause(
            spelling=name,
            measure="time",
            align="start",
            range=parts["SIZE"],
            slide=parts["SLIDE"] if name == "HOP" else parts["SIZE"].copy(),
            offset=parts.get("OFFSET"),
            time=parts["TIMECOL"],
        )
        table = parts["DATA"]
        assert isinstance(table, exp.Table)
        if table.args.get("window") is not None:
            self.refuse("a second window for one stream", CALL_HINTS[name], opening)
        table.set("window", clause.update_positions(opening))
        return table

    def _argument_name(self, name: str, position: int) -> str:
        known = _ARGUMENTS[name]
        if self._next.token_type == TokenType.FARROW:
            key = self._curr.text.upper()
            if key not in known:
                self.refuse(f"{name} has no argument {shown(key)}", CALL_HINTS[name])
            self._advance(2)
            return key
        if position >= len(known):
            self.refuse(f"{name} takes at most {len(known)} arguments", CALL_HINTS[name])
        return known[position]

    def _parse_argument(self, key: str, name: str) -> exp.Expr:
        if key == "DATA":
            self._match(TokenType.TABLE)
            table: Any = self._parse_table_parts(schema=True)
            return table if isinstance(table, exp.Table) else self.refuse("expected a stream")
        if key == "TIMECOL":
            if not self._match_text_seq("DESCRIPTOR"):
                return self._parse_time_column()
            self._match_l_paren()
            column = self._parse_time_column()
            self._close(name)
            return column
        return self._parse_extent()

    def _close(self, name: str) -> None:
        if not self._match(TokenType.R_PAREN):
            self.refuse("expected )", CALL_HINTS[name])
