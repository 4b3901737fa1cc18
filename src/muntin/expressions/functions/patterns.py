"""LIKE, ILIKE and RLIKE with constant patterns, translated to the regular expressions we run."""

from __future__ import annotations

import re

from muntin.expressions import types as t
from muntin.expressions.binding.coercion import require
from muntin.expressions.evaluation.parts import Part
from muntin.expressions.functions.strings import text_of
from muntin.expressions.registry import Function
from muntin.expressions.tree import BindingError, Call, Node

WILD = ("%", "_")


def _bind_like(name: str, args: list[Node]) -> Node:
    pattern = text_of(args[1], name.upper(), "its pattern")
    escape = text_of(args[2], name.upper(), "its escape") if len(args) > 2 else "\\"
    if len(escape) != 1:
        raise BindingError("ESCAPE takes one character", hint="write ESCAPE '!'")
    tokens(pattern, escape)
    return Call(name, (require(args[0], t.STRING, name.upper()), *args[1:]), t.BOOLEAN)


def _bind_rlike(name: str, args: list[Node]) -> Node:
    translate(text_of(args[1], "RLIKE", "its pattern"))
    return Call(name, (require(args[0], t.STRING, "RLIKE"), args[1]), t.BOOLEAN)


def tokens(pattern: str, escape: str) -> list[tuple[str, bool]]:
    """The pattern's characters, each with whether it is a wildcard.

    >>> tokens("a!%%", "!")
    [('a', False), ('%', False), ('%', True)]
    """
    found: list[tuple[str, bool]] = []
    letters = iter(pattern)
    for letter in letters:
        if letter != escape:
            found.append((letter, letter in WILD))
            continue
        following = next(letters, "")
        if following not in (*WILD, escape) or not following:
            raise BindingError(
                f"in LIKE {pattern!r} the escape character stands before no wildcard",
                hint=f"write {escape}{escape} for the character itself",
            )
        found.append((following, False))
    return found


def _like(call: Call, parts: list[Part]) -> Part:
    pattern = text_of(call.args[1], "LIKE", "its pattern")
    escape = text_of(call.args[2], "LIKE", "its escape") if len(call.args) > 2 else "\\"
    value = parts[0].value
    if call.function == "ilike":
        # As Spark does: both sides in lower case.
        value, pattern = value.str.to_lowercase(), pattern.lower()
    letters = tokens(pattern, escape)
    fixed = "".join(letter for letter, wild in letters if not wild)
    wilds = [letter if wild else "." for letter, wild in letters]
    inner = "".join(wilds).strip("%")
    if "%" in inner or "_" in inner:
        return Part(value.str.contains(_regex(letters)), parts[0].failed)
    leading, trailing = wilds[:1] == ["%"], wilds[-1:] == ["%"]
    if leading and trailing:
        matched = value.str.contains(fixed, literal=True)
    elif trailing:
        matched = value.str.starts_with(fixed)
    elif leading:
        matched = value.str.ends_with(fixed)
    else:
        matched = value.eq(fixed)
    return Part(matched, parts[0].failed)


def _regex(letters: list[tuple[str, bool]]) -> str:
    pieces = [{"%": ".*", "_": "."}[c] if wild else re.escape(c) for c, wild in letters]
    return f"(?s)\\A{''.join(pieces)}\\z"


def _rlike(call: Call, parts: list[Part]) -> Part:
    pattern = translate(text_of(call.args[1], "RLIKE", "its pattern"))
    return Part(parts[0].value.str.contains(pattern), parts[0].failed)


FUNCTIONS = (
    Function("like", 2, 3, _bind_like, _like),
    Function("ilike", 2, 3, _bind_like, _like),
    Function("rlike", 2, 2, _bind_rlike, _rlike),
)


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
