"""What a picture of slices shows, whatever it is drawn with."""

from __future__ import annotations

from dataclasses import dataclass, replace


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
