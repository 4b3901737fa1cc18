"""sqlglot's tokenizer with a memory for words.

Queries that come in thousands are made of few words. sqlglot walks along the letters of each; here
it does so once for a word and the letter behind it, which say together what the token is. What
hangs on more than that is left to it every time: comments, escapes, keywords of several words,
scientific numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from sqlglot.tokenizer_core import Token, TokenizerCore, TokenType

# Kinds of letters: those of words and numbers go together, each of the others stands alone.
_BLANK, _LETTER, _DIGIT, _SIGN, _QUOTE, _NEWLINE = range(6)
_DIGITS = "0123456789"
_LETTERS = "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
# More words than any texts have in common.
_MOST_KNOWN = 50_000

# The type, the text and the length of a token.
Found: TypeAlias = tuple[TokenType, str, int]


def _kinds() -> bytes:
    kinds = bytearray([_SIGN]) * 129  # the last one is for all beyond ASCII
    for letters, kind in ((" \t", _BLANK), (_LETTERS, _LETTER), (_DIGITS, _DIGIT)):
        for letter in letters:
            kinds[ord(letter)] = kind
    kinds[ord("'")] = _QUOTE
    kinds[ord("\n")] = _NEWLINE
    return bytes(kinds)


_KINDS = np.frombuffer(_kinds(), np.uint8)


class Scanner(TokenizerCore):
    """A core of sqlglot's tokenizer that finds the same tokens.

    Args:
        core: The core whose settings it takes.
        known: What it knows of words; scanners with other settings need another one.
    """

    def __init__(self, core: TokenizerCore, known: dict[str, Found]) -> None:
        for name in TokenizerCore.__slots__:
            setattr(self, name, getattr(core, name))
        if len(known) > _MOST_KNOWN:
            known.clear()
        self._known = known
        # An escape of a quote is a backslash or the quote itself, which are both looked for.
        escapes = {*self.string_escapes, *(each[0] for each in self.unescaped_sequences)}
        self._plain_quotes = (
            self.quotes.get("'") == "'"
            and self.keyword_trie.get("'") == {0: True}
            and escapes <= {"\\", "'"}
        )

    def _scan(self, check_semicolon: bool = False) -> None:
        # Commands swallow what follows, and lines that end in \r are counted in a way of their own.
        if check_semicolon or self.commands or "\r" in self.sql:
            super()._scan(check_semicolon)
            return
        tokens = self.tokens
        sql, known = self.sql, self._known
        finders = {_DIGIT: self._number, _SIGN: self._sign}
        if self._plain_quotes:
            finders[_QUOTE] = self._string
        current, line, line_start, careful = 0, 1, 0, False
        for start, end, kind in _items(sql):
            if start < current:
                continue
            if kind == _NEWLINE:
                line, line_start = line + 1, start + 1
                continue
            found: Found | None = None
            if careful:
                pass
            elif kind == _LETTER:
                found = known.get(sql[start : end + 1])
            elif kind in finders:
                found = finders[kind](start, end)
            if found is not None:
                what, text, length = found
                current = start + length
                tokens.append(Token(what, text, line, current - line_start, start, current - 1))
                continue
            count = len(tokens)
            self._scan_one(start, line, start + 1 - line_start)
            if not careful and len(tokens) == count + 1:
                self._learn(start, end, kind)
            current, line = self._current, self._line
            line_start = current - self._col
            # Comments belong to the token behind them, and a parameter's name is never a keyword.
            careful = bool(self._comments) or _ends_in_parameter(tokens)
        if tokens and self._comments:
            tokens[-1].comments.extend(self._comments)

    def _scan_one(self, start: int, line: int, column: int) -> None:
        """What sqlglot finds at a place."""
        sql = self.sql
        if self.tokens:
            # It has advanced itself if the last thing was a comment.
            self._prev_token_line = max(self._prev_token_line, self.tokens[-1].line)
        self._start, self._current, self._line, self._col = start, start + 1, line, column
        self._end = self._current >= self.size
        self._char = sql[start]
        self._peek = "" if self._end else sql[self._current]
        if self._char in _DIGITS:
            self._scan_number()
        elif self._char in self.identifiers:
            self._scan_identifier(self.identifiers[self._char])
        elif not self._char.isspace():
            self._scan_keywords()

    def _sign(self, start: int, _end: int) -> Found | None:
        sql, known = self.sql, self._known
        return known.get(sql[start : start + 2]) or known.get(sql[start : start + 3])

    def _number(self, start: int, end: int) -> Found | None:
        key, stop = self._shape(start, end)
        if key not in self._known:
            return None
        return TokenType.NUMBER, self.sql[start:stop], stop - start

    def _string(self, start: int, _end: int) -> Found | None:
        sql = self.sql
        end = sql.find("'", start + 1)
        text = sql[start + 1 : end]
        if end < 0 or sql[end + 1 : end + 2] == "'" or "\\" in text or "\n" in text:
            return None
        return TokenType.STRING, text, end + 1 - start

    def _shape(self, start: int, end: int) -> tuple[str, int]:
        """A number with zeros for its digits and the letter behind it, and where it ends."""
        sql = self.sql
        if not sql[start:end].isdigit():
            return "", end
        if sql[end : end + 1] != ".":
            return f"0{sql[end : end + 1]}", end
        stop = end + 1
        while sql[stop : stop + 1].isdigit() and sql[stop].isascii():
            stop += 1
        return f"0.0{sql[stop : stop + 1]}" if stop > end + 1 else "", stop

    def _learn(self, start: int, end: int, kind: int) -> None:
        """Remember the last token, if nothing but its key has told what it is."""
        token, sql = self.tokens[-1], self.sql
        length = self._current - start
        if token.token_type == TokenType.PARAMETER or token.start != start:
            return
        found = token.token_type, token.text, length
        if kind == _LETTER and length == end - start and self._is_decided(sql[start : end + 1]):
            self._known[sql[start : end + 1]] = found
        elif kind == _SIGN and sql[start] not in self.identifiers and sql[start] not in self.quotes:
            keys = (sql[start : start + 2], sql[start : start + 3])
            key = next((each for each in keys if self._is_decided(each)), "")
            if length < len(key):
                self._known[key] = found
        elif kind == _DIGIT:
            key, stop = self._shape(start, end)
            whole = stop == self._current and token.text == sql[start:stop]
            if key and whole and stop < self.size and key.isascii():
                self._known[key] = found

    def _is_decided(self, key: str) -> bool:
        """Whether sqlglot looks no further than the key's last letter for a keyword."""
        trie = self.keyword_trie
        for letter in key:
            shown = letter.upper() if letter.isascii() else letter
            shown = " " if letter.isspace() else shown
            if shown not in trie:
                return True
            trie = trie[shown]
        return False


def _items(sql: str) -> Iterable[tuple[int, int, int]]:
    """The start, end and kind of each word or number, and of each sign that is not a blank."""
    codes = np.frombuffer(sql.encode("utf-32-le", "surrogatepass"), np.uint32)
    kinds = _KINDS[np.minimum(codes, 128)]
    in_word = (kinds == _LETTER) | (kinds == _DIGIT)
    alone = ~in_word & (kinds != _BLANK)
    begins, ends = in_word.copy(), in_word.copy()
    begins[1:] &= ~in_word[:-1]
    ends[:-1] &= ~in_word[1:]
    starts = np.flatnonzero(begins | alone)
    stops = np.flatnonzero(ends | alone) + 1
    return zip(starts.tolist(), stops.tolist(), kinds[starts].tolist(), strict=True)


def _ends_in_parameter(tokens: list[Token]) -> bool:
    return bool(tokens) and tokens[-1].token_type == TokenType.PARAMETER
