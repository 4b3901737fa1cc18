"""How the values of options are read: each from text, with a reason if it cannot be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from muntin.errors import MuntinError, did_you_mean
from muntin.expressions.zone_names import zone
from muntin.queries.source import shown
from muntin.windows import DurationLike, duration

Reader: TypeAlias = Callable[[str], Any]

MAX_DIGITS = 18
ON_CHANGE = "1 second"


def text(value: str) -> str:
    """Any text but the empty one."""
    if not value:
        raise MuntinError("the value is empty", hint="write what it should be, or leave it out")
    if not value.isprintable():
        raise MuntinError("the value has letters that do not print", hint="write it without them")
    return value


def any_text(value: str) -> str:
    """Any text, for options that are handed on."""
    return value


def variable(value: str) -> str:
    """The name of an environment variable; people write the secret it should hold."""
    if not value.isidentifier():
        hint = "write a name such as 'MUNTIN_POSTGRES_URL', and give it its value outside the file"
        raise MuntinError("the value is no name of an environment variable", hint=hint)
    return value


def choice(*names: str) -> Reader:
    """One of some words, in any letter case.

    >>> choice("skip", "fail")("Skip")
    'skip'
    """

    def read(value: str) -> str:
        if value.lower() not in names:
            hint = did_you_mean(value, names) or f"use one of {', '.join(names)}"
            raise MuntinError(f"there is no {shown(value)!r} here", hint=hint)
        return value.lower()

    return read


def boolean(value: str) -> bool:
    """TRUE or FALSE."""
    if value.lower() not in ("true", "false"):
        raise MuntinError(f"{shown(value)!r} is neither TRUE nor FALSE", hint="write one of them")
    return value.lower() == "true"


def number(least: int, most: int) -> Reader:
    """A whole number within bounds.

    >>> number(1, 10)("7")
    7
    """

    def read(value: str) -> int:
        digits = value.removeprefix("-")
        plain = digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS
        if not plain or not least <= int(value) <= most:
            hint = f"write a whole number from {least:,} to {most:,}"
            raise MuntinError(f"the value is {shown(value)!r}", hint=hint)
        return int(value)

    return read


def letter(value: str) -> str:
    r"""One character, as \t or as itself."""
    value = "\t" if value == "\\t" else value
    if len(value) != 1 or value in "\r\n\"'":
        hint = "write one character such as ',' or ';' or '\\t'"
        raise MuntinError(f"{shown(value)!r} cannot separate columns", hint=hint)
    return value


def timezone(value: str) -> str:
    """The name of a time zone, or an offset from UTC.

    >>> timezone("Europe/Paris")
    'Europe/Paris'
    """
    zone(value)
    return value


def length(value: str) -> DurationLike:
    """A duration, or a plain number for streams whose time is a number.

    >>> length("10 seconds"), length("5")
    ('10 seconds', 5)
    """
    if value.isascii() and value.isdigit() and len(value) <= MAX_DIGITS:
        return int(value)
    if duration(value) < 0:
        raise MuntinError(f"{shown(value)!r} is negative", hint="use 0 or more")
    return value


def length_or_none(value: str) -> DurationLike | None:
    """A duration, or 'none'."""
    return None if value.lower() == "none" else length(value)


def refresh(value: str) -> DurationLike | None:
    """How often files are looked at for a change; None for never."""
    words: dict[str, DurationLike | None] = {"on change": ON_CHANGE, "never": None}
    if value.lower() in words:
        return words[value.lower()]
    often = length(value)
    if isinstance(often, int) or duration(often) <= 0:
        hint = "write 'on change', 'never', or a duration such as '30 seconds'"
        raise MuntinError(f"the value is {shown(value)!r}", hint=hint)
    return often
