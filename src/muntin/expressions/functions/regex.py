"""Java's regular expressions, as far as they mean the same when rewritten for Rust's.

Only whether a string contains a match matters here. Digits, words and spaces are ASCII in Java
and Unicode in Rust, a dot excludes more line ends, and $ also matches before a final line end:
these are rewritten. What Rust lacks or reads otherwise is refused.
"""

from __future__ import annotations

import re

from muntin.expressions.problems import BindingError

CLASSES = {
    "d": "0-9",
    "w": "a-zA-Z0-9_",
    "s": " \\t\\n\\x0B\\f\\r",
}
CONTROLS = "tnrf"
LINE_ENDS = "\\n\\r\\x{85}\\x{2028}\\x{2029}"
AT_END = "(?:\\r\\n|[" + LINE_ENDS + "])?\\z"
QUANTIFIER = re.compile(r"(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})")


def translate(pattern: str) -> str:
    r"""The pattern for polars, or an error for what cannot be translated.

    >>> print(translate("^[a-c]+x?"))
    \A[a-c]+x?
    """
    reader = _Reader(pattern)
    return reader.alternatives(top=True)


class _Reader:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def alternatives(self, *, top: bool) -> str:
        pieces: list[str] = []
        while self.at < len(self.pattern):
            letter = self.pattern[self.at]
            if letter == ")" and not top:
                return "".join(pieces)
            pieces.append(self._piece(letter, top=top))
        if not top:
            self._refuse("a group is not closed")
        return "".join(pieces)

    def _piece(self, letter: str, *, top: bool) -> str:
        self.at += 1
        if letter == "|":
            return "|"
        if letter == "^":
            return "\\A"
        if letter == "$":
            # Behind the end nothing may follow, so that the line end may be part of the match.
            if not top or self.pattern[self.at : self.at + 1] not in ("", "|"):
                self._refuse("$ stands elsewhere than at the end")
            return AT_END
        return self._atom(letter) + self._quantifier()

    def _atom(self, letter: str) -> str:
        if letter == "(":
            return self._group()
        if letter == "[":
            return self._class()
        if letter == "\\":
            return self._escape(inside=False)
        if letter == ".":
            return f"[^{LINE_ENDS}]"
        if letter in "*+?{)":
            self._refuse(f"{letter} stands where nothing can be repeated")
        return re.escape(letter)

    def _group(self) -> str:
        if self.pattern.startswith("?:", self.at):
            self.at += 2
        elif self.pattern.startswith("?", self.at):
            self._refuse("groups that begin with (? are not supported")
        inner = self.alternatives(top=False)
        self.at += 1
        return f"(?:{inner})"

    def _class(self) -> str:
        negated = self.pattern.startswith("^", self.at)
        self.at += negated
        pieces: list[str] = []
        while self.at < len(self.pattern):
            letter = self.pattern[self.at]
            self.at += 1
            if letter == "]":
                if not pieces:
                    self._refuse("a class is empty")
                return f"[{'^' * negated}{''.join(pieces)}]"
            pieces.append(self._member(letter, first=not pieces))
        self._refuse("a class is not closed")
        raise AssertionError

    def _member(self, letter: str, *, first: bool) -> str:
        if letter in "[&^~":
            self._refuse(f"{letter} inside a class")
        if letter == "\\":
            return self._escape(inside=True)
        if letter == "-":
            last = self.pattern.startswith("]", self.at)
            return "\\-" if first or last else "-"
        return re.escape(letter)

    def _escape(self, *, inside: bool) -> str:
        letter = self.pattern[self.at : self.at + 1]
        self.at += 1
        if letter in CLASSES and letter:
            return CLASSES[letter] if inside else f"[{CLASSES[letter]}]"
        if letter.lower() in CLASSES and letter and not inside:
            return f"[^{CLASSES[letter.lower()]}]"
        if letter in CONTROLS and letter:
            return f"\\{letter}"
        if not letter or letter.isalnum() or not letter.isascii():
            self._refuse(f"\\{letter} is not supported")
        return re.escape(letter)

    def _quantifier(self) -> str:
        found = QUANTIFIER.match(self.pattern, self.at)
        if found is None:
            return ""
        self.at = found.end()
        if self.pattern[self.at : self.at + 1] in ("+", "?"):
            # Whether a match exists does not depend on greed; possessive ones may miss it.
            if self.pattern[self.at] == "+":
                self._refuse("possessive repetition is not supported")
            self.at += 1
        return found.group()

    def _refuse(self, why: str) -> None:
        raise BindingError(
            f"RLIKE {self.pattern!r}: {why}",
            hint="use literals, classes, groups, | and repetition; or LIKE",
        )
