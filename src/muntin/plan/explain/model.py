"""What every printer of a plan works from: a frozen tree of items and their facts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["plan", "slicing", "partials", "accumulators", "final", "finals", "more"]
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
