"""What every printer of a plan works from: a frozen tree of items and their facts."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias

from muntin.display import count
from muntin.windows import Window, duration_text

Kind: TypeAlias = Literal[
    "plan", "slicing", "partials", "accumulators", "final", "finals", "operator", "side", "more"
]
Value: TypeAlias = str | int | float | bool | tuple[str, ...] | None


@dataclass(frozen=True)
class Fact:
    """One thing that is known of an item: a value for machines, and a text for people.

    A fact without a text is told to machines only. One that is ``aside`` is told below its item
    instead of beside its label, and left out where a plan is shown in brief.
    """

    key: str
    value: Value
    text: str = ""
    aside: bool = False


@dataclass(frozen=True)
class Item:
    """One node of a rendered plan: what it is, facts about it, and what stands below it.

    ``sources`` are the ids of the items that feed it. ``notes`` are sentences that whoever made
    the plan attached to it.
    """

    id: str
    kind: Kind
    label: str
    facts: tuple[Fact, ...] = ()
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    children: tuple[Item, ...] = ()

    @property
    def beside(self) -> tuple[str, ...]:
        """What people read beside the label."""
        return tuple(fact.text for fact in self.facts if fact.text and not fact.aside)

    @property
    def below(self) -> tuple[str, ...]:
        """What people read below the label, a sentence each."""
        return (*(fact.text for fact in self.facts if fact.text and fact.aside), *self.notes)

    def walk(self) -> Iterator[Item]:
        """This item and all below it, in the order they are read."""
        yield self
        for child in self.children:
            yield from child.walk()


_SHOWN_NAMES = 6


def amount(number: Fraction | float) -> str:
    """A number that need not be whole, to three digits or the nearest whole one.

    >>> amount(Fraction(24)), amount(Fraction(100, 3)), amount(Fraction(12345, 7)), amount(0.00004)
    ('24', '33.3', '1,764', '4e-05')
    """
    value = float(number)
    return f"{round(value):,}" if value == int(value) or abs(value) >= 1000 else f"{value:.3g}"


def times_fewer(fewer: Fraction | float, more: Fraction | float) -> str:
    """By which factor one number is below another, or above it.

    >>> times_fewer(6, 12), times_fewer(48, 31), times_fewer(1001, 1000)
    ('2.0× fewer', '1.5× more', 'about as many')
    """
    low, high = sorted((float(fewer), float(more)))
    factor = f"{high / low:,.1f}"
    return (
        "about as many" if factor == "1.0" else f"{factor}× {'fewer' if fewer <= more else 'more'}"
    )


def names(listed: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = len(listed) - _SHOWN_NAMES
    shown = " ".join(listed[:_SHOWN_NAMES])
    return shown if more <= 0 else f"{shown} and {more:,} more"


def length(window: Window, value: int) -> str:
    """A range or slide as it is written.

    >>> length(Window("12 min", "5 min"), 300_000_000), length(Window(9, 5, measure="rows"), 5)
    ('5 minutes', '5 rows')
    """
    if window.unit == "duration":
        return duration_text(value)
    return count(value, "row") if window.measure == "rows" else f"{value:,}"


def window_text(window: Window) -> str:
    """Range and slide, and where windows end if that is not on the slide."""
    parts = [f"range {length(window, window.range)}", f"slide {length(window, window.period)}"]
    if window.phase:
        counted = window.measure == "rows" and window.unit != "duration"
        past = f"{window.phase:,}" if counted else length(window, window.phase)
        parts.append(f"ends at {past} past")
    return " ".join(parts)


def spread(windows: Sequence[Window], what: str, values: Sequence[int]) -> str:
    """The values of many windows: the only one, or the least and the greatest."""
    low, high = min(values), max(values)
    first = length(windows[0], low)
    return f"{what} {first}" if low == high else f"{what}s {first} to {length(windows[0], high)}"


def printable(text: str) -> str:
    r"""The text on one line, with signs in place of what does not print or turns its direction.

    >>> printable("a\nb\u202ec")
    'a␊b�c'
    """
    return text if text.isprintable() else "".join(map(_printed, text))


def _printed(letter: str) -> str:
    if letter.isprintable():
        return letter
    if letter < " ":
        return chr(0x2400 + ord(letter))
    return " " if unicodedata.category(letter) == "Zs" else "\N{REPLACEMENT CHARACTER}"


def clipped(text: str, width: int) -> str:
    """At most ``width`` letters of a text; what is left out shows as an ellipsis."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


@dataclass(frozen=True)
class Line:
    """The edges of one window alone, and the queries that have it."""

    label: str
    queries: str
    edges: tuple[int, ...]


@dataclass(frozen=True)
class Axis:
    """Windows over one attribute from 0 to ``span`` ticks, and the edges they share.

    ``common`` are the edges that more than one window cuts at. A ``unit`` has ``ticks`` ticks.
    """

    title: str
    notes: tuple[str, ...]
    span: int
    unit: str
    ticks: int
    lines: tuple[Line, ...]
    shared: tuple[int, ...]
    common: frozenset[int]

    def noted(self, note: str) -> Axis:
        """The axis with one more note."""
        return replace(self, notes=(*self.notes, note))

    def number(self, ticks: int) -> str:
        """A place or a length in units."""
        return f"{ticks // self.ticks:,}"
