"""LIKE, ILIKE and RLIKE with constant patterns, translated to the regular expressions we run."""

from __future__ import annotations

import re

from muntin.expressions import types as t
from muntin.expressions.coercion import require
from muntin.expressions.functions.regex import translate
from muntin.expressions.functions.strings import text_of
from muntin.expressions.parts import Part
from muntin.expressions.problems import BindingError
from muntin.expressions.registry import Function
from muntin.expressions.tree import Call, Node

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
